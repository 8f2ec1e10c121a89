package kernel_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

type idle struct{}

func (idle) Receive(*kernel.Ctx, kernel.Msg) error { return nil }

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestIdleActorsCostNoGoroutineAndLittleMemory(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	kerneltest.Do(t, root, func(*kernel.Ctx) {})
	const n = 10_000
	goroutines, before := runtime.NumGoroutine(), heap()
	kerneltest.Do(t, root, func(c *kernel.Ctx) {
		for i := range n {
			if _, err := c.Spawn(kernel.Spec{Name: fmt.Sprint("idle-", i), Kind: "idle", New: func() kernel.Behavior { return idle{} }}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	kerneltest.Eventually(t, "all run and are idle", func() bool {
		for _, kid := range k.Tree().Children {
			if kid.State != "running" {
				return false
			}
		}
		return runtime.NumGoroutine() <= goroutines+1
	})
	each := (heap() - before) / n
	t.Logf("%d bytes an idle actor", each)
	if each > 3<<10 {
		t.Errorf("an idle actor costs %d bytes", each)
	}
}

func TestTurnsAreLabelledByKind(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	gate := make(chan struct{})
	r, err := k.Root(kernel.Spec{Name: "root", Kind: "kind-of-thing", New: func() kernel.Behavior { return blocker{gate} }})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Tell("x")
	kerneltest.Eventually(t, "the profile shows the kind", func() bool {
		var b bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(b.String(), `"actor":"kind-of-thing"`)
	})
	close(gate)
}
