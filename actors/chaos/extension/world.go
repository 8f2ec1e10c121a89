package extension

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
)

// World is what the extensions of a run share.
type World struct {
	ACP      string // ws://host:port/acp
	Key      string // of /acp, "" for none
	Dice     fault.Dice
	Faults   *fault.Set
	Book     *invariant.Book
	Calls    *ledger.Calls
	Sessions *ledger.Sessions
	Doings   *ledger.Tally // what extensions did and what became of it, by word
	Traffic  *peer.Traffic
	Limits   Limits
	// Secret is told every secret as it is made or given: keys, tokens, session ids.
	Secret func(text string)
	// Revoked looks whether a token that must be dead opens anything; it says what it opened, or nothing.
	Revoked func(ctx context.Context, url, token string) string
	// Prompted says that the sessions have the demo agent, which makes their calls when it is told to.
	Prompted bool
	// Directory is where callers find the sessions: one place for each session of each extension.
	Directory []atomic.Pointer[Entry]

	sessions   atomic.Int64
	stalls     atomic.Int64 // sockets that were left with half a frame on them
	stragglers sync.WaitGroup
	stop       chan struct{}
	once       sync.Once
}

// Limits are the pod's, as its config or the contract's defaults have them. Sizes are in bytes.
type Limits struct {
	Frame, Request, Result, ToolSchema, Tools int
	Tunnel, Orphan, Keepalive, Pong, Write    time.Duration
}

// Entry is a session that callers may call.
type Entry struct {
	Session    int
	Extension  int
	URL, Token string
	Place      string // its name in the pod's tree
	Turns      *Turns // in place of URL and token, where the session has the demo agent
}

// Patience is how long an answer of the pod itself may take on a loaded machine.
const Patience = 60 * time.Second

// DisconnectGrace is how long a disconnect may take: the pod says 4 s, and that it comes beside others.
const DisconnectGrace = 20 * time.Second

// Begin makes the world ready.
func (w *World) Begin(places int) {
	w.Directory = make([]atomic.Pointer[Entry], places)
	w.stop = make(chan struct{})
}

// Let ends what still runs beside the extensions: sockets that were left open on purpose.
func (w *World) Let() {
	w.once.Do(func() { close(w.stop) })
	w.stragglers.Wait()
}

// beside runs f on a goroutine that ends before Let returns; f has to end when stop is closed.
func (w *World) beside(f func(stop <-chan struct{})) {
	w.stragglers.Go(func() { f(w.stop) })
}

func (w *World) nextSession() int { return int(w.sessions.Add(1)) }
