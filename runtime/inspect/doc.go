// Package inspect shows a running kernel over HTTP: the tree as JSON, a page, a stream of ends, metrics, profiles.
//
// Everything here reads. A request takes a snapshot of the tree on its own goroutine; no actor runs a turn for it, so a pod
// whose actors are all stuck can still be looked at, which is when it matters. The one thing that runs on a goroutine of the
// kernel's is [Inspector.Started] and [Inspector.Exited], which store an event and return; a watcher that does not keep up is dropped.
//
//	GET /debug/tree          the root node and the pod's own figures; ?depth=N, ?kind=K
//	GET /debug/tree/{path}   one node and what is below it
//	GET /debug/events        server-sent events: the start and the end of each generation, and what followed it
//	GET /debug/              a page over the three
//	GET /metrics             Prometheus, from the same tree
//	GET /debug/flight        what the runtime's goroutines did in the last seconds, when it is recorded; no payload is in it
//	GET /debug/pprof/        the runtime's profiles
//
// With a key everything but the page's own files asks for it as a bearer token. Who may reach the listener at all (Host, Origin)
// is the caller's rule and stands before this handler.
//
// The package knows the kernel and nothing of what the actors are for: names, kinds and attributes come from the tree, the
// figures of the pod from a function. Label values of metrics are kinds, states and scopes, which are words of the code; never a
// name, an id or anything that a peer chose.
package inspect
