// Package pins remembers what each tool was when it was first admitted, beyond the life of the pod, and holds back what has
// changed since until the operator accepts it. It implements [capability.Pins].
//
// # Its parts
//
//   - The table is what is known. Reading it takes no lock and no turn: each server's tools are an immutable map behind an atomic
//     pointer. Who changes it takes a lock for a few map operations, as admission has to have its effect when it returns, and
//     thousands of desks admit.
//   - The file, pins.jsonl in the state folder, mode 0600, is a journal: a line is the whole state of one tool, and the last word on
//     it. Lines are appended under a lock of the file's own, after what others appended was read, so that several
//     pods and the operator's command lose nothing of each other's. It is written anew when most of it is old.
//   - The actor `pins` owns the goroutine that writes, in batches, and that looks every half second for what others wrote.
//
// # The rules
//
// The first definition of a tool is pinned; another one is held back, whoever asks, and remembered so that the operator accepts what
// was seen and not what comes next. Nothing is forgotten by time. A file of which a line cannot be read is moved aside, what can be read stays
// in force, and until the operator says otherwise no tool without a pin is taken for a new one: ADR 10.
//
// # What it does not know
//
// Sessions, providers, what a tool says. It keeps digests and names, and no secret: a scope is a hash.
package pins
