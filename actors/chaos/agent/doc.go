// Package agent is a simulated ACP agent that misbehaves by name and by seed: the other side of a pod's standard
// input and output.
//
// # Its place
//
// `acpod-chaos agent` runs it. A pod starts it as `[agent].command`, once for each session and once at its own start
// to learn what the agent offers. What it does wrong comes from two places: from its [Plan], a file that every process
// reads when it starts, for what happens before there is a prompt, and from the prompt itself, whose text is a
// [Script]. The package knows the protocol packages and nothing of the server.
//
// # What a client may rely on
//
// Without a fault it is a plain agent: it answers initialize, session/new, session/load and session/resume, opens one
// turn a prompt, honours session/cancel at once, and answers its prompt after everything else that it says in the turn.
// What it streams is framed ([Chunk], [Note]) and carries the key of its turn, so that a client can prove of each byte
// that it came, once, in order, whole, before the answer, and in the right session, however the pod cut or joined the
// updates ([Book]).
//
// A fault ([Strike]) has a name, a stage at which it strikes, and a variation. [Faults] lists them all. Each strike is
// written down in the folder of records before it happens, and so is each process, so that what should have struck and
// what should be gone can be looked up ([Records]).
package agent
