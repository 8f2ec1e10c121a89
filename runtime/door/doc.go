// Package door decides whether an HTTP request may enter a listener at all, before anything looks at its path, its
// method or its credentials, and holds the listener open while its servers come and go.
//
// A daemon on a loopback port has no network between itself and a browser: any page that its user opens can send it
// requests. Three headers that a page cannot forge tell such requests apart, and the rules read nothing else:
//
//   - Host: on a loopback listener it must be a loopback name or address. A page on a name of its own that was rebound
//     to 127.0.0.1 still sends its own name.
//   - Origin: absent, or exactly http://<Host>. Another port, another scheme, `null` (a sandboxed frame, a file) and
//     two Origin lines are all foreign.
//   - Sec-Fetch-Site: anything but cross-site.
//
// [Rules] are pure: a request in, a reason or none out. [Socket] is what a door stands in: a listening socket that outlives
// those who serve it, so that a server that crashed comes back without a refused connection. What it accepts is bounded, and at
// the bound the connection that has been silent longest makes room: sockets that send nothing keep nobody out.
//
// The package knows sockets and HTTP headers and nothing of this daemon; who listens where, what is counted and which
// route has rules of its own is for its callers.
package door
