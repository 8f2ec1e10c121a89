package kernel_test

import (
	"fmt"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func refusals(k *kernel.Kernel) map[string]int64 {
	out := map[string]int64{}
	for _, r := range k.Refusals() {
		out[r.Kind+" "+r.Scope] += r.Count
	}
	return out
}

func TestRefusalsOutliveTheGenerationsThatRefused(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	for n := range 3 {
		spec := kerneltest.NewProbe().Spec(fmt.Sprint("conn-", n))
		spec.Kind = "conn"
		ref := kerneltest.Spawn(t, root, spec)
		kerneltest.Do(t, ref, func(c *kernel.Ctx) {
			c.Refuse("outbound_bytes")
			c.Refuse("outbound_bytes")
		})
		ref.CountRefusal("late_answer")
		if got := refusals(k); got["conn outbound_bytes"] != int64(2*n+2) || got["conn late_answer"] != int64(n+1) {
			t.Errorf("after %d: %v", n+1, got)
		}
		ref.Stop(nil)
		<-ref.Done()
		if got := refusals(k); got["conn outbound_bytes"] != int64(2*n+2) || got["conn late_answer"] != int64(n+1) {
			t.Errorf("after the end of %d: %v", n+1, got)
		}
	}
}

func TestAScopeMadeOfWhatAPeerChoseDoesNotGrowTheBook(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	ref := kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("loose"))
	const sorts = 10 * kernel.MaxRefusals
	for n := range sorts {
		ref.CountRefusal(fmt.Sprint("scope ", n))
	}
	counted, total := len(k.Refusals()), int64(0)
	for _, r := range k.Refusals() {
		total += r.Count
	}
	if counted > kernel.MaxRefusals+1 || total != sorts {
		t.Errorf("%d pairs with %d refusals, want at most %d with %d", counted, total, kernel.MaxRefusals+1, sorts)
	}
	var shown map[string]int64
	for _, child := range k.Tree().Children {
		if child.Name == "loose" {
			shown = child.Refused
		}
	}
	if len(shown) > kernel.MaxRefusals+1 || shown[kernel.OtherRefusals] < sorts-kernel.MaxRefusals {
		t.Errorf("the tree shows %d scopes, %d under other", len(shown), shown[kernel.OtherRefusals])
	}
}
