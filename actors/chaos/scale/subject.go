package scale

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// subject is a server that is measured: the pod, or the echo server.
type subject interface {
	name() string
	pid() int
	// collect ends a garbage collection of the server and gives what its runtime says after it.
	collect(ctx context.Context) (Runtime, error)
	// dial connects one client and returns when it is ready for calls.
	dial(ctx context.Context, number int) (client, error)
}

// Runtime is what a Go process says of itself.
type Runtime struct {
	Heap       int64 `json:"heap_bytes"`  // live objects
	Stacks     int64 `json:"stack_bytes"` // in use
	Goroutines int64 `json:"goroutines"`
}

// Figures are a process at one moment.
type Figures struct {
	Runtime
	RSS int64 `json:"rss_bytes"`
}

// look collects garbage and gives the figures after it. The resident memory is that before it, which is what an operator sees.
func look(ctx context.Context, s subject) (Figures, error) {
	rss := residentOf(s.pid())
	r, err := s.collect(ctx)
	if err != nil {
		return Figures{}, fmt.Errorf("the figures of %s: %w", s.name(), err)
	}
	return Figures{r, rss}, nil
}

// residentOf is the resident memory of a process in bytes, 0 when there is no such process.
func residentOf(pid int) int64 { return statusOf(pid, "VmRSS:") }

// peakOf is the largest resident memory that it had.
func peakOf(pid int) int64 { return statusOf(pid, "VmHWM:") }

func statusOf(pid int, field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field); found {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// processorOf is the processor time that a process used, user and system.
func processorOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ is 100 on every Linux that Go runs on
}

// machineProcessor is the processor time that the whole machine has used, whoever did.
func machineProcessor() time.Duration {
	fields := strings.Fields(fieldOf("/proc/stat", "cpu "))
	var ticks int64
	for i, field := range fields[:min(len(fields), 8)] { // what guests used is in user time already
		if n, _ := strconv.ParseInt(field, 10, 64); i != 3 && i != 4 { // idle, and waiting for a disk
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// resident samples the resident memory of a process until it is stopped.
type resident struct {
	stop chan struct{}
	done chan struct{}
	sum  int64
	n    int64
	max  int64
}

func watchResident(pid int) *resident {
	r := &resident{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			now := residentOf(pid)
			r.sum, r.n, r.max = r.sum+now, r.n+1, max(r.max, now)
			select {
			case <-r.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return r
}

// end gives the mean and the largest of the samples.
func (r *resident) end() (mean, peak int64) {
	close(r.stop)
	<-r.done
	return r.sum / r.n, r.max
}

// newHTTP is a client for the figures of a server, with connections of its own.
func newHTTP() *http.Client { return &http.Client{Transport: &http.Transport{}} }
