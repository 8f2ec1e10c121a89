// Package store keeps the records of sessions: what of them outlives a pod (session.Durable), with leases, so that one pod at
// a time changes one record.
//
// It is two implementations of session.Store: files in the state directory, which are the embedded default, and memory, for a pod
// that has no such directory. Nothing else in the project knows where records are; the day they live in a database that several
// pods share, it is a third one. It knows nothing of clients, agents or actors.
package store
