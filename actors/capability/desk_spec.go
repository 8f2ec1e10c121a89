package capability

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// DeskKind is the kind of a desk in the tree.
const DeskKind = "desk"

// DeskConfig is what a desk is made of.
type DeskConfig struct {
	Tag    string                // acp.SessionTag, for logs and audit, "-" for anonymous callers
	Owner  string                // acp.SessionSum, to whom idempotency keys belong, "-" for anonymous callers; "" = Tag
	View   *atomic.Pointer[View] // where the desk publishes; whoever spawns it shares it with callers
	Grants *Grants               // nil = DefaultGrants
	Audit  Audit                 // nil = none
	Ledger Ledger                // nil = idempotency keys live as long as the desk's slot
	Open   *atomic.Int64         // the pod's count of calls in flight; may be nil
	// Roster are the operator's servers, which every desk has; nil = those of Configured, with tables of the desk's own.
	Roster     *Roster
	Configured []Configured
	// Pins hold back tools that changed; nil = nothing is pinned.
	Pins Pins
	// PinScope is [PinOwner].Scope of the session's own servers; "" = nobody knows its client again, so they are pinned for the
	// session's life alone.
	PinScope string
	// OwnPins are those of a former life of the session, as [View.OwnPins] gave them; nil = none.
	OwnPins []byte
	// Redact takes out of results what the operator's rules name; nil = nothing. It returns its argument where nothing was found.
	Redact func(result []byte) []byte
	// Schemas are the pod's compiled schemas; nil = the desk has its own.
	Schemas *Schemas
	Limits  DeskLimits
}

// DeskLimits are the bounds of one desk. Zero = the default.
type DeskLimits struct {
	Timeout      time.Duration // of one call: mcp.tunnel_timeout, 170 s
	CallMax      time.Duration // that no call outlives, whatever progress it makes: mcp.call_max, 30 min
	OrphanWindow time.Duration // mcp.orphan_window, 30 s
	KeepResult   time.Duration // of a call with a key, for repeats, 10 min
	ResultBytes  int64         // of one result: limits.result_bytes, 8 MiB
	PageBytes    int64         // of the text of a page of a search, unless its first entry is longer: 32 KiB, which a model can read
	Calls        int           // open, 256
	Keys         int           // idempotency keys remembered, 1024
	Names        int           // given in the life of a session, 8192
	Servers      int           // names of servers declared in the life of a session, 1024
	KeptBytes    int64         // finished results kept for repeats, 1 MiB
}

func (l DeskLimits) withDefaults() DeskLimits {
	l.CallMax = orDefault(l.CallMax, 30*time.Minute)
	l.Timeout = min(orDefault(l.Timeout, 170*time.Second), l.CallMax)
	l.OrphanWindow = orDefault(l.OrphanWindow, 30*time.Second)
	l.KeepResult = orDefault(l.KeepResult, 10*time.Minute)
	l.ResultBytes = orDefault(l.ResultBytes, 8<<20)
	l.PageBytes = orDefault(l.PageBytes, 32<<10)
	l.Calls = orDefault(l.Calls, 256)
	l.Keys = orDefault(l.Keys, 1024)
	l.Names = orDefault(l.Names, 8192)
	l.Servers = orDefault(l.Servers, 1024)
	l.KeptBytes = orDefault(l.KeptBytes, 1<<20)
	return l
}

func orDefault[T cmp.Ordered](v, otherwise T) T {
	var zero T
	if v <= zero {
		return otherwise
	}
	return v
}

// DeskSpec describes the desk of one session, or the facade's own for anonymous
// callers, as a child of whoever spawns it. After a crash it comes back with its
// servers and names; calls that it had have ended, and keys that it had started
// answer outcome_unknown.
func DeskSpec(name string, cfg DeskConfig) kernel.Spec {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Grants == nil {
		cfg.Grants = DefaultGrants()
	}
	if cfg.View == nil {
		cfg.View = new(atomic.Pointer[View])
	}
	if cfg.Owner == "" {
		cfg.Owner = cfg.Tag
	}
	if cfg.Ledger == nil {
		cfg.Ledger = newMemoryLedger()
	}
	if cfg.Roster == nil && len(cfg.Configured) > 0 {
		cfg.Roster = NewRoster(cfg.Configured)
	}
	if cfg.Schemas == nil {
		cfg.Schemas = NewSchemas()
	}
	if cfg.Open == nil {
		cfg.Open = new(atomic.Int64)
	}
	if cfg.Audit == nil {
		cfg.Audit = noAudit{}
	}
	return kernel.Spec{Name: name, Kind: DeskKind, Restart: kernel.Permanent,
		New: func() kernel.Behavior { return newDesk(cfg) }}
}

// noAudit is for a desk that was given none.
type noAudit struct{}

func (noAudit) Record(Entry) {}
