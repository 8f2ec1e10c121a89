// Package agent is the child process of a session that speaks ACP over its stdio, as an actor.
//
// # Its place
//
// The actor "agent" is a Temporary child of its session ("the owner"). It starts the process, does the ACP
// handshake, and then carries lines both ways: what the owner asks with [Request], [Notify] and [Respond] goes to
// the process's stdin, and what the process writes reaches the owner as [Ready], [Update], [Called], [Noted] and as
// the answers of its requests, in the order in which the process wrote it. When the process ends, for whatever
// reason, every open request is answered with [*Exited], and the actor ends with that as its cause; the next prompt
// is the owner's reason to start another.
//
// # What it promises
//
//   - Order. One goroutine reads stdout and tells the owner, in one lane: a response never overtakes an update that
//     the agent wrote before it.
//   - Bytes. A line is on the account of the actor while it is assembled, kept and handed on. When the account is
//     full the reader waits, so the back-pressure reaches the agent's pipe. On top of that the reader has credits:
//     between the pipe and the client's socket lie at most 256 updates and 1 MiB; one longer line passes alone. Updates
//     that became one frame count as one, with the bytes of all.
//   - Bounds. A line over Config.LineBytes is skipped to its end and counted; when it was a response, the request
//     it answered fails and nothing else does; of an update the owner is told ([Skipped]). Lines that are no JSON-RPC are skipped and counted. Stderr is always
//     drained, into a ring of 64 KiB and the log. A process that does not read its stdin is stopped after
//     Config.StdinTimeout.
//   - The end. The process group is an obligation of the generation, and the guardian knows it; stop means: close
//     stdin, wait, TERM to the group, wait, KILL to the group.
//
// # What it does not know
//
// Sessions, turns, permissions, tokens, clients, tunnels. It interprets the envelope of a line, the result of
// `initialize`, and nothing else: parameters and results pass as byte ranges.
package agent
