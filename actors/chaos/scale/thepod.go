package scale

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/wire"
)

// config is the pod's, for n extensions: room for them, no agents, and else what a pod has by default.
func config(n int) string {
	return fmt.Sprintf(`[pod]
drain_timeout = "5s"
[acp]
listen = "127.0.0.1:0"
[agent]
driver = "none"
[mcp]
listen = "127.0.0.1:0"
[[mcp.acp_servers]]
name = %q
tools = ["*"]
[limits]
connections = %d
sessions = %d
[debug]
listen = "127.0.0.1:0"
`, serverName, n+spare, n+spare)
}

// spare is how many more connections and sessions the pod would take.
const spare = 16

// thePod is the pod that is measured.
type thePod struct {
	*pod.Pod
	callers  *callers
	filler   string
	http     *http.Client
	profiles string // a folder, or empty
	looks    int
}

func startPod(ctx context.Context, o *Options) (*thePod, error) {
	p, err := pod.Start(ctx, pod.Spec{Binary: o.Binary, TOML: config(o.Extensions), Dir: o.Dir})
	if err != nil {
		return nil, err
	}
	return &thePod{Pod: p, callers: newCallers(o.Callers), filler: filler(o.Payload), http: newHTTP(), profiles: o.Profiles}, nil
}

func filler(n int) string { return strings.Repeat("0123456789abcdef", n/16+1)[:n] }

func (p *thePod) name() string { return "pod" }
func (p *thePod) pid() int     { return p.PID() }

// collect reads the heap profile, which collects garbage first and has the runtime's own figures at its end: /metrics would count
// the tree that it has just drawn. Twice, because what a pool holds outlives one collection.
func (p *thePod) collect(ctx context.Context) (r Runtime, err error) {
	var text []byte
	for range 2 {
		if text, err = p.profile(ctx, "heap?gc=1&debug=1"); err != nil {
			return r, err
		}
	}
	p.looks++
	if err := p.keep(fmt.Sprintf("heap-%d.txt", p.looks), text); err != nil {
		return r, err
	}
	if r.Heap, r.Stacks, err = memStats(text); err != nil {
		return r, err
	}
	m, err := p.Metrics(ctx)
	r.Goroutines = int64(m.Goroutines())
	return r, err
}

// memStats finds the figures at the end of a heap profile in its text form.
func memStats(profile []byte) (heap, stacks int64, err error) {
	lines := bufio.NewScanner(bytes.NewReader(profile))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if rest, found := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); found {
			heap, _ = strconv.ParseInt(rest, 10, 64)
		}
		if rest, found := strings.CutPrefix(lines.Text(), "# Stack = "); found {
			inUse, _, _ := strings.Cut(rest, " ")
			stacks, _ = strconv.ParseInt(inUse, 10, 64)
		}
	}
	if heap == 0 || stacks == 0 {
		return 0, 0, fmt.Errorf("the heap profile has no HeapAlloc and Stack at its end")
	}
	return heap, stacks, nil
}

// profile reads one of /debug/pprof/.
func (p *thePod) profile(ctx context.Context, name string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Debug()+"/debug/pprof/"+name, nil)
	if err != nil {
		return nil, err
	}
	response, err := p.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("/debug/pprof/%s: %s", name, response.Status)
	}
	return text, err
}

// keep writes a profile into the folder for them, if there is one.
func (p *thePod) keep(name string, text []byte) error {
	if p.profiles == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(p.profiles, name), text, 0o600)
}

// during takes profiles while calls are made.
func (p *thePod) during(o *Options) func(context.Context) {
	return func(ctx context.Context) {
		if p.profiles == "" {
			return
		}
		seconds := max(1, int(o.Duration.Seconds()/2))
		for name, file := range map[string]string{fmt.Sprintf("profile?seconds=%d", seconds): "cpu.pb.gz", "goroutine?debug=1": "goroutines.txt"} {
			text, err := p.profile(ctx, name)
			if err == nil {
				err = p.keep(file, text)
			}
			if err != nil {
				o.Progress("no profile: " + err.Error())
			}
		}
	}
}

func (p *thePod) dial(ctx context.Context, number int) (client, error) {
	e, err := connect(ctx, number, wire.Dial{URL: p.ACP(), Timeout: answerLimit}, p.filler)
	if err != nil {
		return nil, err
	}
	return podClient{e, p.callers}, nil
}

// close lets go of what is kept open, and stops the pod.
func (p *thePod) close(ctx context.Context) (exit int, err error) {
	p.callers.close()
	p.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restLimit)
	defer cancel()
	return p.Stop(ctx)
}

// podClient is an extension and those who call it.
type podClient struct {
	*extension
	callers *callers
}

func (c podClient) call(ctx context.Context, number int) error {
	return c.callers.call(ctx, c.extension, number)
}
func (c podClient) traffic() (in, out int64) { return c.socket.BytesIn(), c.socket.BytesOut() }

// restLimit is how long the pod may take to be at rest, and to stop.
const restLimit = time.Minute
