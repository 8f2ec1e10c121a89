// Package pod composes the daemon: it turns a configuration into actors, in one order, and ends them in the reverse one. It is
// the only package that knows all others.
//
// # The order
//
// [Serve] opens the listening sockets first, so that whatever refuses a start refuses it while nothing runs; then it starts
// the guardian of child processes, and then the kernel with one root, whose children are spawned in this order and stopped
// in the reverse one:
//
//	audit · pins · debug · providers · gateway · sessions · facade · public
//
// A tunnel's mcp/disconnect so still finds its socket, a call its server, and the debug listener outlives nearly all. The sockets belong to
// [Serve] and outlive the generations that serve them: while an actor restarts, connections wait in the backlog. They wait there from the
// first moment until all of this runs.
//
// # The end
//
// A signal begins the drain: /readyz says 503, upgrades are refused, clients are told, turns may end for pod.drain_timeout. Then
// everything stops in order. The exit status is 0, also when turns were cut; it is 1 when an actor had to be abandoned or a
// process lives on. A second signal ends the process at once; the guardian then ends what it left. When the root gives up
// (a child crashed too often), its last act is to log the tree.
//
// # What it does not know
//
// How anything works. What the commands do with the servers of mcp.json ([ListServers], [CallServer], …) is the same composition in
// their own process, without a listener. It holds no state that a session or a connection needs; what it counts it reads from the tree.
package pod
