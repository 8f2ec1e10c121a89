package capability

import "context"

// KeyRecord is the start of a call with an idempotency key.
type KeyRecord struct {
	Session    string // tag of R40, "-" for anonymous callers
	Server     string
	Tool       string
	Key        string
	ArgsSHA256 [32]byte
}

// Ledger remembers across a restart of the pod which idempotency keys were
// started. Its methods may block: the desk calls them on goroutines of its own.
type Ledger interface {
	// Start records the start durably before it returns. seen is the record of an
	// earlier life with the same session, server, tool and key, whose end is unknown.
	Start(ctx context.Context, r KeyRecord) (seen *KeyRecord, err error)
}
