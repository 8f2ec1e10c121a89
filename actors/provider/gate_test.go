package provider

import (
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/mcpjson"
)

// TestWhoWaitsForARateMayGoWhenItsTimeHasCome, whatever is lost in rounding.
func TestWhoWaitsForARateMayGoWhenItsTimeHasCome(t *testing.T) {
	for _, rate := range []float64{0.1, 1, 2, 3, 7} {
		for _, missing := range []float64{1.5e-9, 1e-6, 1.0 / 3, 1} {
			now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
			g := newGate(mcpjson.Server{Rate: rate}, now)
			g.tokens = 1 - missing
			if g.pay(now) {
				t.Fatalf("rate %v: it lacks nothing", rate)
			}
			wait := g.wait(now)
			if !g.pay(now.Add(wait)) || wait <= 0 {
				t.Errorf("rate %v, %v missing: not after %v", rate, missing, wait)
			}
		}
	}
}
