// Package conform is a conformance run against a pod that is running: it comes in as a client does, says what the wire's
// contract is about, and notes for each rule whether it held. It drives only what a client sees, /acp and, where the pod
// hands out a token for it, the facade; it reads no tree and no metrics, so it can be pointed at any pod, also at one that
// somebody else has written.
//
// # Rows
//
// A Row is one rule: a name, what is expected, what it needs of the pod, and a small function that finds out. Each row has
// connections of its own, each wait in it has a bound, and whatever goes wrong in it (an answer that never comes, a socket
// that closes, nonsense) is the failure of that row and of no other. There is one file for each section.
//
// Two rules are watched in every row, whatever it is about: each request is answered once, and every frame of the pod is
// a text frame with a JSON-RPC message in it.
//
// # What the pod is
//
// Before the rows a survey finds out what can be asked of this pod: whether it has a key, who can make a tool call (the demo
// agent, or the token that a pod without agents gives, or nobody), and the limits that it tells in data.limit. Rows that need
// what is not there are skipped, and say so. What cannot be learned is assumed, and the report says what was assumed.
//
// An agent that is not the demo agent may cost its owner money and may act: it is sent nothing but a short greeting, and only
// by the rows that need a turn.
//
// # Place
//
// It uses chaos/wire for its sockets and protocol for the envelope, and nothing of the pod. Nothing of it is shared between
// goroutines but the channels of a peer: a row is one goroutine, and reads when it waits.
package conform
