//go:build !race

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Requests that open nothing keep nothing: GETs, POSTs without a session, initializes that nobody ends. The pod is the one that is
// shipped, and its memory after the second ten thousand is what it was after the first thousands.
func TestTenThousandRequestsThatOpenNothingKeepNothing(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one"})
	p := startPlain(t, providersConfig, mcpJSON(t, s))
	a := anonymous(t, p)
	a.says("echo", `{}`, `echo {}`)
	storm := func(n int) {
		for i := range n {
			body, method := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, http.MethodPost
			switch i % 4 {
			case 0:
				body, method = "", http.MethodGet
			case 1:
				body = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
			case 2:
				body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
			}
			request := a.request(context.Background(), body)
			request.Method = method
			request.Header.Set("Mcp-Session-Id", fmt.Sprintf("session-%d", i))
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}
	storm(3000)
	before := p.settled()
	storm(10_000)
	after := p.settled()
	t.Logf("the pod held %d KiB before ten thousand requests and %d KiB after", before>>10, after>>10)
	if grown := after - before; grown > 3<<20 {
		t.Errorf("the pod has grown by %d KiB", grown>>10)
	}
	if s.starts() != 1 {
		t.Errorf("the server was started %d times", s.starts())
	}
}

// settled is the least memory of the pod within a short while: what the garbage collector has not given back yet is not held.
func (p *pod) settled() int64 {
	p.t.Helper()
	least := p.memory("VmRSS")
	for range 15 {
		time.Sleep(100 * time.Millisecond)
		least = min(least, p.memory("VmRSS"))
	}
	return least
}

// Thousands of calls through one server, some of them failing, leave nothing of themselves.
func TestThousandsOfCallsKeepNothing(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"echo", "toolerr", "big"}})
	p := startPlain(t, providersConfig, mcpJSON(t, s))
	a := anonymous(t, p)
	calls := func(n int) {
		for i := range n {
			switch i % 10 {
			case 0:
				a.ask("toolerr", `{"text":"no"}`)
			case 1:
				a.ask("big", `{"bytes":65536}`)
			default:
				a.ask("echo", fmt.Sprintf(`{"n":%d}`, i))
			}
		}
	}
	calls(1500)
	before := p.settled()
	calls(4000)
	after := p.settled()
	t.Logf("the pod held %d KiB before four thousand calls and %d KiB after", before>>10, after>>10)
	if grown := after - before; grown > 4<<20 {
		t.Errorf("the pod has grown by %d KiB", grown>>10)
	}
	p.rested("one")
}

// A line without an end, and answers of any size over the limit, are never held: the pod stays within what it promised.
func TestALineWithoutAnEndIsNeverHeld(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"endless", "longline", "echo"}}).set("request_timeout_secs", 8)
	good := newEvil(t, evilScript{Name: "good", Offer: []string{"whoami"}})
	p := startPlain(t, providersConfig, mcpJSON(t, s, good))
	a := anonymous(t, p)
	a.says("one.echo", `{}`, `echo {}`)
	a.runs(good)
	before := p.memory("VmHWM")
	if got := a.ask("longline", `{"bytes":67108864}`); !got.Result.IsError {
		t.Errorf("%.200s", got.raw)
	}
	a.says("one.echo", `{"n":1}`, `echo {"n":1}`)
	call := a.later("endless", `{"bytes":134217728}`)
	until(t, "the line", func() bool { return len(s.journal("wrote")) == 1 })
	a.runs(good)
	if result := call.wait(); !result.IsError {
		t.Errorf("%.200s", result.raw)
	}
	peak := p.memory("VmHWM")
	t.Logf("the pod held %d MiB at most before, %d MiB in the end", before>>20, peak>>20)
	if peak-before > 40<<20 {
		t.Errorf("192 MiB of lines over the limit took %d MiB of the pod's memory", (peak-before)>>20)
	}
	until(t, "the server is usable again", func() bool { return strings.Contains(a.ask("one.echo", `{"n":2}`).raw, `echo`) })
	p.rested("good")
}
