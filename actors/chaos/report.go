package chaos

import (
	"fmt"
	"io"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
)

// Report is what became of a run.
type Report struct {
	Seed       uint64              `json:"seed"`
	Config     Settings            `json:"config"`
	Versions   Versions            `json:"versions"`
	Started    time.Time           `json:"started"`
	Seconds    float64             `json:"seconds"` // of the attack
	Calls      Calls               `json:"calls"`
	Latency    ledger.Latency      `json:"latency"`
	Turns      map[string]int64    `json:"turns,omitzero"` // of prompts, by outcome
	TurnTime   *ledger.Latency     `json:"turn_latency,omitzero"`
	Bytes      Bytes               `json:"bytes"`
	Pods       []PodFigures        `json:"pods"`
	Invariants []invariant.Verdict `json:"invariants"`
	Faults     []fault.Count       `json:"faults"`
	Doings     map[string]int64    `json:"doings"` // what extensions did, by word
}

// Settings are the run's.
type Settings struct {
	Spawn      bool    `json:"spawn"`
	Target     string  `json:"target,omitzero"`
	Extensions int     `json:"extensions"`
	Sessions   int     `json:"sessions"`
	Duration   string  `json:"duration"`
	Faults     string  `json:"faults"`
	Rate       float64 `json:"rate"`
	Memory     float64 `json:"memory_factor"`
}

// Versions are those of the programs.
type Versions struct {
	Chaos string `json:"acpod_chaos"`
	Pod   string `json:"acpod,omitzero"`
	Go    string `json:"go"`
}

// Calls are those of the facade.
type Calls struct {
	Made      int64            `json:"made"`
	Executed  int64            `json:"executed"`
	ByOutcome map[string]int64 `json:"by_outcome"`
}

// Bytes are what crossed the wire.
type Bytes struct {
	SocketsIn  int64 `json:"sockets_in"` // from the pod
	SocketsOut int64 `json:"sockets_out"`
	Facade     int64 `json:"facade"`
}

// PodFigures are what one pod used.
type PodFigures struct {
	Name          string  `json:"name"`
	PeakRSS       int64   `json:"peak_rss_bytes"`
	FinalRSS      int64   `json:"final_rss_bytes"`
	WorstCase     int64   `json:"worst_case_bytes"`
	Goroutines    int     `json:"goroutines"` // at the end
	GoroutinesWas int     `json:"goroutines_before"`
	FDs           int     `json:"fds"`
	FDsWas        int     `json:"fds_before"`
	Children      int     `json:"children"`
	ChildrenWas   int     `json:"children_before"`
	CPUSeconds    float64 `json:"cpu_seconds,omitzero"`
}

// Broken are the promises that were broken.
func (r *Report) Broken() (names []invariant.Name) {
	for _, v := range r.Invariants {
		if !v.Held {
			names = append(names, v.Name)
		}
	}
	return names
}

// Write tells the report to a person.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "seed %d: %d extensions, %d sessions, %.0f s, faults %s\n", r.Seed, r.Config.Extensions, r.Config.Sessions, r.Seconds, r.Config.Faults)
	fmt.Fprintf(w, "calls     %d made, %d executed: %s\n", r.Calls.Made, r.Calls.Executed, counts(r.Calls.ByOutcome))
	fmt.Fprintf(w, "latency   p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.0f ms\n", r.Latency.P50, r.Latency.P90, r.Latency.P99, r.Latency.Max)
	if len(r.Turns) > 0 {
		fmt.Fprintf(w, "turns     %s\n", counts(r.Turns))
	}
	for _, p := range r.Pods {
		fmt.Fprintf(w, "pod %-5s peak %d MiB of %d MiB, at the end %d MiB; goroutines %d (%d before), files %d (%d), children %d (%d)\n",
			p.Name, p.PeakRSS>>20, p.WorstCase>>20, p.FinalRSS>>20, p.Goroutines, p.GoroutinesWas, p.FDs, p.FDsWas, p.Children, p.ChildrenWas)
	}
	for _, f := range r.Faults {
		text := fmt.Sprint(f.Injected)
		if f.Skipped != "" {
			text = "skipped: " + f.Skipped
		}
		fmt.Fprintf(w, "fault %-13s %s %s\n", f.Name, text, counts(f.Variants))
	}
	for _, v := range r.Invariants {
		switch {
		case !v.Held:
			fmt.Fprintf(w, "%-18s BROKEN %d times, first: %s\n", v.Name, v.Violations, v.Violation)
		case v.Exercised == 0:
			fmt.Fprintf(w, "%-18s not tested\n", v.Name)
		default:
			fmt.Fprintf(w, "%-18s held (%d)\n", v.Name, v.Exercised)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
