package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The load of a facade over a configured server, beside the same server asked directly over HTTP: the built pod with every control on (the
// token of a session, tool_filter, pins, arguments by schema, redaction of results, audit in a file), a child process behind it. What
// the figures mean is in docs/performance.md.

// gateway is a pod with one configured server, the direct server, and a caller for each.
type gateway struct {
	pod, direct *target
}

// target is one URL that is called, and whose time and memory it takes.
type target struct {
	url, token, tool string       // tool "" = the tool is called by its own name
	pids             func() []int // the server itself first, then its children
	client           *http.Client
	calls            atomic.Int64
}

func newGateway(b *testing.B) *gateway {
	b.Helper()
	server, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	mcpJSON := filepath.Join(folder, "mcp.json")
	text := fmt.Sprintf(`{"mcpServers": {"echo": {"command": %q, "env": {%q: "stdio"}, "tool_filter": {"include": ["echo", "picture", "list_*", "create_*"]}}}}`, server, echoVariable)
	if err := os.WriteFile(mcpJSON, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	config := with(baseConfig, "agent.driver", `"none"`, "audit.path", strconv.Quote(filepath.Join(folder, "audit.jsonl")), "mcp.redact", `["AKIA[0-9A-Z]{16}", "(?i)password: [^ ]+"]`)
	p := startPod(b, config, func(c *exec.Cmd) {
		c.Args = append(c.Args, "--mcp-config", mcpJSON, "--log-level", "warn")
		c.Env = slices.DeleteFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "GORACE=") })
	})
	e := dial(b, p)
	e.hello()
	session := e.newSession()
	agent := e.facadeOf(session)
	if found := agent.search(`{"query":"echo"}`); len(found.Capabilities) == 0 {
		b.Fatalf("the configured server is not found: %+v", found)
	}

	direct := exec.Command(server)
	direct.Env, direct.Stderr = []string{echoVariable + "=http"}, os.Stderr
	out, err := direct.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := direct.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = direct.Process.Kill(); _ = direct.Wait() })
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		b.Fatal(err)
	}
	transport := func() *http.Client {
		return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	}
	return &gateway{
		pod: &target{url: agent.url, token: agent.token, tool: "execute_capability", client: transport(), pids: func() []int {
			return append([]int{p.command.Process.Pid}, p.processes()...)
		}},
		direct: &target{url: "http://" + addr + "/mcp", client: transport(), pids: func() []int { return []int{direct.Process.Pid} }},
	}
}

// call makes one call of the tool with arguments of its own, so that nothing on the way can answer from memory.
func (g *target) call(tool, message string) (int, error) {
	n := g.calls.Add(1)
	arguments := fmt.Sprintf(`{"message":"%s %d"}`, message, n)
	params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
	if g.tool != "" {
		params = fmt.Sprintf(`{"name":%q,"arguments":{"name":%q,"arguments":%s}}`, g.tool, tool, arguments)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, n, params)
	request, err := http.NewRequest(http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return 0, err
	case response.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"isError":true`)) || bytes.Contains(answer, []byte(`"error":`)):
		return 0, fmt.Errorf("HTTP %d %.300s", response.StatusCode, answer)
	}
	return len(answer), nil
}

// usage is processor time and resident memory of all processes of a target.
type usage struct {
	cpu      time.Duration
	resident int64 // bytes, of the first process alone: the child is the same test binary for whoever has it
}

func (g *target) usage(b *testing.B) (u usage) {
	b.Helper()
	for i, pid := range g.pids() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, at := range []int{11, 12} { // utime and stime, behind the name
			ticks, _ := strconv.ParseInt(fields[at], 10, 64)
			u.cpu += time.Duration(ticks) * (time.Second / 100)
		}
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		if i == 0 {
			u.resident = pages * int64(os.Getpagesize())
		}
	}
	return u
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkGatewayOne alternates between the two, a call each, one caller.
func BenchmarkGatewayOne(b *testing.B) {
	g := newGateway(b)
	for range 20 {
		for _, one := range []*target{g.pod, g.direct} {
			if _, err := one.call("echo", "warm"); err != nil {
				b.Fatal(err)
			}
		}
	}
	times := map[*target][]time.Duration{}
	before := map[*target]usage{g.pod: g.pod.usage(b), g.direct: g.direct.usage(b)}
	for b.Loop() {
		for _, one := range []*target{g.pod, g.direct} {
			begun := time.Now()
			if _, err := one.call("echo", "hello"); err != nil {
				b.Fatal(err)
			}
			times[one] = append(times[one], time.Since(begun))
		}
	}
	n := float64(len(times[g.pod]))
	after := g.pod.usage(b)
	pod, direct := median(times[g.pod]), median(times[g.direct])
	b.ReportMetric(float64(pod.Microseconds()), "µs-pod-p50")
	b.ReportMetric(float64(direct.Microseconds()), "µs-direct-p50")
	b.ReportMetric(float64(pod)/float64(direct), "pod:direct")
	b.ReportMetric(float64(times[g.pod][len(times[g.pod])*99/100].Microseconds()), "µs-pod-p99")
	b.ReportMetric((after.cpu-before[g.pod].cpu).Seconds()*1e3/n, "CPU-ms/call")
	b.ReportMetric(float64(after.resident)/(1<<20), "MiB-resident")
}

// BenchmarkGatewayEight is eight callers at once, first the pod, then the direct server. With -benchtime 1000000x it is the run that shows
// whether memory stays.
func BenchmarkGatewayEight(b *testing.B) {
	g := newGateway(b)
	for name, one := range map[string]*target{"pod": g.pod, "direct": g.direct} {
		b.Run(name, func(b *testing.B) {
			const callers = 8
			if _, err := one.call("echo", "warm"); err != nil {
				b.Fatal(err)
			}
			before := one.usage(b)
			var early atomic.Int64
			var left atomic.Int64
			left.Store(int64(b.N))
			half := int64(b.N / 10)
			var work sync.WaitGroup
			b.ResetTimer()
			for range callers {
				work.Go(func() {
					for {
						n := left.Add(-1)
						if n < 0 {
							return
						}
						if n == int64(b.N)-half {
							early.Store(one.usage(b).resident)
						}
						if _, err := one.call("echo", "hello"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.StopTimer()
			after := one.usage(b)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric((after.cpu-before.cpu).Seconds()*1e3/float64(b.N), "CPU-ms/call")
			b.ReportMetric(float64(early.Load())/(1<<20), "MiB-after-a-tenth")
			b.ReportMetric(float64(after.resident)/(1<<20), "MiB-resident")
		})
	}
}

// BenchmarkGatewayLarge is results of 5 MB of text and of a picture of 700 KB.
func BenchmarkGatewayLarge(b *testing.B) {
	g := newGateway(b)
	for _, tool := range []string{"picture", "list_text"} {
		b.Run(tool, func(b *testing.B) {
			var pod, direct time.Duration
			size := 0
			for b.Loop() {
				begun := time.Now()
				n, err := g.pod.call(tool, "hello")
				if err != nil {
					b.Fatal(err)
				}
				size = n
				middle := time.Now()
				if _, err := g.direct.call(tool, "hello"); err != nil {
					b.Fatal(err)
				}
				pod, direct = pod+middle.Sub(begun), direct+time.Since(middle)
			}
			b.ReportMetric(pod.Seconds()*1e3/float64(b.N), "ms-pod")
			b.ReportMetric(direct.Seconds()*1e3/float64(b.N), "ms-direct")
			b.ReportMetric(float64(size)/1e6, "MB")
			b.ReportMetric(float64(g.pod.usage(b).resident)/(1<<20), "MiB-resident")
		})
	}
}
