//go:build !race

package kernel_test

import (
	"runtime"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// heapBytes is what lives on the heap now, in bytes, with what the allocator rounds up.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what a finalizer held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

type tiny struct {
	data  []byte
	bytes *kernel.Lease
}

func (t *tiny) Lease() *kernel.Lease { return t.bytes }

// What the smallest message costs is what a flood of them costs: the account has to pay for nearly all of it.
func TestAFloodOfTheSmallestMessagesCostsLittleMoreThanIsCharged(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	block := make(chan struct{})
	defer close(block)
	ref := kerneltest.Spawn(t, root, kernel.Spec{Name: "stuck", New: func() kernel.Behavior { return waits(block) }})
	before, charged := heapBytes(), k.Account().Used()
	for range 100_000 {
		lease, err := ref.Account().Acquire(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := ref.Tell(&tiny{make([]byte, 1), lease}); err != nil {
			t.Fatal(err)
		}
	}
	cost, paid := heapBytes()-before, k.Account().Used()-charged
	t.Logf("%d bytes a message, %d paid", cost/100_000, paid/100_000)
	if cost > paid*5/4 {
		t.Errorf("%d bytes are held and %d are paid", cost, paid)
	}
}

// waits takes nothing before the channel is closed.
type waits chan struct{}

func (w waits) Receive(_ *kernel.Ctx, m kernel.Msg) error {
	<-w
	m.(*tiny).bytes.Release()
	return nil
}
