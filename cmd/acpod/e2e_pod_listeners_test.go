package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// arguments adds to the command line of a pod.
func arguments(more ...string) setting { return func(c *exec.Cmd) { c.Args = append(c.Args, more...) } }

// fetch asks for one path and gives the status, the headers and the body.
func fetch(t testing.TB, method, url string, header http.Header) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}

// The bound addresses are in the log, in both formats, and in the ready file: the three are the same.
func TestTheBoundAddressesAreToldInBothFormatsOfTheLog(t *testing.T) {
	t.Parallel()
	type told struct{ addr, transport string }
	want := func(p *pod) map[string]told {
		return map[string]told{"public": {p.Public, ""}, "facade": {p.Facade, "stateless"}, "debug": {p.Debug, ""}}
	}
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		p := startPod(t, baseConfig)
		got := map[string]told{}
		for line := range strings.Lines(p.log.String()) {
			if m := regexp.MustCompile(`level=INFO msg=listening listener=(\S+) addr=(\S+)(?: transport=(\S+))?\n$`).FindStringSubmatch(line); m != nil {
				got[m[1]] = told{m[2], m[3]}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want(p)) {
			t.Errorf("told %v, want %v\n%s", got, want(p), p.log)
		}
	})
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		p := startPod(t, baseConfig, arguments("--log-format", "json"))
		got := map[string]told{}
		for line := range strings.Lines(p.log.String()) {
			var record struct{ Msg, Level, Listener, Addr, Transport string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Errorf("a line of the log is not JSON: %q", line)
			}
			if record.Msg == "listening" && record.Level == "INFO" {
				got[record.Listener] = told{record.Addr, record.Transport}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want(p)) {
			t.Errorf("told %v, want %v\n%s", got, want(p), p.log)
		}
	})
	t.Run("only what is on", func(t *testing.T) {
		t.Parallel()
		config := with(baseConfig[:strings.Index(baseConfig, "[mcp]")], "debug.listen", `""`)
		p := startPod(t, config)
		text, err := os.ReadFile(filepath.Join(p.home, "ready.json"))
		if err != nil || string(text) != fmt.Sprintf(`{"public":%q,"facade":"","debug":""}`+"\n", p.Public) {
			t.Errorf("%q %v", text, err)
		}
		if n := strings.Count(p.log.String(), "msg=listening"); n != 1 {
			t.Errorf("%d listeners are told:\n%s", n, p.log)
		}
	})
}

// The file means that this pod serves: one that a killed pod left behind is gone before, and a start that is refused leaves none.
func TestTheReadyFileIsThisPods(t *testing.T) {
	t.Parallel()
	stale := func(c *exec.Cmd) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(c.Dir), "ready.json"), []byte(`{"public":"stale"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := launch(t, baseConfig, stale)
	p.await("a ready file of its own", func() bool {
		text, err := os.ReadFile(filepath.Join(p.home, "ready.json"))
		return err == nil && !strings.Contains(string(text), "stale")
	})
	p.stop()
	if _, err := os.Stat(filepath.Join(p.home, "ready.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	unwritable := launch(t, baseConfig, arguments("--ready-file", filepath.Join(p.home, "no", "such", "folder")))
	<-unwritable.ended
	if code := unwritable.command.ProcessState.ExitCode(); code != 1 || !strings.Contains(unwritable.log.String(), "the ready file cannot be written") {
		t.Errorf("exit %d:\n%s", code, unwritable.log)
	}
	if left := unwritable.processes(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestEachTakenAddressIsOneLineAndNothingElseListens(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, key := range []string{"acp.listen", "mcp.listen", "debug.listen"} {
		p := launch(t, with(baseConfig, key, `"`+taken.Addr().String()+`"`))
		<-p.ended
		text := strings.TrimSpace(p.log.String())
		if code := p.command.ProcessState.ExitCode(); code != 1 || strings.Contains(text, "\n") || !strings.HasPrefix(text, "acpod: "+key+": ") || !strings.Contains(text, "--set "+key+"=") {
			t.Errorf("exit %d: %q", code, text)
		}
		if left := p.processes(); len(left) != 0 {
			t.Errorf("processes %v are left", left)
		}
	}
}

// Nothing answers where nothing is documented, no answer opens a listener to other origins, and nothing is cached or sniffed.
func TestEachListenerServesWhatIsDocumentedAndNothingElse(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	for _, row := range []struct {
		method, address, path string
		status                int
	}{
		{"GET", p.Public, "/", 200}, {"HEAD", p.Public, "/", 200}, {"POST", p.Public, "/", 405}, {"GET", p.Public, "/healthz", 200}, {"GET", p.Public, "/readyz", 200},
		{"POST", p.Public, "/healthz", 405}, {"DELETE", p.Public, "/readyz", 405}, {"OPTIONS", p.Public, "/healthz", 405},
		{"POST", p.Public, "/acp", 405}, {"HEAD", p.Public, "/acp", 405}, {"OPTIONS", p.Public, "/acp", 405}, {"GET", p.Public, "/acp/", 404}, {"GET", p.Public, "/acp/x", 404},
		{"GET", p.Public, "/nowhere", 404}, {"POST", p.Public, "/nowhere", 404}, {"GET", p.Public, "/playground/", 404}, {"GET", p.Public, "/playground/nowhere.js", 404},
		{"GET", p.Public, "/playground/app.js", 200}, {"GET", p.Public, "/playground/..%2fdoc.go", 404},
		{"GET", p.Public, "/debug/", 404}, {"GET", p.Public, "/debug/tree", 404}, {"GET", p.Public, "/metrics", 404}, {"POST", p.Public, "/mcp", 404},
		{"GET", p.Facade, "/", 404}, {"GET", p.Facade, "/nowhere", 404}, {"POST", p.Facade, "/nowhere", 404}, {"GET", p.Facade, "/mcp", 405}, {"GET", p.Facade, "/healthz", 404}, {"GET", p.Facade, "/debug/tree", 404},
		{"GET", p.Debug, "/", 302}, {"GET", p.Debug, "/debug/", 200}, {"GET", p.Debug, "/debug/page.js", 200}, {"GET", p.Debug, "/debug/nowhere", 404}, {"GET", p.Debug, "/nowhere", 404},
		{"GET", p.Debug, "/debug/tree", 200}, {"HEAD", p.Debug, "/debug/tree", 200}, {"POST", p.Debug, "/debug/tree", 405}, {"DELETE", p.Debug, "/debug/tree/pod", 405}, {"POST", p.Debug, "/metrics", 405},
		{"GET", p.Debug, "/metrics", 200}, {"GET", p.Debug, "/debug/pprof/", 200}, {"GET", p.Debug, "/debug/pprof/goroutine?debug=1", 200}, {"GET", p.Debug, "/debug/pprof/nowhere", 404},
		{"GET", p.Debug, "/debug/tree/pod/nowhere", 404}, {"GET", p.Debug, "/debug/tree?depth=-1", 400}, {"GET", p.Debug, "/debug/tree?depth=x", 400},
		{"GET", p.Debug, "/acp", 404}, {"GET", p.Debug, "/healthz", 404}, {"POST", p.Debug, "/mcp", 404},
	} {
		own := http.Header{"Origin": {"http://" + row.address}}
		status, header, body := fetch(t, row.method, "http://"+row.address+row.path, own)
		if status != row.status {
			t.Errorf("%s %s%s: %d, want %d (%.100s)", row.method, row.address, row.path, status, row.status, body)
		}
		if status == http.StatusMethodNotAllowed && header.Get("Allow") == "" {
			t.Errorf("%s %s%s: 405 without Allow", row.method, row.address, row.path)
		}
		for name := range header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s%s opens itself to others with %s: %s", row.method, row.address, row.path, name, header.Get(name))
			}
		}
	}
}

// With a key the debug listener asks for it as a bearer token wherever it shows something of the pod.
func TestTheDebugKeyIsAskedForWhereverSomethingIsShown(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "debug.auth_key", `"the.debug-key"`))
	for _, path := range []string{"/debug/tree", "/debug/tree/pod", "/debug/tree/pod/nowhere", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/symbol", "/debug/events"} {
		for name, lines := range map[string][]string{
			"nothing": nil, "a wrong key": {"Bearer wrong"}, "the key alone": {"the.debug-key"}, "another scheme": {"Basic the.debug-key"},
			"two lines": {"Bearer the.debug-key", "Bearer the.debug-key"}, "an empty key": {"Bearer "}, "a part of the key": {"Bearer the.debug"},
		} {
			status, header, body := fetch(t, "GET", "http://"+p.Debug+path, http.Header{"Authorization": lines})
			if status != http.StatusUnauthorized || header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(body, "pod") && !strings.Contains(body, "debug.auth_key") {
				t.Errorf("%s with %s: %d %.100s", path, name, status, body)
			}
		}
		if path == "/debug/events" { // it does not end
			continue
		}
		status, _, body := fetch(t, "GET", "http://"+p.Debug+path, http.Header{"Authorization": {"Bearer the.debug-key"}})
		if want := map[bool]int{true: 404, false: 200}[strings.Contains(path, "nowhere")]; status != want {
			t.Errorf("%s with the key: %d %.100s", path, status, body)
		}
		if strings.Contains(body, "the.debug-key") {
			t.Errorf("%s shows the key", path)
		}
	}
	if status, _, body := fetch(t, "GET", "http://"+p.Debug+"/debug/tree?key=the.debug-key", nil); status != http.StatusUnauthorized {
		t.Errorf("a key in the address is taken: %d %s", status, body)
	}
	for _, path := range []string{"/debug/", "/debug/page.js", "/debug/page.css"} { // files, the same for everybody
		if status, _, _ := fetch(t, "GET", "http://"+p.Debug+path, nil); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	file := filepath.Join(p.home, "key")
	if err := os.WriteFile(file, []byte("the.debug-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, text := run(t, nil, "tree", "--addr", "http://"+p.Debug, "--key-file", file); code != 0 || !strings.Contains(out, "gateway") {
		t.Errorf("tree with the key: %d %q %q", code, out, text)
	}
	if code, _, text := run(t, nil, "tree", "--addr", "http://"+p.Debug); code != 1 || !strings.Contains(text, "key") || strings.Count(strings.TrimSpace(text), "\n") > 0 {
		t.Errorf("tree without the key: %d %q", code, text)
	}
}

func TestWhereThePlaygroundIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config string
		status int
		key    string
	}{
		"on loopback":               {baseConfig, 200, `{"key":false}`},
		"with a key":                {with(baseConfig, "acp.auth_key", `"k.1"`), 200, `{"key":true}`},
		"with a client's key":       {baseConfig + "[[acp.keys]]\nname = \"a\"\nkey = \"k.1\"\n", 200, `{"key":true}`},
		"off":                       {with(baseConfig, "acp.playground", "false"), 404, ""},
		"beyond loopback":           {with(baseConfig, "acp.listen", `"0.0.0.0:0"`, "acp.auth_key", `"k.1"`), 404, ""},
		"beyond loopback, asked on": {with(baseConfig, "acp.listen", `"0.0.0.0:0"`, "acp.auth_key", `"k.1"`, "acp.playground", "true"), 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, row.config)
			_, port, err := net.SplitHostPort(p.Public)
			if err != nil {
				t.Fatal(err)
			}
			at := "http://127.0.0.1:" + port
			status, header, _ := fetch(t, "GET", at+"/", nil)
			if policy := header.Get("Content-Security-Policy"); status != row.status || status == 200 && (!strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe-inline")) {
				t.Errorf("/: %d, policy %q", status, policy)
			}
			status, _, body := fetch(t, "GET", at+"/playground/config.json", nil)
			if status != row.status || status == 200 && body != row.key {
				t.Errorf("config.json: %d %s", status, body)
			}
			if strings.Contains(body, "k.1") {
				t.Error("the page is given the key")
			}
		})
	}
}

// A peer that is slow with its header, or sends too much of one, keeps no connection of any listener.
func TestHeadersAreBoundedInTimeAndSizeOnEveryListener(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	addresses := []string{p.Public, p.Facade, p.Debug}
	slow := map[string]net.Conn{}
	for _, address := range addresses {
		for _, beginning := range []string{"", "GET /healthz HTTP/1.1\r\nHost: " + address + "\r\nX-Slow: ", "GET /acp HTTP/1.1\r\nHost: "} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, beginning); err != nil {
				t.Fatal(err)
			}
			slow[fmt.Sprintf("%s after %q", address, beginning)] = conn
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = fmt.Fprintf(conn, "GET /acp HTTP/1.1\r\nHost: %s\r\nX-Large: %s\r\n\r\n", address, strings.Repeat("x", 64<<10)) // it may be refused before all is written
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: a header of 64 KiB got %d", address, response.StatusCode)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a header of 64 KiB was not answered", address)
		}
	}
	for name, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a header that never ends holds its connection", name)
		}
	}
	for _, address := range addresses {
		if status, _, _ := fetch(t, "GET", "http://"+address+"/nowhere", nil); status != 404 {
			t.Errorf("%s serves no more: %d", address, status)
		}
	}
}

// An address that is taken by a name is what the name means, and all that is told is the bound one.
func TestListenersMayBeNamedOrIPv6(t *testing.T) {
	t.Parallel()
	listen := []string{"localhost:0", "127.0.0.2:0"}
	if probe, err := net.Listen("tcp", "[::1]:0"); err == nil {
		_ = probe.Close()
		listen = append(listen, "[::1]:0")
	}
	for _, at := range listen {
		facade := `"` + at + `"`
		if strings.HasPrefix(at, "localhost") {
			facade = `"127.0.0.1:0"` // the facade takes no names
		}
		p := startPod(t, with(baseConfig, "acp.listen", `"`+at+`"`, "mcp.listen", facade, "debug.listen", `"`+at+`"`))
		for _, address := range []string{p.Public, p.Debug, p.Facade} {
			host, port, err := net.SplitHostPort(address)
			if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() || port == "0" {
				t.Errorf("%s is bound to %s", at, address)
			}
		}
		e := dial(t, p)
		e.says(e.open(newServer("katashiro", genA, "katashiro.click")), "/call katashiro.click {}", "katashiro.click {}\n")
		if status, _, _ := fetch(t, "GET", "http://"+p.Public+"/", nil); status != http.StatusOK {
			t.Errorf("the page at %s: %d", p.Public, status)
		}
	}
}
