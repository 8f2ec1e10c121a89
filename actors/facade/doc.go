// Package facade is the MCP server that agents call: two tools over Streamable HTTP, without sessions.
//
// # Its place
//
// An agent process gets the facade's address and a token. Each request is judged alone: the door rules, the bearer, the
// shape of the message; then mcp-go answers what is about the server itself, and [capability.Search] and
// [capability.Execute] answer the two tools, and the direct tools beside them. The facade decides nothing about
// capabilities. Between two requests it keeps only what is needed to ask a user something, under the token of the caller
// (see questions), which is why no request can reach into another's.
//
// # What it promises
//
//   - initialize, ping, tools/list and server/discover are answered at once, from the facade's own state, whatever the
//     servers behind it do; with direct tools, tools/list waits a short while for those that they are on.
//   - A question of a server is put only where somebody can answer it, its answer is taken once, and it ends with its call.
//   - The id of a request comes back to the byte, and so do arguments on their way out and results on their way in.
//   - A body is paid for before it is read, and a result until a slow client has read it.
//   - The closing of a request is told to the desk of the caller, which decides what becomes of the call.
//   - What is refused is counted by reason in the actor's node.
//
// # Its actor
//
// The actor `facade` (permanent) serves a [door.Socket] that pod has opened, and has two children: the desk of the
// callers without a live token, and `questions`. A new generation serves the same socket. At a stop, open calls are answered before their
// connections are closed.
//
// # What it does not know
//
// Agents, ACP, sockets of extensions, how tokens are made ([Callers] is told by pod) and what a capability does.
package facade
