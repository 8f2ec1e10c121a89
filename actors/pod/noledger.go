package pod

import (
	"context"
	"errors"

	"github.com/acpod/acpod/actors/capability"
)

// noLedger stands where started idempotency keys cannot be recorded. A call with a key is refused then: its caller relies on the key to
// repeat it, and after a restart of the pod nobody would know that it was made. It implements [capability.Ledger].
type noLedger struct{ why error }

var errNoState = errors.New("there is no state folder; set state.dir")

// Start implements capability.Ledger.
func (n noLedger) Start(context.Context, capability.KeyRecord) (*capability.KeyRecord, error) {
	return nil, n.why
}

// Seen implements capability.Ledger.
func (noLedger) Seen(context.Context, capability.KeyRecord) *capability.KeyRecord { return nil }

// Forget implements capability.Ledger.
func (noLedger) Forget(context.Context, capability.KeyRecord) error { return nil }
