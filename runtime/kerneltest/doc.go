// Package kerneltest helps to test actors.
//
// For a test of one actor: [Start] makes a kernel that is shut down and checked for rest at the test's cleanup, [Probe] is a
// behavior that hands what it receives to the test, [Root] and [Spawn] put actors under it, and [Do] runs a function in a turn. They work under testing/synctest as
// well, which is the way to test what takes time.
//
// For a simulation: [Sim] is a scheduler and a clock that are functions of a seed, [Monkey] does all that a behavior may do and all that it must not, [Check]
// has one oracle for each of the kernel's invariants. [Simulate] puts them together; the same seed gives the same run. [Storm] is
// the same zoo on real goroutines, for the race detector.
package kerneltest
