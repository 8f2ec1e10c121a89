package pod

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkCall is the main job: a tool call from the agent's HTTP request through facade, desk, tunnel and connection to
// the extension and back, against a bare relay in the same process. The two take turns, call by call, so that what else the
// machine does falls on both; the ratio of their medians is the figure, not the times. What an extension and a caller cost is
// in the times of both. Nothing asserts on any of it.
func BenchmarkCall(b *testing.B) {
	for _, size := range []struct{ arguments, result int }{
		{1 << 10, 1 << 10}, {1 << 10, 4 << 20}, {1 << 10, 8<<20 - 256}, {512 << 10, 1 << 10}, {1<<20 - 512, 1 << 10},
	} {
		b.Run(fmt.Sprintf("arguments=%s/result=%s", shortSize(size.arguments), shortSize(size.result)), func(b *testing.B) {
			x := startBench(b, size.arguments, size.result, 20)
			var pod, relay []time.Duration
			for turn := 0; b.Loop(); turn++ {
				if turn%2 == 0 {
					pod = append(pod, x.timed(x.pod))
					relay = append(relay, x.timed(x.relay))
				} else {
					relay = append(relay, x.timed(x.relay))
					pod = append(pod, x.timed(x.pod))
				}
			}
			slices.Sort(pod)
			slices.Sort(relay)
			b.ReportMetric(0, "ns/op") // of a pair of calls: it says nothing
			b.ReportMetric(quantile(pod, 50)/quantile(relay, 50), "ratio-p50")
			b.ReportMetric(quantile(pod, 99)/quantile(relay, 99), "ratio-p99")
			b.ReportMetric(quantile(pod, 50), "pod-p50-µs")
			b.ReportMetric(quantile(pod, 99), "pod-p99-µs")
			b.ReportMetric(quantile(relay, 50), "relay-p50-µs")
			b.ReportMetric(quantile(relay, 99), "relay-p99-µs")
			payload := float64(size.arguments + size.result)
			allocs, bytes := x.allocated(x.pod, 64)
			b.ReportMetric(allocs, "pod-allocs/call")
			b.ReportMetric(bytes/payload, "pod-B/payload-B")
			allocs, bytes = x.allocated(x.relay, 64)
			b.ReportMetric(allocs, "relay-allocs/call")
			b.ReportMetric(bytes/payload, "relay-B/payload-B")
		})
	}
}

func (x *bench) timed(c *caller) time.Duration {
	begun := time.Now()
	c.call(x.results)
	return time.Since(begun)
}

// allocated is what one call allocates in the whole process, the caller and the extension included: how many objects and how
// many bytes.
func (x *bench) allocated(c *caller, calls int) (objects, bytes float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		c.call(x.results)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(calls), float64(after.TotalAlloc-before.TotalAlloc) / float64(calls)
}

// quantile is in microseconds, of sorted times.
func quantile(sorted []time.Duration, percent int) float64 {
	return float64(sorted[(len(sorted)-1)*percent/100]) / float64(time.Microsecond)
}

func shortSize(n int) string {
	if n > 1<<20-1<<10 { // the envelope is in the limit as well
		return fmt.Sprintf("%dMiB", (n+1<<10)>>20)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}

// BenchmarkIdle is what a client costs that is there and does nothing: memory of the process for each of 1,000 connections
// that have a session with one server whose tool is known. Sockets' buffers are the kernel's and not in it; the client's own
// ends, of a few hundred bytes each, are.
func BenchmarkIdle(b *testing.B) {
	const clients = 1000
	for b.Loop() {
		s := startBenchPod(b)
		before := settledMemory()
		idle := make([]*idler, clients)
		for i := range idle {
			idle[i] = dialIdler(b, s.at.Public)
		}
		after := settledMemory()
		for _, i := range idle {
			_ = i.socket.Close()
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric((after.heap-before.heap)/clients, "heap-B/connection")
		b.ReportMetric((after.stacks-before.stacks)/clients, "stack-B/connection")
		b.ReportMetric((after.goroutines-before.goroutines)/clients, "goroutines/connection")
	}
}

type memory struct{ heap, stacks, goroutines float64 }

func settledMemory() memory {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}
