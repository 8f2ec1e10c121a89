// Package pod is the pod under test, seen from outside: started by us in a folder of its own, or running already. It knows the
// command line `acpod serve`, the ready file, the debug listener as the contract describes it, and what Linux tells about a
// process. It shares nothing with the pod's own code, so that what it reads is what the pod shows and not what it believes.
//
// A [Pod] may be used from any goroutine.
package pod
