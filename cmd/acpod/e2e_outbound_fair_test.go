//go:build !race

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// An MCP client that does not read its result of 8 MiB holds up nobody else: not the calls of other sessions over the same
// socket, not their cancels, and not the other calls of its own session.
func TestALargeResultHoldsUpOnlyWhoDoesNotReadIt(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.write_timeout", `"5m"`))
	e := dial(t, p)
	large := strings.Repeat("L", 7<<20)
	bulky, holding := newServer("katashiro", genA, "katashiro.click"), newServer("other", genA, "other.click")
	bulky.run = func(_ string, arguments json.RawMessage) (any, *rpcError, bool) {
		if strings.Contains(string(arguments), "large") {
			return textResult(large), nil, false
		}
		return textResult("small"), nil, false
	}
	holding.run = heldCall
	one := e.open(bulky)
	e.ready(one, "katashiro")
	two := e.openMore(holding)
	e.ready(two, "other")

	reader := p.callerOf(one)
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"large":1}}}}`
	patient, done := context.WithTimeout(t.Context(), 2*patience)
	defer done()
	response, err := narrowHTTP().Do(reader.request(patient, body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadFull(response.Body, make([]byte, 1000)); err != nil { // it has begun, and is not read on
		t.Fatal(err)
	}

	if r := reader.execute("katashiro.click", `{}`); r.text() != "small" {
		t.Errorf("another call of the same session: %s", r.raw)
	}
	e.says(two, "alive", "echo: alive\n")
	turn := e.sendPrompt(two, `/call other.click {}`)
	e.await("the call", func() bool { return holding.callCount() == 1 })
	e.notify("session/cancel", object{"sessionId": two})
	if f := e.answer(turn); stopReason(f) != "cancelled" {
		t.Errorf("answered %.300s", f.raw)
	}
	e.await("the cancel at the server", func() bool { return holding.cancelled() > 0 })

	rest, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(rest), strings.Repeat("L", 6<<20)) {
		t.Errorf("the rest has %d bytes: %v", len(rest), err)
	}
}

// narrowHTTP is an HTTP client whose sockets take in little that is not read.
func narrowHTTP() *http.Client {
	dialer := &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		if err := raw.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		}); err != nil {
			return err
		}
		return failed
	}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// To a client that reads slowly, what one session pours out in large pieces goes in turn with what others say: an answer or a
// cancel waits for the piece that is on its way, and not for those behind it.
func TestALargeUpdateIsFollowedByWhatOthersHaveToSay(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := narrowPeer(t, p)
	w.greet()
	pouring, talking := w.open(), w.open()
	w.prompt("10", pouring, "/emit 6000000\n/emit 6000001\n/emit 6000002\n/emit 6000003")
	first, _ := w.frame()
	for first&0x80 != 0 { // until the first large message has begun
		first, _ = w.frame()
	}
	w.prompt("11", talking, "hello")
	p.await("the short turn", func() bool { // it is over; what it said waits
		node, ok := p.tree().find("/" + treeName(talking))
		return ok && node.Attrs["turn"] == "idle"
	})
	for first&0x80 == 0 { // the rest of the first
		if f, _ := w.frame(); f&0x0f == 0 {
			first = f
		}
	}
	large := 0
	w.hear("11", func(f frame) {
		if len(f.raw) > 1<<20 {
			large++
		}
	})
	if large > 1 { // one may have been on its way when the short turn began
		t.Errorf("%d large updates came before the answer of the other session", large)
	}
	w.hear("10", nil)
}
