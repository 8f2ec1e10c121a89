// Package capability is the one door between an agent and the tools that
// others serve: what is offered, under which name, whether it may be used, and
// what became of each call.
//
// # Its parts
//
//   - A [Source] is one MCP server that somebody serves: a tunnel today, a
//     configured provider later. It publishes an immutable [Toolset] and takes
//     calls.
//   - [Grants] is the operator's policy: which servers of clients are admitted
//     and which of their published tools may be seen and called. Deny by default.
//   - A desk is the actor of one session (one more serves anonymous callers).
//     It owns the session's names, its calls in flight, its idempotency keys
//     and its orphans. It publishes a [View].
//   - [Search] and [Execute] are what the facade calls, from any goroutine,
//     with a [Caller].
//
// # The rules
//
// The catalog is what is fetched and granted, computed when it is read; no
// cache and no list, early or late, shows more than the policy of that moment.
// A name that was shown once keeps meaning the same server and tool until the
// session ends. Every call and every refusal is in the audit. Whatever was sent and not answered ends as
// outcome_unknown unless the tool only reads: nothing is repeated silently.
//
// # What it does not know
//
// Sockets, ACP, HTTP, how a server is reached, or who the caller is beyond the
// desk that its token led to.
package capability
