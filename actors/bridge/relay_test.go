package bridge

import (
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func request(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}` + "\n"
}

func TestEachLineIsServedUnderTheIdentityThatWasFound(t *testing.T) {
	w := newWorld(t, nil)
	one, other := w.dial(), w.dial()
	one.say(request("1", "a"))
	if got := one.hear(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"method":"a"`) {
		t.Error(got)
	}
	other.say(`{"channel_id":"acp_0b6bd4be-6f5a-4a4e-9d1b-3a4b5c6d7e8f","request":` + strings.TrimSpace(request("2", "b")) + "}\r\n\n")
	if got := other.hear(); !strings.Contains(got, `"id":2,"result":{"method":"b"`) {
		t.Error(got)
	}
	if got := w.facade.all(); got != "#12345678 relay-1: a\n#12345678 relay-2: b" {
		t.Error(got)
	}
}

func TestALineThatIsNoMessageIsLeftOutAndTheNextIsServed(t *testing.T) {
	w := newWorld(t, nil)
	p := w.dial()
	p.say("hello\n{\"a\":\"\xff\"}\n" + `{"channel_id":"sess_other","request":` + strings.TrimSpace(request("1", "a")) + "}\n" + request("2", "b"))
	if got := p.hear(); !strings.Contains(got, `"id":2,`) {
		t.Error(got)
	}
	for _, scope := range []reason{notJSON, notUTF8, otherChannel} {
		if n := w.refused(string(scope)); n != 1 {
			t.Errorf("%s: %d are counted", scope, n)
		}
	}
}

func TestALineOfExactlyTheLimitIsServedAndALongerOneEndsItsConnection(t *testing.T) {
	const limit = 200 << 10
	w := newWorld(t, func(c *Config) { c.LineBytes = limit })
	p, other := w.dial(), w.dial()
	head := `{"jsonrpc":"2.0","id":1,"method":"a","params":"`
	exact := head + strings.Repeat("x", limit-len(head)-2) + `"}`
	go func() { _, _ = io.WriteString(p.UnixConn, exact+"\n"+exact+"\r\n") }()
	for range 2 {
		if got := p.hear(); !strings.Contains(got, `"bytes":`+strconv.Itoa(limit)) {
			t.Fatal(got)
		}
	}
	go func() { _, _ = io.WriteString(p.UnixConn, "x"+exact+"\n"+request("2", "b")) }()
	if got := p.closed(); got != "" {
		t.Errorf("behind a line that is too long came %q", got)
	}
	other.say(request("3", "c"))
	if got := other.hear(); !strings.Contains(got, `"id":3,`) || w.refused("frame_bytes") != 1 {
		t.Errorf("%s; %d are counted", got, w.refused("frame_bytes"))
	}
}

func TestAnEndlessLineEndsItsConnectionAndHoldsNoMoreThanItsLimit(t *testing.T) {
	const limit = 256 << 10
	w := newWorld(t, func(c *Config) { c.LineBytes = limit })
	p := w.dial()
	sent, most := 0, int64(0)
	chunk := strings.Repeat("x", 32<<10)
	for {
		n, err := io.WriteString(p.UnixConn, chunk)
		sent += n
		most = max(most, w.session.Used())
		if err != nil {
			break
		}
		if sent > 64<<20 {
			t.Fatal("the line is read for ever")
		}
	}
	if most > 3*limit {
		t.Errorf("%d bytes were held for a line of at most %d", most, limit)
	}
	kerneltest.Eventually(t, "nothing is held", func() bool { return w.session.Used() == 0 })
}

func TestARelayThatDiesMidLineLeavesNothing(t *testing.T) {
	w := newWorld(t, nil)
	p := w.dial()
	p.say(request("1", "a"))
	p.hear()
	p.say(`{"jsonrpc":"2.0","id":2,"method":"b","params":"` + strings.Repeat("x", 100<<10))
	kerneltest.Eventually(t, "the line is being read", func() bool { return w.session.Used() >= 64<<10 })
	_ = p.Close()
	kerneltest.Eventually(t, "nothing is held", func() bool { return w.session.Used() == 0 && w.ref.Account().Used() == 0 })
	if got := w.facade.all(); strings.Contains(got, " b") {
		t.Errorf("half a line was served: %s", got)
	}
}

func TestTheEndOfAnAgentEndsItsConnections(t *testing.T) {
	w := newWorld(t, nil)
	w.facade.gate["slow"] = make(chan struct{})
	p := w.dial()
	p.say(request("1", "slow") + request("2", "a"))
	if got := p.hear(); !strings.Contains(got, `"id":2,`) {
		t.Error(got)
	}
	close(w.ended)
	if got := p.closed(); got != "" {
		t.Errorf("behind the end of the agent came %q", got)
	}
}

func TestWhatIsOpenIsAnsweredToARelayThatSendsNoMore(t *testing.T) {
	w := newWorld(t, nil)
	gate := make(chan struct{})
	w.facade.gate["slow"] = gate
	p := w.dial()
	p.say(request("1", "slow"))
	kerneltest.Eventually(t, "it is served", func() bool { return w.facade.all() != "" })
	if err := p.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(gate)
	if got := p.closed(); !strings.Contains(got, `"id":1,"result"`) {
		t.Errorf("%q", got)
	}
}

func TestRequestsOverTheBoundAreRefusedAndNotificationsAreNot(t *testing.T) {
	w := newWorld(t, nil)
	gate := make(chan struct{})
	w.facade.gate["slow"] = gate
	p := w.dial()
	var all strings.Builder
	for i := range openRequests {
		all.WriteString(request(strconv.Itoa(i), "slow"))
	}
	p.say(all.String() + request("900", "slow") + `{"jsonrpc":"2.0","method":"note"}` + "\n")
	got, bad := jsonrpc.Scan([]byte(p.hear()))
	if bad != nil || string(got.ID.Raw()) != "900" || !strings.Contains(string(got.Error), "-32000") || !strings.Contains(string(got.Error), `"limit":64`) {
		t.Errorf("%s %s", got.ID.Raw(), got.Error)
	}
	kerneltest.Eventually(t, "the notification is served", func() bool { return strings.HasSuffix(w.facade.all(), " note") })
	close(gate)
	for range openRequests {
		p.hear()
	}
}

func TestARequestForWhichThereIsNoRoomIsToldSo(t *testing.T) {
	w := newWorld(t, nil)
	full, err := w.session.Acquire(w.session.Limit() - 100)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Release()
	p := w.dial()
	p.say(request("1", "small")) // the bridge pays
	if got := p.hear(); !strings.Contains(got, `"id":1,"result"`) {
		t.Error(got)
	}
	go func() {
		_, _ = io.WriteString(p.UnixConn, `{"jsonrpc":"2.0","id":"long","method":"a","params":"`+strings.Repeat("x", 300<<10)+"\"}\n"+request("3", "b"))
	}()
	if got := p.hear(); !strings.Contains(got, `"id":"long","error":{"code":-32000`) || !strings.Contains(got, `"scope":"session_bytes"`) {
		t.Error(got)
	}
	if got := p.hear(); !strings.Contains(got, `"id":3,"result"`) {
		t.Error(got)
	}
}

func TestNoMoreRelaysThanTheBoundAllows(t *testing.T) {
	agents := []Agent{}
	for i := range 3 {
		agents = append(agents, Agent{Caller: capability.Caller{Token: [32]byte{byte(i + 1)}}, Ended: make(chan struct{})})
	}
	next := make(chan Agent, 8)
	w := newWorld(t, func(c *Config) {
		c.Connections, c.ConnectionsOfAgent = 4, 2
		c.identify = func(*net.UnixConn) (Agent, reason) { return <-next, "" }
	})
	for i := range agents {
		agents[i].Caller.Account = w.session
	}
	let := func(a Agent) *peerConn {
		next <- a
		p := w.dial()
		_, _ = io.WriteString(p.UnixConn, request("1", "a")) // it may be refused by now
		return p
	}
	first := let(agents[0])
	first.hear()
	let(agents[0]).hear()
	if got := let(agents[0]).closed(); !strings.Contains(got, "too many relays") || w.refused(string(manyRelays)) != 1 {
		t.Errorf("a third one of an agent: %q", got)
	}
	kerneltest.Eventually(t, "the place is free", func() bool { return w.ref.Account().Used() == 2*relayBytes })
	let(agents[1]).hear()
	let(agents[2]).hear()
	if got := w.dial().closed(); got != "" {
		t.Errorf("one more than there may be: %q", got)
	}
	kerneltest.Eventually(t, "it is counted", func() bool { return w.refused("bridge_connections") == 1 })
	_ = first.Close()
	kerneltest.Eventually(t, "the place is free", func() bool { return w.ref.Account().Used() == 3*relayBytes })
	let(agents[0]).hear()
}

func TestARelayThatReadsNothingIsDisconnected(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond })
	p := w.dial()
	_ = p.SetReadBuffer(1 << 10)
	go func() {
		for {
			if _, err := io.WriteString(p.UnixConn, strings.Repeat(request("1", "a"), 100)); err != nil {
				return
			}
		}
	}()
	kerneltest.Eventually(t, "it is gone", func() bool { return w.facade.all() != "" && w.ref.Account().Used() == 0 })
}

func TestABridgeThatIsStoppedEndsItsConnectionsAndAnotherGenerationServesTheSocket(t *testing.T) {
	w := newWorld(t, nil)
	p := w.dial()
	p.say(request("1", "a"))
	p.hear()
	w.ref.Stop(io.ErrUnexpectedEOF) // a crash
	if got := p.closed(); got != "" {
		t.Error(got)
	}
	kerneltest.Eventually(t, "it is back", func() bool { return w.ref.Current() != w.ref })
	again := w.dial()
	again.say(request("2", "b"))
	if got := again.hear(); !strings.Contains(got, `"id":2,`) {
		t.Error(got)
	}
}

// scarce is a listener that has no descriptor left for a while.
type scarce struct {
	*net.UnixListener
	failures atomic.Int64
}

func (s *scarce) Accept() (net.Conn, error) {
	conn, err := s.UnixListener.Accept()
	if err == nil && s.failures.Add(-1) >= 0 {
		_ = conn.Close()
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return conn, err
}

func TestABridgeOutlivesAWantOfDescriptors(t *testing.T) {
	path := filepath.Join(folder(t), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	short := &scarce{UnixListener: l}
	short.failures.Store(3)
	below, err := door.NewSocket(short)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = below.Close() })
	w := newWorld(t, func(c *Config) { c.Socket = &Socket{Socket: below, path: path} })
	w.socket = &Socket{Socket: below, path: path}
	for range 3 {
		w.dial().closed()
	}
	p := w.dial()
	p.say(request("1", "a"))
	if got := p.hear(); !strings.Contains(got, `"id":1,"result"`) || w.ref.Current() != w.ref || w.refused("accept") != 3 {
		t.Errorf("%s; %d are counted", got, w.refused("accept"))
	}
}
