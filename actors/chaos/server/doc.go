// Package server is the MCP server that a simulated client serves through its socket: katashiro with the five tools of the default
// grant, in any of the four wire generations. It signs what it executes, so that the ledger can tell whose client executed what, and it
// answers as its [Behaviour] says: at once, late, twice, never, with hostile text, with more than is allowed.
//
// A [Server] belongs to one session of one client and outlives the sockets on which it is declared.
package server
