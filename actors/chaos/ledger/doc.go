// Package ledger is the harness's own account of what it asked, served and was answered, against which the pod's words are held. It
// writes what it finds into the book of promises and knows nothing of sockets, HTTP or time beyond what it is told.
//
// [Calls] are the tool calls of facade clients and belong to the whole run: a call is entered by its caller, executed by an extension
// and answered to its caller, each on a goroutine of its own. [Requests], [Asked] and [Connections] belong to one socket; [Sessions] to
// the run. All may be used from any goroutine.
package ledger
