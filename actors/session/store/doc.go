// Package store keeps the records of sessions: what of them outlives a pod (session.Durable), with leases, so that one pod at
// a time changes one record.
//
// It is two implementations of session.Store: files in the state directory ([Open]), which are the embedded default, and memory
// ([NewMemory]), for a pod that has no such directory. Nothing else in the project knows where records are; the day they live in a
// database that several pods share, it is a third one. It knows nothing of clients, agents or actors.
//
// # The folder
//
// sessions/, mode 0700, in the state directory:
//
//   - <hash>.json, mode 0600, is one record. The name is a hash of the session's id, which opens the session to whoever has its key: it is
//     not for who may only list a folder.
//   - <hash>.json.damaged-<time> could not be read; <hash>.json.newer is of a newer acpod, and comes back when that runs again.
//     Neither is ever removed.
//   - <pod>-<n>.tmp is a record that is being written. Those of a pod that has died are removed when the next one opens the folder.
//   - pods/<pod> is held under a lock for as long as that pod lives. A record names the pod that has it: once the lock is free, however
//     that pod ended, so are its records.
//   - lock is held for some milliseconds by whoever changes a record, so that what was checked still holds when it is changed.
//
// # A change
//
// A record is written to a file of its own and synced by whoever asks, many at once. Then one of those who wait takes the lock and, for
// all of them, checks that the lease still holds and renames; one sync of the folder pays for all. Only after that is anybody told. So a
// record is at each moment the old or the new one, whole, and what was acknowledged stays.
//
// Mutexes are right here as in [capability/pins]: this is no actor's state but the pod's files, and the lock orders its writers.
package store
