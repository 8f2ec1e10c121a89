package scale

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report for people.
func (r *Report) WriteTable(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("%d extensions, %d calls a second for %.0f s, %d bytes of arguments and of result", r.Asked.Extensions, r.Asked.Rate, r.Asked.Seconds, r.Asked.Payload)
	line("%d CPUs (%s), %.1f GiB, %s, %s, %s", r.Machine.CPUs, r.Machine.CPU, float64(r.Machine.Memory)/(1<<30), r.Machine.System, r.Machine.Go, r.Started.Format("2006-01-02 15:04 MST"))
	line("")
	if r.Pod != nil {
		r.sides(line)
	}
	for _, i := range r.Invariants {
		held := "held"
		if !i.Held {
			held = "BROKEN: " + i.Why
		}
		line("%s\t%s", i.Name, held)
	}
	return w.Flush()
}

func (r *Report) sides(line func(string, ...any)) {
	echo := r.Echo
	if echo == nil {
		echo = &Side{}
	}
	row := func(name, format, ratio string, of func(*Side) float64) {
		last := ""
		if x := r.Ratios[ratio]; x > 0 {
			last = fmt.Sprintf("%.1f", x)
		}
		line("%s\t"+format+"\t"+format+"\t%s", name, of(r.Pod), of(echo), last)
	}
	const kib, mib = 1024, 1 << 20
	line("\tpod\tbare echo\tratio")
	row("connected in, s", "%.1f", "", func(s *Side) float64 { return s.Ramp.Seconds })
	row("one ready after, p50 ms", "%.1f", "", func(s *Side) float64 { return s.Ramp.Ready.P50 })
	row("one ready after, p99 ms", "%.1f", "", func(s *Side) float64 { return s.Ramp.Ready.P99 })
	row("idle: resident a connection, KiB", "%.1f", ratioIdleRSS, func(s *Side) float64 { return s.Idle.PerConnection.RSS / kib })
	row("idle: heap and stacks a connection, KiB", "%.1f", ratioIdleHeap, func(s *Side) float64 { return (s.Idle.PerConnection.Heap + s.Idle.PerConnection.Stacks) / kib })
	row("idle: heap a connection, KiB", "%.1f", "", func(s *Side) float64 { return s.Idle.PerConnection.Heap / kib })
	row("idle: stacks a connection, KiB", "%.1f", "", func(s *Side) float64 { return s.Idle.PerConnection.Stacks / kib })
	row("idle: goroutines a connection", "%.2f", "", func(s *Side) float64 { return s.Idle.PerConnection.Goroutines })
	row("idle: resident, MiB", "%.0f", "", func(s *Side) float64 { return float64(s.Idle.RSS) / mib })
	row("idle: CPU, % of one", "%.1f", "", func(s *Side) float64 { return 100 * s.Idle.CPU })
	row("load: resident a connection, KiB", "%.1f", ratioLoadRSS, func(s *Side) float64 { return s.Load.PerConnection.RSS / kib })
	row("load: heap and stacks a connection after it, KiB", "%.1f", "", func(s *Side) float64 { return (s.Load.PerConnection.Heap + s.Load.PerConnection.Stacks) / kib })
	row("load: resident mean, MiB", "%.0f", "", func(s *Side) float64 { return float64(s.Load.RSSMean) / mib })
	row("load: resident peak, MiB", "%.0f", "", func(s *Side) float64 { return float64(s.Load.RSSPeak) / mib })
	row("calls answered", "%.0f", "", func(s *Side) float64 { return float64(s.Load.Answered) })
	row("calls a second", "%.1f", "", func(s *Side) float64 { return s.Load.Rate })
	row("latency p50, ms", "%.2f", ratioP50, func(s *Side) float64 { return s.Load.Latency.P50 })
	row("latency p90, ms", "%.2f", "", func(s *Side) float64 { return s.Load.Latency.P90 })
	row("latency p99, ms", "%.2f", ratioP99, func(s *Side) float64 { return s.Load.Latency.P99 })
	row("latency p99.9, ms", "%.2f", "", func(s *Side) float64 { return s.Load.Latency.P999 })
	row("latency max, ms", "%.2f", "", func(s *Side) float64 { return s.Load.Latency.Max })
	row("of it lateness of the harness, p99 ms", "%.2f", "", func(s *Side) float64 { return s.Load.Lateness.P99 })
	row("CPU a call, µs", "%.0f", ratioCPU, func(s *Side) float64 { return s.Load.CPU })
	row("CPU of the harness a call, µs", "%.0f", "", func(s *Side) float64 { return s.Load.HarnessCPU })
	row("others on the machine, CPUs", "%.1f", "", func(s *Side) float64 { return s.Load.OthersCPU })
	row("socket bytes a call, to the server", "%.0f", "", func(s *Side) float64 { return s.Load.ToServer })
	row("socket bytes a call, to the client", "%.0f", "", func(s *Side) float64 { return s.Load.ToClient })
	line("")
	for _, side := range []struct {
		name string
		*Side
	}{{"pod", r.Pod}, {"echo", echo}} {
		var kinds []string
		for kind, f := range side.Load.Failed {
			kinds = append(kinds, fmt.Sprintf("%d × %s (%s)", f.N, kind, f.Example))
		}
		slices.Sort(kinds)
		if len(kinds) > 0 {
			line("calls that went wrong, %s: %s", side.name, strings.Join(kinds, "; "))
		}
	}
}
