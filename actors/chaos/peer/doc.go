// Package peer is one socket of a simulated client with the bookkeeping that a client has: requests with ids of their own and what
// answers them, requests of the pod and our answers, and the ledgers of both. What is done with it, and what is done wrong, is decided
// elsewhere.
//
// A [Peer] has two goroutines: one reads and hands out what comes, in order; one writes, in the order in which it was told. So a handler
// that answers never waits for a pod that does not read.
package peer
