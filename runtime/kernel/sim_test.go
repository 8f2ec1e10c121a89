package kernel_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/acpod/acpod/runtime/kerneltest"
)

var (
	seeds = flag.Int("seeds", envInt("ACPOD_SEEDS", 200), "how many seeds the simulation runs")
	seed  = flag.Uint64("seed", 0, "the one seed that the simulation replays")
)

func envInt(name string, or int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return or
}

func TestSimulationKeepsTheInvariants(t *testing.T) {
	first, n := uint64(1), uint64(*seeds)
	if *seed != 0 {
		first, n = *seed, 1
	}
	steps, gens, bad := 0, 0, 0
	for s := first; s < first+n; s++ {
		r := kerneltest.Simulate(s)
		steps, gens = steps+r.Steps, gens+r.Generations
		if len(r.Bad) > 0 {
			if t.Errorf("%v", r); bad > 3 {
				break
			}
			bad++
		}
	}
	t.Logf("%d seeds, %d steps, %d generations", n, steps, gens)
	if gens < int(n) {
		t.Errorf("only %d generations: the simulation does nothing", gens)
	}
}

func TestSimulationReplaysASeed(t *testing.T) {
	distinct := map[uint64]bool{}
	for s := uint64(1); s <= 40; s++ {
		a, b := kerneltest.Simulate(s), kerneltest.Simulate(s)
		if a.Trace != b.Trace || a.Steps != b.Steps {
			t.Errorf("seed %d: two runs differ: %d steps and %d", s, a.Steps, b.Steps)
		}
		distinct[a.Trace] = true
	}
	if len(distinct) != 40 {
		t.Errorf("40 seeds gave %d runs", len(distinct))
	}
}
