package kerneltest

import (
	"context"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Deadline is how long the helpers of this package wait for what should come at once. It is generous: it only ever passes when
// a test has failed.
const Deadline = 20 * time.Second

// Start makes a kernel for one test. At the test's cleanup it is shut down and must be at rest: nobody left, every account zero.
func Start(t testing.TB, o kernel.Options) *kernel.Kernel {
	t.Helper()
	k := kernel.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Deadline)
		defer cancel()
		if r := k.Shutdown(ctx); !r.Empty() {
			t.Errorf("shutdown: %v", r)
			for _, u := range r.Left {
				t.Logf("%s %s: %v\n%s", u.Path, u.What, u.Cause, u.Stack)
			}
		}
		for end := time.Now().Add(Deadline); k.Account().Used() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) { // who is no actor (an HTTP handler) may be a little later
				t.Errorf("account not at rest: %d bytes are still charged", k.Account().Used())
				break
			}
		}
	})
	return k
}

// Root is a root for tests: a behavior that spawns what Spawn asks of it, and hands what it is told to its Probe.
func Root(t testing.TB, k *kernel.Kernel) (kernel.Ref, *Probe) {
	t.Helper()
	p := NewProbe()
	r, err := k.Root(p.Spec("test"))
	if err != nil {
		t.Fatalf("root: %v", err)
	}
	return r, p
}

// Spawn spawns a child of an actor that runs a Probe, such as Root's.
func Spawn(t testing.TB, parent kernel.Ref, s kernel.Spec) kernel.Ref {
	t.Helper()
	var r kernel.Ref
	var err error
	Do(t, parent, func(c *kernel.Ctx) { r, err = c.Spawn(s) })
	if err != nil {
		t.Fatalf("spawn %s: %v", s.Name, err)
	}
	return r
}
