// Package clientcheck plays the pod for one client that connects, and notes for each rule of the wire whether the client kept it. It is
// the other half of conform, which plays the client. It drives only what a pod may do on /acp; it runs no agent and offers no facade.
//
// # Rows
//
// A rule is a row of one table (rows.go). Some are watched in every frame of the client, whatever the run is about: those are decided in
// watch.go, which is pure, as are all judgements about what an answer holds. The others are asked: a file for each part of the run sends
// what a pod sends and judges what comes back. A row that the client never came to is skipped and says why; none passes by silence.
// A client that breaks one rule should fail one row: a step that needs an earlier one is not taken when that failed.
//
// # The run
//
// A client drives its own side and may need a person to press a button. Each wait has a bound of one of three kinds: for the client to
// come at all (Timeout), for a step of its own accord such as session/new or coming back after a loss (Step), and for an answer that it
// owes (Patience). What a client may do is no failure.
//
// A tool is called only when it says of itself that it changes nothing, or when the author of the client named it.
//
// # Who owns what
//
// The run is one goroutine: it alone writes to sockets and to the sheet. The door (the HTTP server) and the reader of the one socket tell
// it what happens through a channel of few places, and wait when it does not take it. What a peer makes it hold is bounded: frames at
// 8 MiB as the pod does it, a handful of them at once, and of each the run keeps ids, names and one tool's schema at most.
//
// # Place
//
// It uses gws as the pod does, chaos/wire to write frames that gws would not, protocol for the envelope, and nothing of the pod.
package clientcheck
