package capability

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// catalogOf is a session with that many tools of configured servers, all of them pinned.
func catalogOf(b *testing.B, servers, each int) Caller {
	b.Helper()
	var configured []Configured
	for i := range servers {
		var texts []string
		for j := range each {
			texts = append(texts, fmt.Sprintf("tool_%d_%d: Reads the %dth thing of the %dth kind, and tells what it is about", i, j, j, i))
		}
		configured = append(configured, newServer(fmt.Sprintf("server-%d", i), Ready, described(false, texts...)))
	}
	k := kerneltest.Start(b, kernel.Options{})
	parent, _ := kerneltest.Root(b, k)
	view := new(atomic.Pointer[View])
	desk := kerneltest.Spawn(b, parent, DeskSpec("desk", DeskConfig{Tag: "-", View: view, Configured: configured, Pins: &fakePins{}}))
	return Caller{Desk: desk, View: view, Account: k.Account()}
}

func BenchmarkSearch(b *testing.B) {
	for _, size := range [][2]int{{7, 7}, {12, 46}, {40, 50}} {
		b.Run(fmt.Sprint(size[0]*size[1], " tools"), func(b *testing.B) {
			who := catalogOf(b, size[0], size[1])
			b.ReportAllocs()
			begun, n := processor(b), 0
			for b.Loop() {
				n++
				text, lease, err := Search(context.Background(), who, Query{Text: "read the third thing", Limit: 5})
				if err != nil || len(text) == 0 {
					b.Fatal(err)
				}
				lease.Release()
			}
			b.ReportMetric(float64((processor(b)-begun).Nanoseconds())/float64(n), "cpu-ns/op") // on a machine that others use, too
		})
	}
}

// processor is the time of the processor that this process has had.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
