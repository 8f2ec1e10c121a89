package main

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever a socket's bytes are, they end that socket at most, with the code that says why.
func TestEvilFramesEndOnlyTheirOwnSocket(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	witness := dial(t, p)
	session := witness.open()
	openMessage := wireFrame(0x01, `{"jsonrpc":`) // the first fragment of a message
	for _, row := range []struct {
		name  string
		bytes []byte
		code  uint16
	}{
		{"length 2^63", announced(0x81, 1<<63), 1002},
		{"length 2^63+1", announced(0x82, 1<<63+1), 1002},
		{"length 2^64-1", announced(0x81, 1<<64-1), 1002},
		{"length 2^63-1", announced(0x81, 1<<63-1), 1009},
		{"length 2^62", announced(0x82, 1<<62), 1009},
		{"length 2^32", announced(0x81, 1<<32), 1009},
		{"length 2^31-1", announced(0x01, 1<<31-1), 1009},
		{"one byte over 8 MiB", announced(0x81, 8<<20+1), 1009},
		{"a ping of 2^63", announced(0x89, 1<<63), 1002},
		{"a ping of 2^63-1", announced(0x89, 1<<63-1), 1002},
		{"a close of 2^40", announced(0x88, 1<<40), 1002},
		{"a continuation of 2^63 behind a fragment", append(append([]byte{}, openMessage...), announced(0x80, 1<<63)...), 1002},
		{"a continuation of 2^63-1 behind a fragment", append(append([]byte{}, openMessage...), announced(0x80, 1<<63-1)...), 1009},
		{"a continuation that makes it one byte too long", append(append([]byte{}, openMessage...), announced(0x80, 8<<20-10)...), 1009},
		{"a continuation of nothing", wireFrame(0x80, "x"), 1002},
		{"a second message inside a fragmented one", append(append([]byte{}, openMessage...), wireFrame(0x81, "x")...), 1002},
		{"no mask", []byte{0x81, 1, 'a'}, 1002},
		{"no mask and nothing in it", []byte{0x81, 0}, 1002},
		{"RSV1, as if compressed", wireFrame(0xc1, "x"), 1002},
		{"RSV2", wireFrame(0xa1, "x"), 1002},
		{"RSV3", wireFrame(0x91, "x"), 1002},
		{"a reserved opcode", wireFrame(0x83, "x"), 1002},
		{"a reserved control opcode", wireFrame(0x8b, "x"), 1002},
		{"a ping in fragments", wireFrame(0x09, "x"), 1002},
		{"a ping of 126 bytes", wireFrame(0x89, strings.Repeat("x", 126)), 1002},
		{"a close frame of one byte", wireFrame(0x88, "x"), 1002},
		{"a close frame with code 1005", wireFrame(0x88, "\x03\xed"), 1002},
		{"a close frame with code 999", wireFrame(0x88, "\x03\xe7"), 1002},
		{"a close frame with code 0", wireFrame(0x88, "\x00\x00"), 1002},
		{"a close frame with code 65535", wireFrame(0x88, "\xff\xff"), 1002},
		{"a close frame with markup", wireFrame(0x88, "\x0f\xa1<b>\x1b[31m\n\xff"), 4001},
		{"a close frame with a code of ours", wireFrame(0x88, "\x03\xe9bye"), 1001},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := greeted(t, p)
			w.raw(row.bytes)
			w.closed(row.code)
		})
	}
	empty := greeted(t, p)
	empty.raw(wireFrame(0x88, ""))
	if first, payload := empty.frame(); first != 0x88 || len(payload) != 0 {
		t.Errorf("a close frame without a code was answered %x %x", first, payload)
	}
	witness.says(session, "alive", "echo: alive\n")
	eventually(t, "the end of all but the witness", func() bool { return p.tree().Pod.Connections == 1 })
	for _, line := range strings.Split(p.log.String(), "\n") {
		for _, c := range line {
			if c < ' ' || c == 0x7f {
				t.Fatalf("a control character in the log: %q", line)
			}
		}
	}
	if n := strings.Count(p.log.String(), "connection ended"); n != 33 {
		t.Errorf("33 connections ended in %d lines", n)
	}
}

// A mask of zeros is a mask, a message may come in any pieces, and control frames may stand between them.
func TestAMessageMayComeInAnyPieces(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := upgraded(t, p)
	for _, b := range maskedFrame(initialize) { // one byte at a time
		w.raw([]byte{b})
	}
	w.answered("1", 0)

	plain := `{"jsonrpc":"2.0","id":2,"method":"no/such"}`
	w.raw(append([]byte{0x81, 0x80 | byte(len(plain)), 0, 0, 0, 0}, plain...))
	w.answered("2", -32601)

	request := `{"jsonrpc":"2.0","id":3,"method":"no/such","params":"é"}`
	for i := range len(request) { // each byte a fragment, cut inside a character as well, with empty ones and pings between
		first := byte(0x00)
		if i == 0 {
			first = 0x01
		}
		w.raw(wireFrame(first, request[i:i+1]))
		w.raw(wireFrame(0x00, ""))
		if i%20 == 0 {
			w.raw(wireFrame(0x89, fmt.Sprint("ping ", i)))
			if first, payload := w.frame(); first != 0x8a || string(payload) != fmt.Sprint("ping ", i) {
				t.Fatalf("a ping between fragments was answered %x %q", first, payload)
			}
			w.raw(wireFrame(0x8a, "nobody asked for this pong"))
		}
	}
	w.raw(wireFrame(0x80, ""))
	w.answered("3", -32601)

	longest := strings.Repeat("p", 125)
	w.raw(wireFrame(0x89, longest))
	if first, payload := w.frame(); first != 0x8a || string(payload) != longest {
		t.Errorf("a ping of 125 bytes was answered %x %q", first, payload)
	}
	w.raw(wireFrame(0x89, ""))
	if first, payload := w.frame(); first != 0x8a || len(payload) != 0 {
		t.Errorf("an empty ping was answered %x %q", first, payload)
	}

	for range 70 { // more than the budget of refusals: they are ignored, not refused
		w.raw(wireFrame(0x82, `{"jsonrpc":"2.0","id":4,"method":"no/such"}`))
		w.raw(wireFrame(0x82, "\x00\xff"))
	}
	w.ping() // the next answer is to this: nothing answered a binary frame
	if node, ok := p.tree().find("/conn-1"); !ok || node.Refused["binary"] != 140 {
		t.Errorf("ignored binary frames are not shown: %v", node.Refused)
	}
}

// The limits of a frame hold to the byte, whole or in fragments.
func TestFrameLimitsHoldToTheByte(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	padded := func(head, tail string, size int) string {
		return head + strings.Repeat("p", size-len(head)-len(tail)) + tail
	}
	request := func(id string, size int) string {
		return padded(`{"jsonrpc":"2.0","id":`+id+`,"method":"no/such","params":"`, `"}`, size)
	}
	response := func(size int) string { return padded(`{"jsonrpc":"2.0","id":4711,"result":"`, `"}`, size) }

	early := upgraded(t, p)
	early.send(request("1", 64<<10))
	early.answered("1", -32601)
	early.send(request("2", 64<<10+1))
	early.closed(1009)
	early = upgraded(t, p)
	early.raw(wireFrame(0x01, request("1", 64<<10)))
	early.raw(wireFrame(0x80, "x"))
	early.closed(1009)
	greeted(t, p)          // from now on the pod knows what its agent offers, and answers initialize at once
	early = upgraded(t, p) // what follows a sound initialize may be as large as it likes, also when it does not wait
	early.raw(append(maskedFrame(initialize), maskedFrame(request("2", 1<<20))...))
	early.answered("1", 0)
	early.answered("2", -32601)

	w := greeted(t, p)
	w.send(request("2", 1<<20))
	w.answered("2", -32601)
	w.send(request("3", 1<<20+1))
	refused := w.answered("3", -32000).Error
	if refused.Data["scope"] != "request_bytes" || refused.Data["limit"] != float64(1<<20) || refused.Data["used"] != float64(1<<20+1) || refused.Data["size"] != float64(1<<20+1) {
		t.Errorf("data %v", refused.Data)
	}
	if !strings.Contains(refused.Message, "1048577") || !strings.Contains(refused.Message, "1048576") || !strings.Contains(refused.Message, "no/such") {
		t.Errorf("the message does not name size, limit and method: %s", refused.Message)
	}
	w.send(padded(`{"jsonrpc":"2.0","method":"no/such","params":"`, `"}`, 1<<20+1))
	w.ping()
	for _, size := range []int{1<<20 + 1, 4 << 20, 8 << 20} { // a response is never held to a request's limit
		w.send(response(size))
		w.ping()
	}
	whole := response(8 << 20)
	for i := range 8 {
		w.raw(wireFrame(map[int]byte{0: 0x01, 7: 0x80}[i], whole[i<<20:(i+1)<<20]))
	}
	w.ping()
	node, ok := p.tree().find(nodeOfNewest(p))
	if !ok || node.Refused["request_bytes"] != 2 || node.Refused["late_answer"] != 4 {
		t.Errorf("refused: %v", node.Refused)
	}
	w.send(response(8<<20 + 1))
	w.closed(1009)

	w = greeted(t, p)
	for i := range 8 {
		w.raw(wireFrame(map[int]byte{0: 0x01}[i], whole[i<<20:(i+1)<<20]))
	}
	w.raw(wireFrame(0x80, "x"))
	w.closed(1009)
}

// nodeOfNewest is the path of the connection that came last.
func nodeOfNewest(p *pod) string {
	path, last := "", 0
	p.tree().each(func(n node) {
		var number int
		if i := strings.LastIndex(n.Path, "/conn-"); i >= 0 {
			if _, err := fmt.Sscanf(n.Path[i:], "/conn-%d", &number); err == nil && number > last {
				path, last = n.Path[i:], number
			}
		}
	})
	return path
}

// An id comes back to the byte, whatever it is; what is no id is answered with null.
func TestIDsComeBackAsTheyCame(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := greeted(t, p)
	for _, id := range []string{
		"0", "-1", "-0", "9007199254740993", "-9223372036854775808", "123456789012345678901234567890123456789", "null",
		`""`, `"1"`, `"\u0031"`, `"a\/b"`, `"\u003c\u003E<>"`, `"\ud800"`, `"é😀"`, `" "`, `"` + strings.Repeat("i", 1022) + `"`,
	} {
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"no/such"}`)
		want := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601`
		if got := w.message(); !strings.HasPrefix(got, want) {
			t.Errorf("id %.60s: answered %.200s", id, got)
		}
	}
	for _, id := range []string{"1.0", "1e2", "1E+2", "0.5", "true", "false", "{}", "[]", `[1]`, `{"a":1}`, `"` + strings.Repeat("i", 1023) + `"`, strings.Repeat("1", 2000)} {
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":{"protocolVersion":1}}`)
		w.answered("null", -32600)
	}
	for _, frame := range []string{`{"jsonrpc":"2.0","id":01,"method":"x"}`, `{"jsonrpc":"2.0","id":+1,"method":"x"}`, `{"jsonrpc":"2.0","id":.5,"method":"x"}`, `{"jsonrpc":"2.0","id":'1',"method":"x"}`, ``, ` `, "\ufeff{}"} {
		w.send(frame)
		w.answered("null", -32700)
	}
	w.ping()
}
