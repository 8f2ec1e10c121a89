package scale

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/chaos/pod"
)

// Invariant is something that the pod promises, and whether it held.
type Invariant struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
	Why  string `json:"violation,omitempty"`
}

func invariant(name string, why string) Invariant { return Invariant{name, why == "", why} }

// answers judges the calls: each was answered, and executed once, whoever asked twice.
func answers(l Load, served int64) []Invariant {
	var failed []string
	for kind, f := range l.Failed {
		failed = append(failed, fmt.Sprintf("%d × %s (%s)", f.N, kind, f.Example))
	}
	slices.Sort(failed)
	twice := ""
	if served != int64(l.Calls) {
		twice = fmt.Sprintf("%d calls were made and %d executed", l.Calls, served)
	}
	return []Invariant{
		invariant("every call is answered by the extension that it was meant for", strings.Join(failed, "; ")),
		invariant("no call is executed twice", twice),
	}
}

// servedBy counts what the extensions have executed.
func (f fleet) served() (n int64) {
	for _, one := range f {
		n += one.(podClient).extension.served.Load()
	}
	return n
}

// rest waits until the pod is at rest after its clients have left, and says what is not.
func rest(ctx context.Context, p *thePod, side *Side, files int) []Invariant {
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	var metrics pod.Metrics
	calm := until(ctx, func() (why string) {
		var err error
		if metrics, err = p.Metrics(ctx); err != nil {
			return err.Error()
		}
		for _, name := range []string{"acpod_pod_connections", "acpod_pod_sessions"} {
			if n := metrics.Sum(name); n != 0 {
				return fmt.Sprintf("%s is %.0f", name, n)
			}
		}
		tree, err := p.Tree(ctx)
		if err != nil {
			return err.Error()
		}
		return tree.Unrest()
	})
	p.callers.close()
	goroutines := until(ctx, func() string {
		m, err := p.Metrics(ctx)
		if err != nil {
			return err.Error()
		}
		return grown("goroutines", int64(m.Goroutines()), side.Baseline.Goroutines)
	})
	open := until(ctx, func() string { return grown("open files", int64(p.FDs()), int64(files)) })
	return []Invariant{
		invariant("accounts read zero and nothing is owed at rest", calm),
		invariant("tokens minted are revoked", balance(metrics, "tokens minted", "acpod_tokens_minted_total", "revoked", "acpod_tokens_revoked_total")),
		invariant("MCP connections opened are closed", balance(metrics, "MCP connections opened", "acpod_mcp_connections_opened_total", "closed", "acpod_mcp_connections_closed_total")),
		invariant("resident memory stays under the worst case that the pod tells", bounded(side.PeakRSS, metrics)),
		invariant("goroutines are back", goroutines),
		invariant("open files are back", open),
	}
}

// slack is what the pod may have more of than before for those who look at it: keep-alive connections of its debug listener.
const slack = 16

func grown(what string, now, before int64) string {
	if now > before+slack {
		return fmt.Sprintf("%d %s, before there were %d", now, what, before)
	}
	return ""
}

// bounded compares a resident memory with the pod's own word.
func bounded(peak int64, m pod.Metrics) string {
	if worst := int64(m.Sum("acpod_pod_worst_case_bytes")); peak == 0 || peak > worst {
		return fmt.Sprintf("%d bytes were resident, the pod's worst case is %d", peak, worst)
	}
	return ""
}

func balance(m pod.Metrics, what, name, undone, other string) string {
	if a, b := m.Sum(name), m.Sum(other); a != b || a == 0 {
		return fmt.Sprintf("%s: %.0f, %s: %.0f", what, a, undone, b)
	}
	return ""
}

// until asks until nothing is wrong any more or the time is over, and says what is wrong then.
func until(ctx context.Context, wrong func() string) (why string) {
	for {
		now := wrong()
		if ctx.Err() != nil {
			if now = why; now == "" {
				now = context.Cause(ctx).Error()
			}
			return now
		}
		if why = now; why == "" {
			return ""
		}
		select {
		case <-ctx.Done():
			return why
		case <-time.After(100 * time.Millisecond):
		}
	}
}
