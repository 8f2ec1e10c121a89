// Package connection is one ACP socket: GET /acp upgraded to a WebSocket, JSON-RPC frames in, streams of frames out, and
// requests in both directions.
//
// # Place
//
// The actor `gateway` supervises one temporary child `conn-<n>` for each socket; n is the accept number, which is also the
// connection's rank. The package imports session and tunnel and implements the interfaces that they declare for it,
// session.Client and tunnel.Carrier. It knows who gets in, how frames are bounded, paid for and ordered, and which request
// belongs to whom. It knows nothing of agents, prompts' contents, tools or policy: what a frame carries passes as a range of
// its bytes.
//
// # The way of a frame
//
//	socket → wire (framing.go) → gws → reader → mailbox of the actor → dispatch → session, tunnel or an answer
//	session, tunnel, actor → outbox (streams.go) → writer → socket
//
// The wire follows frame boundaries and charges a frame to the connection's account when its header is seen, before gws
// learns of it and allocates. The reader never waits for an actor: what the mailbox refuses is answered or dropped at
// once. It waits for bytes on the account, at most Config.BytesWait. Frames are written by our own writer, not by gws,
// because gws copies what it writes: here the parts of a frame go out as they are, in fragments, so that a large result
// costs no second copy and holds up a pong no longer than one fragment takes.
//
// Between the fragments of one message a WebSocket allows pings, pongs and a close, and no other message. So a large message
// that has begun is finished, and nothing that waits stands behind another stream's: the control lane goes first, and the
// streams share the socket by bytes (turns.go). An outbox has two marks (marks.go): updates are taken below the soft one, what
// cannot wait below the hard one, answers always. A client that is slow stays at the soft mark, its agents wait, and it loses
// nothing; one that leaves no room for what cannot wait has Config.SlowGrace to read, then it is closed with 1013.
//
// # Concurrency
//
// Who gets in is decided before there is an actor, on the HTTP server's goroutine, by the entrance (entrance.go): slots of the
// runtime/admission desk for the socket and its handshake, claimed before the upgrade. A socket that says no initialize makes room
// for a newcomer when there is no other; one that is only told why it must go has a slot of a small counter of its own.
//
// The behaviour owns the requests that we sent to the client. Two small structures are shared with the goroutines that
// call a Client, each behind a lock of its own that is never held while other code runs: the outbox (queues of frames) and
// the ledger (open requests of the client, sessions owned, tunnels bound). They are queues and tables of the connection in
// the way in which a mailbox is the actor's: everybody may put something in, only the connection takes it out.
package connection
