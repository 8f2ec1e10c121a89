package pod

import (
	"encoding/json/v2"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kerneltest"
)

const quietConfig = `
[pod]
drain_timeout = "1s"
[acp]
listen = "127.0.0.1:0"
[agent]
driver = "none"
[mcp]
listen = "127.0.0.1:0"
[debug]
listen = "127.0.0.1:0"
auth_key = "debug-key"
`

// started is a pod that runs inside the test.
type started struct {
	at      Addresses
	log     *kerneltest.Log // empty when the pod was started to log elsewhere
	signals chan os.Signal
	ended   chan error
	ready   string
}

func startPod(t testing.TB, text string, servers ...string) *started {
	t.Helper()
	log := &kerneltest.Log{}
	s := startPodLogging(t, text, log, servers...)
	s.log = log
	return s
}

// servers are files for --mcp-config.
func startPodLogging(t testing.TB, text string, log io.Writer, servers ...string) *started {
	t.Helper()
	loaded, err := config.LoadBytes("acpod.toml", []byte(text), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	s := &started{log: &kerneltest.Log{}, signals: make(chan os.Signal, 2), ended: make(chan error, 1), ready: filepath.Join(home, "ready.json")}
	go func() {
		s.ended <- Serve(Options{
			Config: loaded, Log: slog.New(slog.NewTextHandler(log, nil)), ReadyFile: s.ready, Version: "v1",
			Executable: executable, Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, Signals: s.signals, MCPConfig: servers,
		})
	}()
	kerneltest.Eventually(t, "the ready file", func() bool {
		select {
		case err := <-s.ended:
			t.Fatalf("ended: %v\n%s", err, log)
		default:
		}
		written, err := os.ReadFile(s.ready)
		return err == nil && json.Unmarshal(written, &s.at) == nil
	})
	return s
}

func (s *started) get(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: kerneltest.Deadline}
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestPodServesAllListenersAndLeavesNothing(t *testing.T) {
	s := startPod(t, quietConfig)
	for _, want := range []string{"listener=public addr=" + s.at.Public, "listener=facade addr=" + s.at.Facade + " transport=stateless", "listener=debug addr=" + s.at.Debug, "mcp.anonymous is true", "agent.driver is none"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, s.log)
		}
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/": 200, "/nowhere": 404} {
		if got, _ := s.get(t, "http://"+s.at.Public+path); got != status {
			t.Errorf("%s: %d", path, got)
		}
	}
	if status, _ := s.get(t, "http://"+s.at.Debug+"/debug/tree"); status != 401 {
		t.Errorf("the tree without the key: %d", status)
	}
	_, text := s.get(t, "http://"+s.at.Debug+"/debug/tree", "Authorization", "Bearer debug-key")
	var root inspect.Root
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, child := range root.Children {
		names = append(names, strings.TrimPrefix(child.Path, "pod/"))
	}
	if got := strings.Join(names, " "); got != "audit pins debug providers gateway sessions facade public" {
		t.Errorf("children of the root: %s", got)
	}
	for _, figure := range []string{"bytes_used", "bytes_limit", "worst_case_bytes", "tokens_live", "calls_in_flight", "agents", "connections", "sessions"} {
		if _, ok := root.Pod[figure]; !ok {
			t.Errorf("pod has no %s: %v", figure, root.Pod)
		}
	}
	if root.Pod["bytes_used"] != 0 || root.Pod["bytes_limit"] != 1<<30 || root.Pod["worst_case_bytes"] <= 1<<30 {
		t.Errorf("pod: %v", root.Pod)
	}
	if _, metrics := s.get(t, "http://"+s.at.Debug+"/metrics", "Authorization", "Bearer debug-key"); !strings.Contains(metrics, `acpod_socket_ends_total{reason="client_closed"} 0`) {
		t.Errorf("no counters of the gateway in\n%s", metrics)
	}

	s.signals <- syscall.SIGTERM
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(kerneltest.Deadline):
		t.Fatalf("does not end:\n%s", s.log)
	}
	if _, err := os.Stat(s.ready); !os.IsNotExist(err) {
		t.Errorf("the ready file is left: %v", err)
	}
	if !strings.Contains(s.log.String(), "msg=stopped") {
		t.Errorf("%s", s.log)
	}
	again, err := openSocket(s.at.Public)
	if err != nil {
		t.Fatalf("a socket is left open: %v", err)
	}
	_ = again.Close()
}

func TestListenersThatAreOffAreNotThere(t *testing.T) {
	s := startPod(t, "[acp]\nlisten = \"127.0.0.1:0\"\nplayground = false\n[agent]\ndriver = \"none\"\n[debug]\nlisten = \"\"\n")
	if s.at.Facade != "" || s.at.Debug != "" || s.at.Public == "" {
		t.Errorf("%+v", s.at)
	}
	if status, _ := s.get(t, "http://"+s.at.Public+"/"); status != 404 {
		t.Errorf("there is a page: %d", status)
	}
	if !strings.Contains(s.log.String(), "no [mcp] in the configuration") {
		t.Errorf("%s", s.log)
	}
	s.signals <- syscall.SIGINT
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

func TestStartThatIsRefusedLeavesNothing(t *testing.T) {
	taken, err := openSocket("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	loaded, err := config.LoadBytes("t", []byte(quietConfig), config.Options{Settings: []config.Setting{{Flag: "--set", Key: "mcp.listen", Value: taken.Addr().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	log := &kerneltest.Log{}
	err = Serve(Options{Config: loaded, Log: slog.New(slog.NewTextHandler(log, nil)), Executable: "/nowhere"})
	if err == nil || !strings.HasPrefix(err.Error(), "mcp.listen: cannot listen") || log.String() != "" {
		t.Errorf("%v\n%s", err, log)
	}
	loaded.MCP.Listen = "127.0.0.1:0"
	err = Serve(Options{Config: loaded, Log: slog.New(slog.NewTextHandler(log, nil)), Executable: "/nowhere", Environ: []string{"HOME=" + t.TempDir()}})
	if err == nil || !strings.Contains(err.Error(), "guardian") || strings.Contains(log.String(), "listening") {
		t.Errorf("%v\n%s", err, log)
	}
}

func TestShownTreeComesFromTheRunningPod(t *testing.T) {
	s := startPod(t, quietConfig)
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte("debug-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	var out strings.Builder
	if err := ShowTree(t.Context(), TreeOptions{Addr: s.at.Debug, KeyFile: keyFile, Out: &out}); err != nil || !strings.Contains(out.String(), "├─ gateway") {
		t.Errorf("%v\n%s", err, &out)
	}
	out.Reset()
	if err := ShowTree(t.Context(), TreeOptions{Addr: "http://" + s.at.Debug, KeyFile: keyFile, JSON: true, Out: &out}); err != nil || !strings.HasPrefix(out.String(), `{"path":"pod"`) {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, o := range []TreeOptions{{Addr: s.at.Debug}, {Addr: s.at.Public, KeyFile: keyFile}, {Addr: "::no url"}, {Addr: s.at.Debug, KeyFile: "/nowhere"}, {}} {
		o.Out = &out
		if err := ShowTree(t.Context(), o); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	s.signals <- syscall.SIGTERM
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
