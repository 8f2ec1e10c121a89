// Package machine does to a pod what a machine does: its disk fills up or cannot be written ([Disk]), and its clock jumps, as that of
// a laptop that was closed for a while ([Jump]).
//
// A [Disk] is where a pod under test keeps its state and its audit file. With the tools of util-linux and the right to make a mount
// namespace, which root mostly has and ordinary users mostly get with a user namespace, it is a small file system of its own, so that
// "no space left" and "read-only" are what the kernel says. Without, only the audit file can be attacked, by links: it is said which.
//
// The package knows nothing of the pod but that it is a program that is started with arguments.
package machine
