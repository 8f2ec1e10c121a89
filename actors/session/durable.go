package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DurableBytes is the longest record that a Store takes, written down: 64 additional directories of the longest path that there is are
// half of it. A longer one is a *RecordError.
const DurableBytes = 512 << 10

// Durable is the part of a session that outlives its pod. It opens nothing by itself: it only lets a client that its owner
// admits find the conversation again. Its texts are UTF-8; Pins and LastTurn are kept to the byte.
type Durable struct {
	ID         string   // sess_<uuid>
	Key        string   // the name of the key that it was opened with, "" for the keyless loopback
	Client     [32]byte // SHA-256 of the client's secret; zero = it gave none
	Agent      string   // the agent's own session id; "" = the agent has none, or has forgotten it
	Cwd        string
	Additional []string // further directories
	Servers    []string // every name that a client declared
	Pins       []byte   // JSON: what its servers' tools were, when nobody else keeps that; nil = none
	LastTurn   []byte   // JSON: {stopReason} or {error}; nil = none
	Missed     int64    // updates that no client has read and none will, and their bytes: the next one is told
	MissedB    int64
	Created    time.Time
	Updated    time.Time // end of the last turn, or the last client's coming
}

// Lease lets one pod change one record. A Store gives a higher generation with each, and refuses what comes with an older one.
type Lease struct {
	ID         string // of the session
	Owner      string // the pod, by a name that no other has
	Generation uint64
	Expires    time.Time // unless renewed; zero = it ends with the pod's process, and no sooner
}

// Store keeps the records of sessions. Every method but Figures may wait for a disk or a network, so an actor calls it through c.Go; all
// are safe from any goroutine. What was said to be written stays, whatever happens to this process the moment after; what was not said to
// be written may be there all the same. Calls for one lease come one after the other: of two at once either may be the last.
//
// An error that is none of those named here is a *RecordError. The record is then as it was before.
type Store interface {
	// Create writes a new record and gives its lease. The id must be new.
	Create(ctx context.Context, d Durable) (Lease, error)
	// Take gives a record that no other pod holds, with its lease: ErrNoRecord, or *HeldError. If this pod holds it already, an
	// earlier life of whoever asks took it, and that lease is lost.
	Take(ctx context.Context, id string) (Durable, Lease, error)
	// Put replaces the record; ErrLeaseLost when somebody else has it now, or when it was let go of or deleted.
	Put(ctx context.Context, l Lease, d Durable) error
	// Release writes the record a last time and lets go of it. The record stays until Sweep, Delete, or until there is no room for all
	// that nobody holds: then those go first that were changed longest ago, of the key that has most. If it cannot be written it is let
	// go of all the same, as it was.
	Release(ctx context.Context, l Lease, d Durable) error
	// Delete removes the record for good; ErrLeaseLost like Put.
	Delete(ctx context.Context, l Lease) error
	// List gives the records of a key and client, held or not, at most limit, the latest first. A zero client lists nothing.
	List(ctx context.Context, key string, client [32]byte, limit int) ([]Durable, error)
	// Renew extends every lease of this pod. It is called well before Expires.
	Renew(ctx context.Context) error
	// Sweep removes records that nobody holds and that were last changed before that time.
	Sweep(ctx context.Context, before time.Time) (removed int, err error)
	// Figures are for the tree. They wait for nothing.
	Figures() Figures
}

// Figures say what a Store keeps, and what has befallen it since it was opened.
type Figures struct {
	Kind      string // "files", "memory"
	Records   int    // held or not
	Held      int    // by this pod
	Forgotten int64  // let go for want of room, before their time
	Aside     int64  // could not be read, or are of a newer acpod: they are kept under another name
	Failed    int64  // could not be written
}

var (
	// ErrNoRecord says that there is no record with that id, or none that can be read.
	ErrNoRecord = errors.New("no such session")
	// ErrLeaseLost says that another pod, or a later life of this one, has the record.
	ErrLeaseLost = errors.New("the session belongs to another pod now")
)

// HeldError says that another pod has the record.
type HeldError struct {
	Owner   string
	Expires time.Time
}

func (e *HeldError) Error() string {
	if e.Expires.IsZero() {
		return "the session is held by another pod that runs: stop that one, or resume the session there"
	}
	return fmt.Sprintf("the session is held by another pod until %s: try again then", e.Expires.Format(time.RFC3339))
}

// RecordError says that a record could not be written, read or removed. Its text tells what to do, and names no session.
type RecordError struct {
	Do  string // "write", "read", "remove"
	Err error
	Fix string // what the operator does next
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("cannot %s the record of the session: %v; %s", e.Do, e.Err, e.Fix)
}

func (e *RecordError) Unwrap() error { return e.Err }
