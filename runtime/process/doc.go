// Package process runs child processes for any actor. It knows neither ACP nor MCP: lines go in, a stream comes out.
//
// # A process and its group
//
// [Start] puts a child into a process group of its own, with an explicit environment, three pipes and no other
// descriptor. What is owed from then on is that the whole group is gone, not only its leader: an adapter that was
// started by a wrapper, or a helper that was left behind, is a member too. [Process.Stop] pays it with a ladder: the
// end of stdin, a grace, TERM to the group, a grace, KILL to the group; its [Report] says how far it had to climb.
// That the leader ended is known without a call ([Process.Exited]).
//
// # Bounds
//
// What waits for stdin is bounded in bytes, and a child that reads nothing for a while is stopped. Stderr is always
// drained, into a ring and, line by line, bounded, escaped and rate-limited, to a logger. Stdout is the caller's: a
// caller that does not read it makes the child wait in its pipe.
//
// # When this process dies
//
// Three nets, each below the other. The [Guardian] is this program again, started first, in a session of its own; it
// is told each group over a pipe and ends all of them when the pipe closes, which a kill -9 does too. PDEATHSIG kills
// each leader, set from a thread that lives as long as the child does (the signal follows the thread, not the
// process). [Sweep] reads the records of pods that are gone and ends what is still there; a pod calls it when it
// starts.
//
// # What leaves its group
//
// A process that calls setsid belongs to the child all the same. It is found by descent, by what was noted of it
// earlier, by the group or session that it leads, by a mark in its environment ([Spec.Mark]), or by a cgroup. [Parent] makes this
// process the one to which orphans come, so that the descent from it is never lost; it collects strangers, never a
// child whose status somebody waits for, and ends those whose child has ended. Guardian and records know what was noted, and
// the hash of the mark. [Peers] tells whether a connection comes from one of all these. One that became another user
// is beyond this.
//
// Linux only: process groups, PDEATHSIG and /proc are used as Linux has them.
package process
