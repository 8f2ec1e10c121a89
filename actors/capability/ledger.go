package capability

import (
	"context"
	"sync"
)

// KeyRecord is the start of a call with an idempotency key. A key belongs to
// one session and capability.
type KeyRecord struct {
	Session string // acp.SessionSum, "-" for anonymous callers
	Server  string
	Tool    string
	Key     string
	ArgsSHA [32]byte
}

// Ledger remembers which idempotency keys were started, beyond the generation
// of the desk that started them. Its methods may block: the desk calls them on
// goroutines of its own, never twice at once for one key.
type Ledger interface {
	// Start remembers the start before it returns. seen is the earlier record of the
	// same session, server, tool and key, if there is one: nothing changes then.
	Start(ctx context.Context, r KeyRecord) (seen *KeyRecord, err error)
	// Seen is the record that Start would give, nil when there is none. Nothing changes.
	Seen(ctx context.Context, r KeyRecord) *KeyRecord
	// Forget takes a start back whose call was never sent.
	Forget(ctx context.Context, r KeyRecord) error
}

// memoryLedger is a ledger that lives as long as the slot of its desk: it
// outlives a crash of the desk and not the pod.
type memoryLedger struct {
	mu    sync.Mutex
	known map[KeyRecord]KeyRecord // by the record without its arguments
	order []KeyRecord
}

// memoryKeys bounds a memoryLedger; the oldest key is forgotten first. It is for a desk without a state folder, and small,
// as no account pays for it.
const memoryKeys = 256

func newMemoryLedger() *memoryLedger { return &memoryLedger{known: map[KeyRecord]KeyRecord{}} }

func (r KeyRecord) slot() KeyRecord {
	r.ArgsSHA = [32]byte{}
	return r
}

func (l *memoryLedger) Start(_ context.Context, r KeyRecord) (*KeyRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen, ok := l.known[r.slot()]; ok {
		return &seen, nil
	}
	if len(l.order) >= memoryKeys {
		delete(l.known, l.order[0])
		l.order = l.order[1:]
	}
	l.known[r.slot()] = r
	l.order = append(l.order, r.slot())
	return nil, nil
}

func (l *memoryLedger) Seen(_ context.Context, r KeyRecord) *KeyRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen, ok := l.known[r.slot()]; ok {
		return &seen
	}
	return nil
}

func (l *memoryLedger) Forget(_ context.Context, r KeyRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, r.slot())
	for i, s := range l.order {
		if s == r.slot() {
			l.order = append(l.order[:i:i], l.order[i+1:]...)
			break
		}
	}
	return nil
}
