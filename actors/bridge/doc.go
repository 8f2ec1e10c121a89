// Package bridge is the pod's Unix socket for agents that take an MCP server over stdio only: `acpod bridge`, which such an agent
// starts, relays lines to it.
//
// Who is at the other end is told by the kernel and by nothing else: the peer's pid (SO_PEERCRED) is walked up to a process that the
// pod itself started, by pid and start time. No environment and no frame is asked, because a process can give a child any of both.
// What a line asks is served by the facade through an interface that pod wires.
package bridge
