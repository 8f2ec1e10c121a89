// Package capability is the one door between an agent and the tools that
// others serve: what is offered, under which name, whether it may be used, and
// what became of each call.
//
// # Its parts
//
//   - A [Source] is one MCP server that somebody serves: a tunnel, or a
//     [Configured] server of the operator's. It publishes an immutable [Toolset] and takes
//     calls.
//   - The [Roster] is the operator's servers as all desks share them. Nobody tells a desk when one of them
//     changes: whoever searches, or asks for a name not yet known, has the desk look, and wait
//     for those that have to list first. So a thousand idle sessions cost a provider nothing.
//   - [Grants] is the operator's policy: which servers of clients are admitted
//     and which of their published tools may be seen and called. Deny by default.
//   - A desk is the actor of one session (one more serves anonymous callers).
//     It owns the session's names, its calls in flight, its idempotency keys
//     and its orphans. It publishes a [View].
//   - [Search], [Execute] and [Direct] are what the facade calls, from any goroutine,
//     with a [Caller].
//   - [Pins] hold back tools that are not what they were when they were admitted.
//
// # The rules
//
// The catalog is what is fetched and granted, computed when it is read; no
// cache and no list, early or late, shows more than the policy of that moment.
// A name that was shown once keeps meaning the same server and tool until the
// session ends. What the operator's filter or grants leave out connects nothing and starts nothing. Every call and every refusal is in the audit. Whatever was sent and not answered ends as
// outcome_unknown unless the tool only reads: nothing is repeated silently.
//
// # What it does not know
//
// Sockets, ACP, HTTP, how a server is reached, or who the caller is beyond the
// desk that its token led to.
package capability
