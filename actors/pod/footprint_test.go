//go:build !race

package pod

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// These tests measure what one thing costs beside what its accounts pay, and compare it with the constants that the worst case is made
// of. Bytes do not depend on how busy the machine is. The clients are in the same process, and count.

// held is what the process holds, in bytes: the heap with what its size classes round up, and the stacks.
func held() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// measuredPod is a pod that ends with the test.
func measuredPod(t *testing.T, text string, servers ...string) *started {
	t.Helper()
	s := startPod(t, text, servers...)
	t.Cleanup(func() {
		s.signals <- syscall.SIGTERM
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// used is what the pod's accounts say.
func (s *started) used(t *testing.T) int64 {
	t.Helper()
	_, text := s.get(t, "http://"+s.at.Debug+"/debug/tree?depth=0")
	var root inspect.Root
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	return root.Account.Used
}

// each measures what n things cost that make makes, beside their accounts, and gives the cost of one.
func (s *started) each(t *testing.T, n int, make func(i int)) int64 {
	t.Helper()
	make(-1) // the first of its kind pays for what all share
	before, paid := held(), s.used(t)
	for i := range n {
		make(i)
	}
	var most int64 // what the clients sent may still be on its way
	for same := 0; same < 5; same++ {
		if cost := held() - before - (s.used(t) - paid); cost > most+most/100 {
			most, same = cost, 0
		}
	}
	return most / int64(n)
}

// covers fails when a constant does not cover what was measured, or by so much that the promise flatters nobody.
func covers(t *testing.T, what string, constant, measured int64) {
	t.Helper()
	t.Logf("%s: %d bytes measured, %d promised", what, measured, constant)
	if measured > constant {
		t.Errorf("%s costs %d bytes, more than the %d that the worst case counts", what, measured, constant)
	}
	if constant > 8*max(measured, 1<<10) {
		t.Errorf("%s costs %d bytes; the worst case counts %d, which is absurd", what, measured, constant)
	}
}

const measured = 300

const openConfig = `
[acp]
listen = "127.0.0.1:0"
[agent]
driver = "none"
[mcp]
listen = "127.0.0.1:0"
[debug]
listen = "127.0.0.1:0"
`

// raw is one TCP connection of a client that costs its own side next to nothing.
func raw(t *testing.T, address string) net.Conn {
	t.Helper()
	socket, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return socket
}

// write sends a text, in time.
func write(t *testing.T, to net.Conn, text string) {
	t.Helper()
	_ = to.SetWriteDeadline(time.Now().Add(kerneltest.Deadline))
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

// longHead is a request that has not ended, as large as a server takes it, of as many headers as it takes.
func longHead(method, path, address string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, address)
	for i := range headerLines - 2 {
		fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("a", (headerBytes+3<<10)/headerLines-10))
	}
	return b.String()
}

func TestAnHTTPConnectionInTheMiddleOfItsHeadCostsWhatIsPromised(t *testing.T) {
	s := measuredPod(t, openConfig)
	head := longHead("GET", "/acp", s.at.Public)
	cost := s.each(t, measured, func(int) {
		socket := raw(t, s.at.Public)
		write(t, socket, head)
	})
	covers(t, "an HTTP connection before the upgrade", httpConnectionBytes, cost)
}

// opened is a socket that has said initialize.
func opened(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	socket := raw(t, address)
	write(t, socket, "GET /acp HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
	in := bufio.NewReaderSize(socket, 512)
	_ = socket.SetReadDeadline(time.Now().Add(kerneltest.Deadline))
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(err, response)
	}
	say(t, socket, benchInitialize)
	await(t, in, func(f answered) bool { return f.ID == 1 })
	return socket, in
}

func say(t *testing.T, socket net.Conn, text string) {
	t.Helper()
	if err := writeFrame(socket, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// await reads until a message is the one that is waited for.
func await(t *testing.T, in *bufio.Reader, want func(answered) bool) {
	t.Helper()
	for {
		text, err := readFrame(in)
		if err != nil {
			t.Fatal(err)
		}
		var f answered
		if err := json.Unmarshal(text, &f, json.MatchCaseInsensitiveNames(true)); err != nil || f.Error != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if want(f) {
			return
		}
	}
}

func TestAConnectionCostsWhatIsPromised(t *testing.T) {
	s := measuredPod(t, openConfig)
	covers(t, "a connection", connectionBytes, s.each(t, measured, func(int) { opened(t, s.at.Public) }))
}

func TestASessionCostsWhatIsPromised(t *testing.T) {
	s := measuredPod(t, openConfig+"[limits]\nsessions_per_connection = 10000\n")
	socket, in := opened(t, s.at.Public)
	covers(t, "a session", sessionBytes, s.each(t, measured, func(i int) {
		say(t, socket, `{"jsonrpc":"2.0","id":`+strconv.Itoa(1000+i)+`,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
		await(t, in, func(f answered) bool { return f.Method == "" && f.ID == 1000+i })
	}))
}

// What a session was opened with is read and forgotten: the frame may have been a thousand times what is kept of it.
func TestASessionKeepsNothingOfTheFrameThatOpenedIt(t *testing.T) {
	s := measuredPod(t, openConfig+"[limits]\nsessions_per_connection = 10000\n")
	socket, in := opened(t, s.at.Public)
	padding := strings.Repeat("p", 200<<10)
	cost := s.each(t, 60, func(i int) {
		say(t, socket, `{"jsonrpc":"2.0","id":`+strconv.Itoa(1000+i)+`,"method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":{"x":"`+padding+`"}}}`)
		await(t, in, func(f answered) bool { return f.Method == "" && f.ID == 1000+i })
	})
	if t.Logf("a session opened by a frame of 200 KiB: %d bytes", cost); cost > 2*sessionBytes {
		t.Errorf("it holds %d bytes, of %d that are promised", cost, sessionBytes)
	}
}

func TestATunnelIsPaidForByItsSession(t *testing.T) {
	s := measuredPod(t, openConfig+"[limits]\nsessions_per_connection = 10000\nestablishes_per_connection = 10000\n")
	socket, in := opened(t, s.at.Public)
	cost := s.each(t, measured, func(i int) {
		id := 1000 + i
		say(t, socket, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"acp","name":"katashiro","id":"s%d"}]}}`, id, id))
		await(t, in, func(f answered) bool { return f.Method == "mcp/connect" })
	})
	if t.Logf("a session with one server: %d bytes", cost); cost > sessionBytes/2 { // the session alone costs about as much
		t.Errorf("a session with a server that is being connected costs %d bytes, more than the %d of a session: its tunnel is not paid for", cost, sessionBytes)
	}
}

func TestAnIdleHTTPConnectionOfTheFacadeCostsWhatIsPromised(t *testing.T) {
	s := measuredPod(t, openConfig)
	covers(t, "an idle connection of the facade", httpConnectionBytes, s.each(t, measured, func(int) {
		socket := raw(t, s.at.Facade)
		write(t, socket, "POST /mcp HTTP/1.1\r\nHost: "+s.at.Facade+"\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		_ = socket.SetReadDeadline(time.Now().Add(kerneltest.Deadline))
		response, err := http.ReadResponse(bufio.NewReaderSize(socket, 512), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
	}))
}

func TestAHeadThatDoesNotEndCostsTheFacadeWhatIsPromised(t *testing.T) {
	s := measuredPod(t, openConfig)
	head := longHead("POST", "/mcp", s.at.Facade)
	covers(t, "a connection of the facade in the middle of its head", httpConnectionBytes, s.each(t, measured, func(int) {
		write(t, raw(t, s.at.Facade), head)
	}))
}

// measuredServers is how many are started: they are processes, and not free.
const measuredServers = 20

func TestAServerOfMCPJSONCostsWhatIsPromised(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range measuredServers + 1 {
		fmt.Fprintf(&b, "%q: {\"command\": %q, \"env\": {%q: \"100000\"}},\n", "s"+strconv.Itoa(i), executable, stdioServerVariable)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, []byte("{\"max_concurrent_servers\": 100, \"mcpServers\": {"+b.String()+"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := measuredPod(t, openConfig, file)
	covers(t, "a server of mcp.json", provider.Footprint, s.each(t, measuredServers, func(i int) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"s%d.echo"}}}`, i+1)
		response, err := http.Post("http://"+s.at.Facade+"/mcp", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if !strings.Contains(string(text), "here") {
			t.Fatalf("%s", text)
		}
	}))
}

func TestARememberedKeyCostsWhatIsPromised(t *testing.T) {
	l, err := openLedger(t.TempDir(), time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	before := held()
	for i := range ledgerKeys {
		l.remember(capability.KeyRecord{Session: fmt.Sprintf("%064d", i), Server: strings.Repeat("s", 64), Tool: strings.Repeat("t", mcp.MaxToolName),
			Key: strings.Repeat("k", 4*128)}, ledgerEntry{})
	}
	covers(t, "a remembered idempotency key", ledgerKeyBytes, (held()-before)/ledgerKeys)
	runtime.KeepAlive(l)
}

func TestARecordOfASuspendedSessionCostsWhatIsPromised(t *testing.T) {
	s := measuredPod(t, strings.Replace(openConfig, "[agent]\n", "[agent]\nsession_ttl = \"10ms\"\n", 1)+"[limits]\nsessions_per_connection = 10000\n")
	asleep := 0
	open := func(n int) {
		asleep += n
		socket, in := opened(t, s.at.Public)
		for i := range n {
			say(t, socket, `{"jsonrpc":"2.0","id":`+strconv.Itoa(1000+i)+`,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
			await(t, in, func(f answered) bool { return f.Method == "" && f.ID == 1000+i })
		}
		_ = socket.Close()
		kerneltest.Eventually(t, "all are suspended", func() bool {
			_, text := s.get(t, "http://"+s.at.Debug+"/debug/tree?depth=1")
			var root inspect.Root
			if json.Unmarshal([]byte(text), &root) != nil || root.Pod["sessions"] != 0 || root.Pod["connections"] != 0 {
				return false
			}
			for _, child := range root.Children { // their records are written, and let go
				if child.Kind == "sessions" {
					return child.Attrs["suspended"] == float64(asleep)
				}
			}
			return false
		})
	}
	open(1)
	before := held()
	open(10 * measured)
	covers(t, "a record of a suspended session", session.RecordBytes, (held()-before)/(10*measured))
}
