// Package bridge is the pod's Unix socket for agents that take an MCP server over stdio only: `acpod bridge`, which such an agent
// starts, relays lines to it.
//
// Who is at the other end is told by the kernel and by nothing else: the peer's pid (SO_PEERCRED) is walked up to a process that the
// pod itself started, by pid and start time. No environment and no frame is asked, because a process can give a child any of both.
// What a line asks is served by the facade through an interface that pod wires.
//
// # Its actors
//
// The actor `bridge` (permanent) accepts on a [Socket] that pod has opened, and has a child `relay-<n>` (temporary) a connection. A child's one goroutine
// finds out whose the connection is, reads, and has each message served beside those that are open; the next is served when the one
// before has had its effect on the order of things. A connection ends with its agent or the agent's token.
//
// # What it promises
//
//   - A line is paid for as it grows, by the agent's session; one over the limit ends its connection, before the rest is read.
//   - What is refused or left out is counted by reason in the node of the bridge, since the node of a connection goes with it.
//   - The socket is its user's alone, a stale one is replaced in one step, and that of a living pod is left alone.
//
// # What it does not know
//
// HTTP, tokens, environments, and what a message means. [Relay] is the other side, which runs in a process that an agent starts.
package bridge
