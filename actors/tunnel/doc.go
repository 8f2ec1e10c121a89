// Package tunnel is one MCP server that a client declared and serves through
// its own ACP socket: an actor that opens it, lists its tools, carries calls to
// it, and closes it exactly once.
//
// A [Tunnel] is the handle: it is made by the session for each declared server
// that was admitted, it implements [capability.Source], and it outlives the
// generations of its actor. The socket is reached through a [Carrier], which the
// connection implements.
//
// # The life of a tunnel
//
//	connecting → handshaking → listing → ready → ended
//
// Every end but a crash of our own code is clean, so the supervisor starts
// nothing after it: a refused connect, a failed handshake or list, a lost
// socket, an eviction, a withdrawal. What the client opened for us is an
// obligation from the moment it may be open: mcp/disconnect is sent once,
// whatever way the generation ends, also for an mcp/connect that is answered
// after we gave it up. Nobody waits for it, and a socket that is gone owes
// nothing.
//
// Nothing of a client's inbound traffic reaches anybody but this actor: a
// notification that its tools changed lists them again, progress extends its
// call's deadline, requests were refused by the carrier.
//
// # What it does not know
//
// Policy, names shown to agents, other tunnels. Which of two tunnels with the
// same name wins is [Decide], a pure function that the session calls.
package tunnel
