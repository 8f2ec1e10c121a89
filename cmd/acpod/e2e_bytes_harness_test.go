package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the tests share that count bytes: a pod as it is shipped, its memory, and peers that are exact or slow.

// plainBinary is the program without the race detector, which has a shadow of all memory and so says nothing of it.
var plainBinary = sync.OnceValues(func() (string, error) {
	if len(raceFlag) == 0 {
		return builtBinary, nil
	}
	path := filepath.Join(filepath.Dir(builtBinary), "acpod-plain")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return path, nil
})

// startPlain is startPod with the binary as it is shipped.
func startPlain(t *testing.T, config string, settings ...setting) *pod {
	t.Helper()
	path, err := plainBinary()
	if err != nil {
		t.Fatalf("the plain binary does not build: %v", err)
	}
	return startPod(t, config, append(settings, func(c *exec.Cmd) { c.Path, c.Args[0] = path, path })...)
}

// leaving is a config with which a session goes soon after its client.
func leaving(config string) string { return with(config, "agent.session_ttl", `"500ms"`) }

// memory reads one line of the pod's status in bytes: VmRSS is what it holds, VmHWM the most that it ever held.
func (p *pod) memory(line string) int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), line+":")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n << 10
}

// promise is the worst case that the pod has written down for itself.
func (p *pod) promise() int64 {
	p.t.Helper()
	var root struct {
		Pod struct {
			WorstCase int64 `json:"worst_case_bytes"`
		}
	}
	if err := json.Unmarshal(p.get("http://"+p.Debug+"/debug/tree?depth=0"), &root); err != nil || root.Pod.WorstCase <= 0 {
		p.t.Fatalf("the tree tells no worst case: %v", err)
	}
	return root.Pod.WorstCase
}

// kept wants that the pod has never held more than it promised, nor more than `most`.
func (p *pod) kept(most int64) {
	p.t.Helper()
	peak, promise := p.memory("VmHWM"), p.promise()
	p.t.Logf("it held %d MiB at most, promised are %d MiB", peak>>20, promise>>20)
	if peak > promise || peak > most {
		p.t.Errorf("it held %d bytes; promised are %d, and this needs no more than %d", peak, promise, most)
	}
}

// refusals sums a scope over the tree.
func (p *pod) refusals(scope string) (n int64) {
	p.t.Helper()
	p.tree().each(func(one node) { n += one.Refused[scope] })
	return n
}

// padded is a text of exactly that size: head, filling, tail.
func padded(head, tail string, size int) string {
	return head + strings.Repeat("p", size-len(head)-len(tail)) + tail
}

// sizedResult is a result object of tools/call of exactly that size.
func sizedResult(size int) json.RawMessage {
	return json.RawMessage(padded(`{"content":[{"type":"text","text":"`, `"}]}`, size))
}

// pending is the outer id of the latest tools/call that came to an extension.
func (e *extension) pending() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := ""
	for _, f := range e.frames {
		if f.Method == "mcp/message" && strings.Contains(f.raw, `"method":"tools/call"`) {
			id = string(f.ID)
		}
	}
	return id
}

// calling is a call of the facade on a bare socket, whose answer is read when and as fast as the test likes.
type calling struct {
	t      testing.TB
	conn   *net.TCPConn
	reader *bufio.Reader
}

// callSlowly sends a call and reads nothing. The socket takes little, so that the answer stays in the pod.
func (a agentClient) callSlowly(p *pod, name string) *calling {
	a.t.Helper()
	conn, err := net.Dial("tcp", p.Facade)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.Close() })
	c := &calling{t: a.t, conn: conn.(*net.TCPConn), reader: bufio.NewReaderSize(conn, 512)}
	_ = c.conn.SetReadBuffer(64 << 10)
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":%q}}}`, name)
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", p.Facade, a.token, len(body), body)
	return c
}

// first waits for the first byte of the answer.
func (c *calling) first() {
	c.t.Helper()
	if _, err := c.reader.Peek(1); err != nil {
		c.t.Fatal(err)
	}
}

// read reads the answer.
func (c *calling) read() (status int, body []byte) {
	c.t.Helper()
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, body
}
