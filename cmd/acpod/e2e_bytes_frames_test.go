//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A response of a client of exactly frame_bytes reaches the one who waits for it, to the byte; one more closes the socket with
// 1009, unanswered, and the one who waits is told. Between the two limits no response is judged by the smaller.
func TestAResponseAtTheByte(t *testing.T) {
	t.Parallel()
	p := startPlain(t, leaving(noAgent))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	size := 0
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) {
		envelope := len(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":}`, e.pending()))
		return sizedResult(size - envelope), nil, false
	}
	agent := e.facadeOf(e.open(server))
	for _, size = range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, 4 << 20, 8<<20 - 1, 8 << 20} {
		result := agent.execute("katashiro.click", fmt.Sprintf(`{"n":%d}`, size))
		if text := result.text(); result.IsError || len(text) < size-128 || strings.Trim(text, "p") != "" {
			t.Fatalf("a response of %d bytes: %.200s", size, result.raw)
		}
	}
	size = 8<<20 + 1
	if result := agent.execute("katashiro.click", `{"n":"over"}`); result.refusal() != "outcome_unknown" {
		t.Errorf("one byte more: %.300s", result.raw)
	}
	if code := e.closeCode(); code != 1009 && code != 0 { // the close may be lost with the socket's unread bytes
		t.Errorf("one byte more: closed with %d", code)
	}
	e.await("the end", func() bool { return e.gone })
	p.rest()
}

// The same in fragments: what counts is their sum, whatever they are cut into.
func TestAResponseInFragmentsAtTheByte(t *testing.T) {
	t.Parallel()
	p := startPlain(t, leaving(noAgent))
	for _, row := range []struct {
		name string
		over int
		cut  []int // lengths of the fragments; the rest is the last one
	}{
		{"eight of 1 MiB", 0, []int{1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20}},
		{"one byte and the rest", 0, []int{1}},
		{"all but a byte", 0, []int{8<<20 - 1}},
		{"with empty ones", 0, []int{0, 1 << 20, 0, 0, 5 << 20, 0}},
		{"the whole and nothing behind it", 0, []int{8 << 20}},
		{"one byte over, at the end", 1, []int{8 << 20}},
		{"one byte over, in the middle", 1, []int{4 << 20, 1, 3 << 20}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			server.run = heldCall
			agent := e.facadeOf(e.open(server))
			call := agent.start(e, server, "1", `{"name":"katashiro.click","arguments":{}}`)
			head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, e.pending())
			rest := padded(head, `"}]}}`, 8<<20+row.over)
			first := byte(0x01)
			var wire []byte
			for _, n := range row.cut {
				wire = append(wire, wireFrame(first, rest[:n])...)
				rest, first = rest[n:], 0x00
			}
			wire = append(wire, wireFrame(0x80, rest)...)
			_, _ = e.conn.NetConn().Write(wire) // what the pod has closed is seen by what it says
			result := call.wait()
			if row.over > 0 {
				if code := e.closeCode(); result.refusal() != "outcome_unknown" || code != 1009 && code != 0 {
					t.Errorf("closed with %d, and told %.300s", code, result.raw)
				}
				return
			}
			if text := result.text(); result.IsError || strings.Trim(text, "p") != "" || len(text) < 8<<20-128 {
				t.Errorf("%.300s", result.raw)
			}
			e.hangUp()
		})
	}
	p.rest()
}

// A header that lies costs its sender the socket, at once when it says too much, and nobody else anything.
func TestAHeaderThatLies(t *testing.T) {
	t.Parallel()
	p := startPlain(t, leaving(noAgent))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	for _, row := range []struct {
		name   string
		length uint64
		code   uint16
	}{
		{"8 MiB and one", 8<<20 + 1, 1009}, {"1 GiB", 1 << 30, 1009}, {"2^62", 1 << 62, 1009}, {"2^63-1", 1<<63 - 1, 1009}, {"2^63", 1 << 63, 1002}, {"2^64-1", 1<<64 - 1, 1002},
	} {
		before := p.memory("VmRSS")
		for range 20 {
			w := greeted(t, p)
			begun := time.Now()
			w.raw(append(announced(0x81, row.length), 'x'))
			w.closed(row.code)
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("%s: closed after %v, not at once", row.name, took)
			}
		}
		if after := p.memory("VmRSS"); after > before+64<<20 {
			t.Errorf("%s: 20 such headers cost %d bytes", row.name, after-before)
		}
	}
	used := p.tree().Pod.BytesUsed
	var liars []*wirePeer
	for range 10 { // exactly what is allowed, and one byte of it: it is charged, and given back when they go
		w := greeted(t, p)
		w.raw(append(announced(0x81, 8<<20), 'x'))
		liars = append(liars, w)
	}
	p.await("the charge for what was announced", func() bool { return p.tree().Pod.BytesUsed >= used+10*8<<20 })
	if result := agent.execute("katashiro.click", `{"n":1}`); result.IsError {
		t.Errorf("a neighbour meanwhile: %s", result.raw)
	}
	for _, w := range liars {
		_ = w.conn.Close()
	}
	p.await("the end of the charge", func() bool { return p.tree().Pod.BytesUsed <= used })
	e.hangUp()
	p.rest()
	p.kept(256 << 20)
}

// A request of exactly request_bytes passes; one more is -32000 with its id, its size and the limit, and the connection lives.
// Such a notification is dropped and counted.
func TestARequestAtTheByte(t *testing.T) {
	t.Parallel()
	p := startPlain(t, baseConfig)
	w := greeted(t, p)
	session := w.open()
	prompt := func(id string, size int) string {
		return padded(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"/flood 1\n`, id, session), `"}]}}`, size)
	}
	w.send(prompt("2", 1<<20))
	if f := w.anyAnswer("2"); stopReason(f) != "end_turn" {
		t.Errorf("a prompt of exactly 1 MiB: %.300s", f.raw)
	}
	w.send(prompt(`"its id"`, 1<<20+1))
	refused := w.answered(`"its id"`, -32000).Error
	if refused.Data["scope"] != "request_bytes" || refused.Data["limit"] != float64(1<<20) || refused.Data["size"] != float64(1<<20+1) {
		t.Errorf("data %v", refused.Data)
	}
	w.send(padded(`{"jsonrpc":"2.0","method":"session/cancel","params":"`, `"}`, 1<<20+1))
	w.ping()
	if n := p.refusals("request_bytes"); n != 2 {
		t.Errorf("%d were counted", n)
	}
	w.prompt("3", session, "still here")
	if f := w.anyAnswer("3"); stopReason(f) != "end_turn" {
		t.Errorf("the connection does not live: %.300s", f.raw)
	}
}
