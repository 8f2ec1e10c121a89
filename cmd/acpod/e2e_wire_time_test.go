package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// A client that is gone without a word is found by a ping; one that says anything at all is not gone.
func TestSilenceEndsAConnectionAndAnyTrafficDoesNot(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.keepalive", `"300ms"`, "acp.pong_timeout", `"3s"`))
	chatty := greeted(t, p)
	begun := time.Now()
	silent := greeted(t, p)
	over := make(chan struct{})
	go func() { // a frame that is not even answered, and never a pong
		defer close(over)
		beat := time.NewTicker(100 * time.Millisecond)
		defer beat.Stop()
		for time.Since(begun) < 6*time.Second {
			if _, err := chatty.conn.Write(maskedFrame(`{"jsonrpc":"2.0","method":"no/such"}`)); err != nil {
				return
			}
			<-beat.C
		}
	}()
	pings, kept := 0, 0
	for {
		first, payload, err := silent.tryFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch first {
		case 0x89:
			pings++
		case 0x81:
			kept++
			if string(payload) != `{"jsonrpc":"2.0","method":"_acpod/keepalive"}` {
				t.Errorf("said %s", payload)
			}
		case 0x88:
			if string(payload) != "\x03\xf0pong_timeout" { // 1008
				t.Errorf("closed with %q", payload)
			}
			if lived := time.Since(begun); lived < 3*time.Second {
				t.Errorf("closed after %v", lived)
			}
			if pings > 1 || kept < 2 { // the ping may have come before the answer to initialize, when that took long
				t.Errorf("%d pings and %d keep-alives", pings, kept)
			}
			<-over
			chatty.ping()
			return
		}
	}
}

// Only an initialize that is sound counts.
func TestAConnectionWithoutInitializeIsClosedWhateverItSays(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.initialize_timeout", `"1s"`))
	w := upgraded(t, p)
	for range 3 {
		w.ping()
	}
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":0}}`)
	w.answered("1", -32602)
	w.closed(1008)
	late := greeted(t, p)
	opened := time.Now()
	for time.Since(opened) < 2*time.Second { // past the timeout
		late.ping()
	}
}

// A client that reads nothing is closed after the write timeout; its session lives on and is found again.
func TestAClientThatReadsNothingIsClosedAndItsSessionLives(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.write_timeout", `"1s"`))
	witness := dial(t, p)
	other := witness.open()
	w := upgraded(t, p)
	_ = w.conn.(buffered).Conn.(*net.TCPConn).SetReadBuffer(16 << 10) // full before a pong is due, however slowly the agent pours
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"_meta":{"acpod.dev/client":"0123456789abcdef"}}}`
	w.send(hello)
	w.answered("1", 0)
	session := w.open()
	w.prompt("2", session, "/flood 20000") // 20 MB: more than any socket holds
	eventually(t, "the end of the connection", func() bool { return p.tree().Pod.Connections == 1 })
	if !strings.Contains(p.log.String(), "write_timeout") {
		t.Error("the log does not say why")
	}
	if n := p.tree().Pod.Sessions; n != 2 {
		t.Errorf("%d sessions live", n)
	}
	again := upgraded(t, p)
	again.send(hello)
	again.answered("1", 0)
	again.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/resume","params":{"cwd":"/","sessionId":%q}}`, session))
	if f := again.answered("2", 0); !strings.Contains(f.raw, `"acpod.dev/session"`) {
		t.Errorf("answered %.300s", f.raw)
	}
	again.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
	for id := 3; ; id++ { // busy as long as the turn has not ended
		again.prompt(fmt.Sprint(id), session, "found")
		f := again.anyAnswer(fmt.Sprint(id))
		if f.Error == nil {
			break
		}
		if f.Error.Code != -32001 || id > 1000 {
			t.Fatalf("answered %.300s", f.raw)
		}
	}
	witness.says(other, "alive", "echo: alive\n")
}

// What one session pours out does not stand before the cancel of another's call.
func TestACancelPassesAnotherSessionsFlood(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }
	calling := e.open(server)
	pouring := e.openMore()
	call := e.sendPrompt(calling, "/call katashiro.click {}")
	e.await("the call", func() bool { return server.callCount() == 1 })
	flood := e.sendPrompt(pouring, "/flood 2000\n/emit 1000000\n/flood 100\n/emit 1000000")
	e.await("the flood", func() bool { return len(e.frames) > 200 })
	e.notify("session/cancel", object{"sessionId": calling})
	if f := e.answer(call); stopReason(f) != "cancelled" {
		t.Errorf("answered %s", f.raw)
	}
	e.await("the cancel at the server", func() bool { return server.cancelled() > 0 })
	e.answer(flood)
	e.mu.Lock()
	defer e.mu.Unlock()
	cancelled, ended := -1, -1
	for i, f := range e.frames {
		switch {
		case cancelled < 0 && (f.Method == "$/cancel_request" || f.Method == "mcp/cancel"):
			cancelled = i
		case f.Method == "" && string(f.ID) == flood:
			ended = i
		}
	}
	if left := ended - cancelled; cancelled < 0 || left < 1_000 {
		t.Errorf("the cancel came only %d frames before the end of the flood", left)
	}
}
