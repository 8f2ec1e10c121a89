package inspect

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

// A profile is built in memory before it is sent, some of them by the number of goroutines. So one is made at a time, and what would
// grow without a bound is cut or refused: the listener may be open to every local process.
const (
	// stacksOf is up to how many goroutines are written out with their stacks as text (debug=2): at about 1 KiB each.
	stacksOf = 8_000
	// traceBytes is where an execution trace ends; the runtime makes some megabytes a second of a busy process.
	traceBytes = 16 << 20
	// profileFor is the longest that a profile may take.
	profileFor = 5 * time.Minute
)

// ProfileBytes is what a profile may cost while it is made and sent: a trace, or the stacks of [stacksOf] goroutines in a buffer that
// grows by doubling.
const ProfileBytes = 2*traceBytes + 8<<20

// profile serves one of the runtime's profiles, when none is being made.
func (i *Inspector) profile(next http.HandlerFunc) http.Handler {
	return i.keyed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case i.profiles <- struct{}{}:
			defer func() { <-i.profiles }()
		default:
			w.Header().Set("Retry-After", "5")
			fail(w, http.StatusServiceUnavailable, "a profile is being made; one at a time")
			return
		}
		if seconds(r) > profileFor {
			fail(w, http.StatusBadRequest, fmt.Sprintf("seconds is %d at most", int(profileFor.Seconds())))
			return
		}
		if deep, _ := strconv.Atoi(r.FormValue("debug")); deep >= 2 && runtime.NumGoroutine() > stacksOf && strings.HasSuffix(r.URL.Path, "/goroutine") {
			fail(w, http.StatusServiceUnavailable, fmt.Sprintf("there are more than %d goroutines; with debug=1 they are grouped", stacksOf))
			return
		}
		next(w, r)
	}))
}

func seconds(r *http.Request) time.Duration {
	n, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(min(n, 1e6) * float64(time.Second))
}

// serveTrace is /debug/pprof/trace. The runtime keeps what a slow reader has not taken, without a bound: so the trace is taken whole,
// up to [traceBytes], and sent when it has ended.
func serveTrace(w http.ResponseWriter, r *http.Request) {
	held := &capped{full: make(chan struct{})}
	if err := trace.Start(held); err != nil {
		fail(w, http.StatusServiceUnavailable, "a trace cannot begin: "+err.Error())
		return
	}
	d := seconds(r)
	if d == 0 {
		d = time.Second
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-held.full:
	case <-r.Context().Done():
	}
	trace.Stop()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="trace"`)
	for _, piece := range held.pieces {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// capped keeps whole pieces up to traceBytes, and drops the others.
type capped struct {
	pieces [][]byte
	size   int
	full   chan struct{}
	over   bool
}

// Write implements io.Writer. The runtime calls it from one goroutine, which has ended when trace.Stop returns.
func (c *capped) Write(b []byte) (int, error) {
	switch {
	case c.over:
	case c.size+len(b) > traceBytes:
		c.over = true
		close(c.full)
	default:
		c.pieces = append(c.pieces, append(make([]byte, 0, len(b)), b...))
		c.size += len(b)
	}
	return len(b), nil
}

// handleProfiles registers the runtime's profiles.
func (i *Inspector) handleProfiles(mux *http.ServeMux) {
	mux.Handle("/debug/pprof/", i.profile(pprof.Index))
	mux.Handle("/debug/pprof/cmdline", i.profile(pprof.Cmdline))
	mux.Handle("/debug/pprof/profile", i.profile(pprof.Profile))
	mux.Handle("/debug/pprof/symbol", i.profile(pprof.Symbol))
	mux.Handle("/debug/pprof/trace", i.profile(serveTrace))
}
