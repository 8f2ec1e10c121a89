// Package provider is the servers of the operator's mcp.json: a supervisor "providers" and under it one actor a server, which connects
// when it is used, lists its tools, carries calls and comes back after whatever happens to its server.
//
// # Its place
//
// [Providers] makes a [Server] for each entry: the [capability.Configured] that every desk has. It outlives the generations of its actor.
// A server with "isolation": "session" is a [Server] that only makes others: each desk spawns an instance of its own.
// How messages travel is a [link.Link]'s: a child's stdin and stdout (package stdio) or HTTP (package httplink). A link is made anew
// for each attempt and knows nothing of what it carries.
//
// # The life of a server
//
//	idle → connecting → ready → idle          nobody used it for a while, or another one needs its place
//	         │            └→ failed            its process ended, its connection broke: it is started again after a backoff
//	         ├→ failed                         and at once, once, for whoever calls it meanwhile,
//	         │                               or searches, where it has never listed
//	         └→ needs login                    401 or 403: until its entry resolves to something else
//
// Three transport faults in a row open the breaker. After a minute one attempt is let through, on a connection of its own.
//
// # What it promises
//
//   - One answer to each call: the server's, or why there is none, told at once. A call that may have left is never sent again.
//   - What a server sends is paid for before it is read, and bounded; what it asks never waits. What it says without naming a call
//     belongs to nobody.
//   - A list of tools is all of it, or says why not; one tool that is none hides no other.
//   - Nothing of a child is left: its process group is ended with the connection.
//
// # What it does not know
//
// Sessions, tokens, names shown to agents, pins, schemas of arguments. Who may call what was decided before; only the operator's own
// tool_filter is applied here, to what is listed.
package provider
