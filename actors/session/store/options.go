package store

import (
	"log/slog"
	"time"
)

// Options are how much is kept and who is told. The zero value is right but for Log.
type Options struct {
	// Records is how many records are kept that this pod does not hold; 0 = 50,000. Those that it holds are as many as it has sessions.
	Records int
	// Memory is what records that nobody holds may take of the pod's memory, in bytes: [EntryBytes] each for files, and what is in them
	// too for a store in memory; 0 = 64 MiB.
	Memory int64
	// Disk is what the files of such records may take together, in bytes; 0 = 1 GiB.
	Disk int64
	// Log gets what is wrong with the folder; nil = nobody is told.
	Log *slog.Logger
	// Now is only for names of what is set aside and for how often the folder is read again; nil = time.Now.
	Now func() time.Time

	at func(point) error // tests: called before each step of a change, which fails with its error
}

// EntryBytes is what the index holds of one record; a test of its own measures it.
const EntryBytes = 512

const (
	defaultRecords = 50_000
	defaultMemory  = 64 << 20
	defaultDisk    = 1 << 30
)

func (o Options) withDefaults() Options {
	if o.Records <= 0 {
		o.Records = defaultRecords
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.Disk <= 0 {
		o.Disk = defaultDisk
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.at == nil {
		o.at = func(point) error { return nil }
	}
	return o
}

// point is a step of a change.
type point string

const (
	atCreate point = "temp"   // a temporary file is made
	atWrite  point = "write"  // a part of it is written
	atSync   point = "sync"   // it is synced
	atRename point = "rename" // it takes its place
	atRemove point = "remove" // a record is removed
	atFolder point = "folder" // the folder is synced
	atDone   point = "done"   // whoever waits is told; cannot fail
)
