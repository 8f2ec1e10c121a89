package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for something that has to happen. It is long because these machines are slow and
// shared: a test that has to wait that long has failed.
const patience = 60 * time.Second

// builtBinary is the built program that every test of this package drives, as a user would.
var builtBinary string

// sideBySide is how many of these tests run at once: they wait for other processes far more than they compute.
const sideBySide = "8"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "acpod-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builtBinary = filepath.Join(dir, "acpod")
	build := exec.Command("go", append(append([]string{"build"}, raceFlag...), "-o", builtBinary, ".")...)
	build.Env = append(os.Environ(), raceEnv...)
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the binary does not build: %v\n%s", err, output)
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// pod is one running `acpod serve`.
type pod struct {
	*program
	home                  string
	Public, Facade, Debug string // host:port
}

// baseConfig opens all three listeners on free ports, grants two servers and uses the demo agent.
const baseConfig = `
[pod]
drain_timeout = "5s"
[acp]
listen = "127.0.0.1:0"
[agent]
workdir = "."
permissions = "relay"
[mcp]
listen = "127.0.0.1:0"
[[mcp.acp_servers]]
name = "katashiro"
tools = ["katashiro.read_dom", "katashiro.screenshot", "katashiro.navigate", "katashiro.click", "katashiro.type"]
[[mcp.acp_servers]]
name = "other"
tools = ["*"]
[debug]
listen = "127.0.0.1:0"
`

// with sets keys of a config: with(baseConfig, "agent.session_ttl", `"1s"`, …). A key of a missing table opens it.
func with(config string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		table, key, _ := cutLast(pairs[i], ".")
		header, line := "["+table+"]", key+" = "+pairs[i+1]
		lines := strings.Split(config, "\n")
		at := slices.Index(lines, header)
		if at < 0 {
			config += header + "\n" + line + "\n"
			continue
		}
		end := at + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "[") {
			end++
		}
		old := slices.IndexFunc(lines[at:end], func(l string) bool { return strings.HasPrefix(l, key+" = ") })
		if old >= 0 {
			lines[at+old] = line
		} else {
			lines = slices.Insert(lines, at+1, line)
		}
		config = strings.Join(lines, "\n")
	}
	return config
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// setting is what a test may change of how a pod is started.
type setting func(*exec.Cmd)

// startPod starts a pod with that config in a folder of its own and waits until all of its listeners serve. It is
// stopped at the end of the test, which fails when the pod does not end with exit code 0.
func startPod(t testing.TB, config string, settings ...setting) *pod {
	t.Helper()
	p := launch(t, config, settings...)
	ready := filepath.Join(p.home, "ready.json")
	p.await("the ready file", func() bool {
		text, err := os.ReadFile(ready)
		if err != nil {
			return false
		}
		var addresses struct{ Public, Facade, Debug string }
		if err := json.Unmarshal(text, &addresses); err != nil {
			t.Fatalf("ready file: %v in %s", err, text)
		}
		p.Public, p.Facade, p.Debug = addresses.Public, addresses.Facade, addresses.Debug
		return true
	})
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("log of the pod:\n%s", tail(p.log.String(), 12000))
		}
	})
	return p
}

// launch starts `acpod serve` and does not wait for anything.
func launch(t testing.TB, config string, settings ...setting) *pod {
	t.Helper()
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "acpod.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(builtBinary, "serve", "--config", file, "--ready-file", filepath.Join(home, "ready.json"))
	command.Dir = work
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "USER=tester", "GORACE=halt_on_error=1"}
	return &pod{program: begin(t, command, settings...), home: home}
}

// stop ends the pod with SIGTERM and wants exit code 0.
func (p *pod) stop() {
	p.t.Helper()
	select {
	case <-p.ended:
		return
	default:
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	p.awaitEnd()
	if p.err != nil {
		p.t.Errorf("the pod ended with %v after SIGTERM", p.err)
	}
}

// node is one line of /debug/tree, as the contract shapes it.
type node struct {
	Path     string                      `json:"path"`
	Kind     string                      `json:"kind"`
	State    string                      `json:"state"`
	Account  struct{ Used, Limit int64 } `json:"account"`
	Owes     []struct{ Name string }     `json:"owes"`
	Refused  map[string]int64            `json:"refused"`
	Attrs    map[string]any              `json:"attrs"`
	Children []node                      `json:"children"`
	Pod      *podFigures                 `json:"pod"`
}

type podFigures struct {
	BytesUsed     int64 `json:"bytes_used"`
	BytesLimit    int64 `json:"bytes_limit"`
	TokensLive    int64 `json:"tokens_live"`
	CallsInFlight int64 `json:"calls_in_flight"`
	Agents        int64 `json:"agents"`
	Connections   int64 `json:"connections"`
	Sessions      int64 `json:"sessions"`
}

func (p *pod) tree() node {
	p.t.Helper()
	var root node
	if err := json.Unmarshal(p.get("http://"+p.Debug+"/debug/tree"), &root); err != nil {
		p.t.Fatal(err)
	}
	return root
}

func (p *pod) get(url string) []byte {
	p.t.Helper()
	response, err := http.Get(url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %v %s", url, response.StatusCode, err, body)
	}
	return body
}

// each walks a tree.
func (n node) each(visit func(node)) {
	visit(n)
	for _, child := range n.Children {
		child.each(visit)
	}
}

// find gives the first node whose path ends so.
func (n node) find(suffix string) (found node, ok bool) {
	n.each(func(one node) {
		if !ok && strings.HasSuffix(one.Path, suffix) {
			found, ok = one, true
		}
	})
	return found, ok
}

// unrest says what keeps a tree from being at rest by the contract's definition, or nothing.
func (n node) unrest() string {
	var why []string
	n.each(func(one node) {
		if one.Account.Used != 0 {
			why = append(why, fmt.Sprintf("%s uses %d bytes", one.Path, one.Account.Used))
		}
		if len(one.Owes) != 0 {
			why = append(why, fmt.Sprintf("%s owes %v", one.Path, one.Owes))
		}
		if name := one.Path[strings.LastIndex(one.Path, "/")+1:]; (name == "gateway" || name == "sessions") && len(one.Children) != 0 {
			why = append(why, fmt.Sprintf("%s has %d children", one.Path, len(one.Children)))
		}
	})
	if n.Pod == nil {
		return "no pod object"
	}
	if n.Pod.BytesUsed != 0 || n.Pod.TokensLive != 0 || n.Pod.CallsInFlight != 0 || n.Pod.Agents != 0 || n.Pod.Connections != 0 || n.Pod.Sessions != 0 {
		why = append(why, fmt.Sprintf("pod: %+v", *n.Pod))
	}
	return strings.Join(why, "; ")
}

// rest waits until nothing is used, owed or open any more.
func (p *pod) rest() {
	p.t.Helper()
	var why string
	for end := time.Now().Add(patience); ; {
		if why = p.tree().unrest(); why == "" {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("the pod does not come to rest: %s", why)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processes are the living processes whose environment carries the pod's home, the pod itself aside: its agents, their
// children and its guardian.
func (p *pod) processes() []int {
	p.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err != nil || pid == p.command.Process.Pid {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if os.IsPermission(err) { // the guardian shows it to root only
			line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
			fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
			if len(fields) > 1 && fields[1] == fmt.Sprint(p.command.Process.Pid) {
				found = append(found, pid)
			}
			continue
		}
		if err != nil || !bytes.Contains(env, []byte("HOME="+p.home+"\x00")) {
			continue
		}
		found = append(found, pid)
	}
	return found
}

func init() {
	if runtime.GOOS != "linux" {
		panic("the pod runs on Linux; so do its tests")
	}
}
