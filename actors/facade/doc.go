// Package facade is the MCP server that agents call: two tools over Streamable HTTP, without sessions.
//
// # Its place
//
// An agent process gets the facade's address and a token. Each request is judged alone: the door rules, the bearer, the
// shape of the message; then mcp-go answers what is about the server itself, and [capability.Search] and
// [capability.Execute] answer the two tools. The facade decides nothing about capabilities and keeps nothing between two
// requests, which is why no request can reach into another's: there is no table in which to look for it.
//
// # What it promises
//
//   - initialize, ping, tools/list and server/discover are answered at once, from the facade's own state, whatever the
//     servers behind it do.
//   - The id of a request comes back to the byte, and so do arguments on their way out and results on their way in.
//   - A body is paid for before it is read, and a result until a slow client has read it.
//   - The closing of a request is told to the desk of the caller, which decides what becomes of the call.
//   - What is refused is counted by reason in the actor's node.
//
// # Its actor
//
// The actor `facade` (permanent) serves a [door.Socket] that pod has opened, and has one child: the desk of the callers
// without a live token. A new generation serves the same socket. At a stop, open calls are answered before their
// connections are closed.
//
// # What it does not know
//
// Agents, ACP, sockets of extensions, how tokens are made ([Callers] is told by pod) and what a capability does.
package facade
