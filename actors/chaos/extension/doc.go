// Package extension is a simulated browser extension: a client that connects, opens sessions, serves tools back through its socket, and
// attacks on the way.
//
// An [Extension] is one goroutine that owns its sessions and draws its faults from dice of its own; what it does wrong, when and to whom
// depends on the seed, on its number and on how often it has drawn. Its sockets ([peer.Peer]) and servers ([server.Server]) do their work
// on goroutines of their own. Everything that it shares with others is in the [World].
//
// Faults that belong to a socket's life are in files named after them. A fault either leaves the extension with its socket, or with
// another one, or with none; then it connects again and takes its sessions up.
package extension
