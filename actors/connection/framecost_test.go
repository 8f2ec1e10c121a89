//go:build !race

package connection

import (
	"runtime"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// What a queued frame costs beside its bytes is what a peer that reads slowly makes it cost, thousands of times over: the account has to
// pay for it, and should not pay for much more. The frames are as short as they come.
func TestAFloodOfTheShortestFramesCostsLittleMoreThanIsCharged(t *testing.T) {
	const n = 20_000
	payer := kernel.NewAccount("session_bytes", 1<<30)
	for name, push := range map[string]func(*testing.T, *client){
		"an update": func(t *testing.T, cl *client) {
			lease, err := cl.account.Acquire(2)
			must(t, err)
			told := 0 // whoever is told of its end has something to remember
			must(t, cl.Offer("a", []byte("{}"), lease, func(bool) { told++ }))
		},
		"a notification": func(t *testing.T, cl *client) { must(t, cl.Notify("a", "m", nil)) },
		"an answer": func(t *testing.T, cl *client) {
			lease, err := cl.account.Acquire(answerReserve)
			must(t, err)
			cl.conclude("a", &openRequest{id: jsonrpc.IntID(1), lease: lease}, []byte("{}"), nil, nil)
		},
		"of the pod's own": func(_ *testing.T, cl *client) { cl.send([]byte("{}")) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{OutboundFrames: 4 * n, OutboundBytes: 1 << 30}.withDefaults()
			cl := &client{account: payer.Child("connection_bytes", 0), cfg: &cfg, out: newOutbox(&cfg), gone: make(chan struct{}), book: newLedger()}
			push(t, cl)
			rounds := n
			if name == "of the pod's own" {
				rounds = controlFrames - 1
			}
			before, charged := heapBytes(), cl.account.Used()
			for range rounds {
				push(t, cl)
			}
			cost, paid := (heapBytes()-before)/int64(rounds), (cl.account.Used()-charged)/int64(rounds)
			t.Logf("%d bytes a frame, %d paid", cost, paid)
			if cost > paid*5/4 || cost < paid/3 {
				t.Errorf("%d bytes a frame are held and %d are paid", cost, paid)
			}
			cl.out.finish(false)
			if used := payer.Used(); used != 0 {
				t.Errorf("%d bytes are charged at rest", used)
			}
		})
	}
}

// heapBytes is what lives on the heap now, with what the allocator rounds up.
func heapBytes() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
