// Package session is one agent session and the supervisor of all of them.
//
// `sessions` (see [New]) admits session/new and session/resume, bounds how many sessions live and how many agents run,
// keeps the index from id to session (suspended ones included, in memory), answers session/list and owns the token table.
// Each living session is an actor `sess-<tag>` below it: it owns the turn, the permission requests, the agent process
// (package agent), the token, one tunnel for each server that its client declared (package tunnel), and the desk that
// executes calls (package capability).
//
// Who talks to it: a connection sends the messages of messages.go and is known here only as a [Client]; the facade finds
// the caller behind a token in the [Tokens]; pod composes it. It knows neither sockets nor HTTP nor the configuration file.
//
// What it promises, however a session ends: its token stops working before its process is stopped, every request that it
// took is answered once, every tunnel that it opened is disconnected once, and its bytes go back.
//
// Decisions are plain functions with tables in their tests: who may own (owner.go), whom to suspend (admission.go), what
// ends a turn and with which answer (turn.go), which option a permission gets (permission.go), which folder an agent may
// work in (cwd.go), and what of a client's parameters reaches it (params.go).
package session
