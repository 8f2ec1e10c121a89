// Package audit keeps the record of every tool call: what was asked for, by which session, with which arguments (their
// SHA-256, never the arguments) and how it ended.
//
// # Its parts
//
//   - [Recorder] takes records from anybody, on any goroutine, and never blocks: a record that finds the queue full is
//     dropped, counted, and the count is told in the log. It implements [capability.Audit].
//   - The actor `audit` owns the sink. Its pump writes records to the log, past its level, or to an append-only file
//     (mode 0600), one line each. What a peer chose in them is shown escaped.
//
// # What it promises
//
// A record that was taken is written, also across a crash of the actor (the queue outlives the generation) and at an
// orderly stop (the pump empties the queue before it ends). A file that cannot be written, a full disk for one, is
// reported once and tried again with each batch; what it did not take goes to the log. A file that was moved away is
// opened anew, so that logs can be rotated.
//
// # What it does not know
//
// What a call is. It writes the fields of [capability.Entry] and judges nothing.
package audit
