package bridge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// helperSocket makes this test binary a relay: it connects there, writes what it is told and copies what comes to its stdout.
const helperSocket = "ACPOD_TEST_BRIDGE"

func TestMain(m *testing.M) {
	if path := os.Getenv(helperSocket); path != "" {
		conn, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = io.WriteString(conn, os.Getenv(helperSocket+"_SAYS"))
		if os.Getenv(helperSocket+"_LEAVES") == "" {
			_, _ = io.Copy(os.Stdout, conn)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// world is a bridge on a real socket whose peers are the test's own connections, taken for relays of one agent.
type world struct {
	t       *testing.T
	k       *kernel.Kernel
	root    kernel.Ref
	ref     kernel.Ref
	socket  *Socket
	facade  *echo
	session *kernel.Account
	ended   chan struct{}
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	socket, err := Open(filepath.Join(folder(t), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	k := kerneltest.Start(t, kernel.Options{})
	w := &world{t: t, k: k, socket: socket, facade: &echo{gate: map[string]chan struct{}{}}, ended: make(chan struct{})}
	w.root, _ = kerneltest.Root(t, k)
	w.session = k.Account().Child("session_bytes", 32<<20)
	agent := Agent{Caller: capability.Caller{Tag: "#12345678", Account: w.session, Token: [32]byte{1}}, Session: sessionID, Ended: w.ended}
	cfg := Config{Socket: socket, Facade: w.facade, Find: func(int, uint64) (Agent, bool) { return agent, true },
		identify: func(*net.UnixConn) (Agent, reason) { return agent, "" }}
	if change != nil {
		change(&cfg)
	}
	w.ref = kerneltest.Spawn(t, w.root, Spec(cfg))
	return w
}

// echo is a facade that answers a request with its method, and says what it was served.
type echo struct {
	mu     sync.Mutex
	served []string
	gate   map[string]chan struct{} // by method: it is answered when the channel is closed, or its connection ends
}

func (e *echo) Serve(ctx context.Context, who capability.Caller, peer string, text []byte, bytes *kernel.Lease, line func(func(io.Writer) error) error, begun func()) {
	defer begun()
	defer bytes.Release()
	frame, bad := jsonrpc.Scan(text)
	e.mu.Lock()
	e.served = append(e.served, fmt.Sprint(who.Tag, " ", peer, " ", frame.Method))
	gate := e.gate[frame.Method]
	e.mu.Unlock()
	if bad != nil || frame.Kind != jsonrpc.Request {
		return
	}
	if gate != nil {
		begun()
		select {
		case <-gate:
		case <-ctx.Done():
			return
		}
	}
	_ = line(func(w io.Writer) error {
		_, err := w.Write(jsonrpc.AppendResult(nil, frame.ID, fmt.Appendf(nil, `{"method":%q,"bytes":%d}`, frame.Method, len(text))))
		return err
	})
}

func (e *echo) all() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.served, "\n")
}

// peerConn is a relay that the test plays.
type peerConn struct {
	*net.UnixConn
	t     *testing.T
	lines *bufio.Reader
}

func (w *world) dial() *peerConn {
	w.t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: w.socket.Path(), Net: "unix"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &peerConn{conn, w.t, bufio.NewReader(conn)}
}

func (p *peerConn) say(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.UnixConn, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peerConn) hear() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v behind %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// closed waits for the end of the connection and gives what came before it.
func (p *peerConn) closed() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.lines)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		p.t.Fatal(err)
	}
	return string(rest)
}

// node is the bridge's place in the tree.
func (w *world) refused(scope string) int64 {
	for _, n := range w.k.Tree().Children {
		if n.Name == "bridge" {
			return n.Refused[scope]
		}
	}
	return -1
}
