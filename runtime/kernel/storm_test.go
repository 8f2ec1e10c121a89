package kernel_test

import (
	"testing"

	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestStormOnRealGoroutinesKeepsTheInvariants(t *testing.T) {
	gens := 0
	for s := uint64(1); s <= 12; s++ {
		r := kerneltest.Storm(s)
		gens += r.Generations
		if len(r.Bad) > 0 {
			t.Fatalf("storm of seed %d: %v\n%s", s, r.Bad, r.Events)
		}
	}
	t.Logf("%d generations", gens)
}
