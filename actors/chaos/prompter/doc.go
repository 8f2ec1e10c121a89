// Package prompter is the client of the sessions that have an agent: it opens them, prompts the simulated agents with scripts, cancels,
// leaves and comes back in the middle of a turn, answers questions or does not, and keeps account of what comes back.
//
// # Its place
//
// A [Driver] belongs to one run against one pod whose `[agent].command` is `acpod-chaos agent`; [Prepare] gives that part of the pod's
// config. What the agents do wrong is drawn here, by seed: strikes of a turn stand in its script, strikes before a turn in the agents'
// plan. So the driver knows of each turn how it may end, and writes into the book of invariants what came instead. A [Session] is one
// session across the sockets of its client, and may be used alone.
//
// # What it checks
//
//   - Each prompt is answered once, with an end that its fault allows; a turn whose client was away is told once, by the resume or by
//     `_acpod/turn_ended`.
//   - Every chunk comes whole, once and in order, the last one before its end_turn. After a cut socket chunks may be missing that were
//     on their way or that the pod counted as missed; the order holds, and a turn that ran on has its last chunk.
//   - No session hears of another's turn, and no session's call is executed by another's client.
//   - After the last session nothing lives that was ever recorded in the folder: no agent, no grandchild.
package prompter
