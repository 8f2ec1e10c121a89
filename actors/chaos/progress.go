package chaos

import (
	"fmt"
	"strings"
	"time"
)

// progress tells where a run is, until the function given back is called.
func (r *run) progress() (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		clock := time.NewTicker(progressPause)
		defer clock.Stop()
		for {
			select {
			case <-end:
				if r.o.Terminal != nil {
					fmt.Fprintln(r.o.Terminal)
				}
				return
			case <-clock.C:
				line := r.line()
				if r.o.Terminal != nil {
					fmt.Fprintf(r.o.Terminal, "\r\x1b[K%.160s", line)
				} else {
					r.o.Log.Info(line)
				}
			}
		}
	}()
	return func() { close(end); <-done }
}

func (r *run) line() string {
	latency := r.tally.Latency()
	faults := int64(0)
	for _, c := range r.faults.Counts() {
		faults += c.Injected
	}
	var pods strings.Builder
	for _, s := range r.states {
		sample := s.Last()
		fmt.Fprintf(&pods, "; pod %s %d MiB, %d sockets, %d sessions, %d agents", s.Name, sample.RSS>>20, sample.Figures.Connections, sample.Figures.Sessions, sample.Figures.Agents)
	}
	broken := "none broken"
	if names := r.book.Broken(); len(names) > 0 {
		broken = fmt.Sprintf("BROKEN %v", names)
	}
	return fmt.Sprintf("%4.0f s %s: %d calls, p50 %.0f ms, p99 %.0f ms%s; %d faults; %s",
		time.Since(r.began).Seconds(), r.phase.Load(), latency.N, latency.P50, latency.P99, pods.String(), faults, broken)
}
