package main

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"
)

// rawSocket upgrades by hand and gives the bare TCP connection: what no sound client sends can be sent on it.
func rawSocket(t *testing.T, p *pod, header string, early ...byte) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Public)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	request := "GET /acp HTTP/1.1\r\nHost: " + p.Public + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + header + "\r\n"
	if _, err := conn.Write(append([]byte(request), early...)); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return buffered{conn, reader}, response
}

type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// maskedFrame is one client frame of a text.
func maskedFrame(text string) []byte {
	frame := []byte{0x81}
	switch n := len(text); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	var mask [4]byte
	_, _ = rand.Read(mask[:])
	frame = append(frame, mask[:]...)
	for i := range len(text) {
		frame = append(frame, text[i]^mask[i%4])
	}
	return frame
}

// readFrame reads one server frame.
func readFrame(t *testing.T, conn net.Conn) (opcode byte, payload []byte) {
	t.Helper()
	var header [2]byte
	if _, err := readFull(conn, header[:]); err != nil {
		t.Fatalf("reading a frame: %v", err)
	}
	n := uint64(header[1] & 0x7f)
	switch n {
	case 126:
		var size [2]byte
		if _, err := readFull(conn, size[:]); err != nil {
			t.Fatal(err)
		}
		n = uint64(binary.BigEndian.Uint16(size[:]))
	case 127:
		var size [8]byte
		if _, err := readFull(conn, size[:]); err != nil {
			t.Fatal(err)
		}
		n = binary.BigEndian.Uint64(size[:])
	}
	payload = make([]byte, n)
	if _, err := readFull(conn, payload); err != nil {
		t.Fatal(err)
	}
	return header[0] & 0x0f, payload
}

func readFull(conn net.Conn, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = conn.Read(p[n:])
		n += m
	}
	return n, err
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`

// 14 bytes that announce a frame of negative length must cost their sender its socket, and nobody else anything.
func TestAFrameOfNegativeLengthEndsOnlyItsOwnSocket(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	witness := dial(t, p)
	session := witness.open()
	for _, top := range []byte{0x80, 0xff, 0x7f, 0x40} {
		conn, response := rawSocket(t, p, "")
		if response.StatusCode != 101 {
			t.Fatalf("upgrade: %d", response.StatusCode)
		}
		header := append([]byte{0x82, 0x80 | 127}, top, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4)
		if _, err := conn.Write(header); err != nil {
			t.Fatal(err)
		}
		if n, err := drain(conn); err == nil {
			t.Errorf("length %#x…: the socket stayed open after %d bytes", top, n)
		}
	}
	witness.says(session, "alive", "echo: alive\n")
}

// drain reads until the peer closes and gives that error; nil is a deadline.
func drain(conn net.Conn) (int, error) {
	total, buffer := 0, make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		total += n
		if err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				return total, nil
			}
			return total, err
		}
	}
}

func TestAFrameSentBeforeThe101IsNotLost(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	conn, response := rawSocket(t, p, "", maskedFrame(initialize)...)
	if response.StatusCode != 101 || response.Header.Get("Acp-Connection-Id") == "" {
		t.Fatalf("upgrade: %d %v", response.StatusCode, response.Header)
	}
	if _, payload := readFrame(t, conn); !strings.Contains(string(payload), `"acpod"`) {
		t.Errorf("answered %s", payload)
	}
}

func TestTwoSubprotocolLinesAreReadAsOne(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.auth_key", `"k3y"`))
	_, response := rawSocket(t, p, "Sec-WebSocket-Protocol: openab.bearer.k3y\r\nSec-WebSocket-Protocol: acp.v1\r\n")
	if got := response.Header.Values("Sec-WebSocket-Protocol"); response.StatusCode != 101 || len(got) != 1 || got[0] != "acp.v1" {
		t.Errorf("%d %v", response.StatusCode, got)
	}
}

func TestTextThatIsNotUTF8IsMendedAndNothingElse(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	session := e.open()
	if err := e.conn.WriteMessage(gws.OpcodeText, []byte(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":777,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"a`+"\xff"+`b"}]}}`, session))); err != nil {
		t.Fatal(err)
	}
	if answer := e.answer("777"); stopReason(answer) != "end_turn" {
		t.Fatalf("answered %s", answer.raw)
	}
	if got := e.streamed(session, 0, "777"); got != "echo: a\ufffdb\n" {
		t.Errorf("streamed %q", got)
	}
}

func TestFramesThatAreNotRequests(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	e.hello()
	for _, row := range []struct {
		name, frame, id string
		code            int
	}{
		{"not JSON", `{"jsonrpc":"2.0",`, "null", -32700},
		{"not JSON at all", `hello`, "null", -32700},
		{"nested too deeply", `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`, "null", -32700},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, "null", -32600},
		{"an empty batch", `[]`, "null", -32600},
		{"an object as id", `{"jsonrpc":"2.0","id":{},"method":"initialize"}`, "null", -32600},
		{"a repeated member", `{"jsonrpc":"2.0","id":901,"id":902,"method":"x"}`, "null", -32600},
		{"a repeated member, spelled otherwise", `{"jsonrpc":"2.0","id":903,"method":"x","\u006dethod":"y"}`, "null", -32600},
		{"another version", `{"jsonrpc":"1.0","id":904,"method":"initialize"}`, "904", -32600},
		{"an unknown method", `{"jsonrpc":"2.0","id":"str-905","method":"no/such"}`, `"str-905"`, -32601},
		{"an unknown method with a big id", `{"jsonrpc":"2.0","id":90071992547409931,"method":"no/such"}`, "90071992547409931", -32601},
		{"cancel as a request", `{"jsonrpc":"2.0","id":906,"method":"session/cancel","params":{"sessionId":"x"}}`, "906", -32600},
		{"a version below ours", `{"jsonrpc":"2.0","id":907,"method":"initialize","params":{"protocolVersion":0}}`, "907", -32602},
		{"a version that is no integer", `{"jsonrpc":"2.0","id":908,"method":"initialize","params":{"protocolVersion":"1"}}`, "908", -32602},
	} {
		e.mu.Lock()
		delete(e.answers, row.id)
		e.mu.Unlock()
		e.write(row.frame)
		answer := e.answer(row.id)
		if answer.Error == nil || answer.Error.Code != row.code || string(answer.ID) != row.id {
			t.Errorf("%s: %s", row.name, answer.raw)
		}
	}
	for _, silent := range []string{
		`{"jsonrpc":"2.0","method":"no/such"}`, `{"jsonrpc":"2.0","method":"session/prompt","params":{}}`, `{"jsonrpc":"1.0","method":"x"}`,
		`{"jsonrpc":"2.0","id":424242,"result":{}}`, `{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
	} {
		e.write(silent)
	}
	e.mu.Lock()
	before := len(e.frames)
	e.mu.Unlock()
	var last frame
	e.call("initialize", object{"protocolVersion": 5})
	e.mu.Lock()
	if len(e.frames) != before+1 {
		t.Errorf("%d frames came for what deserves none:\n%s", len(e.frames)-before-1, e.lastFrames(8))
	}
	last = e.frames[len(e.frames)-1]
	e.mu.Unlock()
	if !strings.Contains(last.raw, `"protocolVersion":1`) {
		t.Errorf("a client of the future got %s", last.raw)
	}
}

func TestFramesAtTheirLimits(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	e.hello()
	pad := func(frame string, size int) string {
		return strings.Replace(frame, "PAD", strings.Repeat("p", size-len(frame)+len("PAD")), 1)
	}
	request := `{"jsonrpc":"2.0","id":51,"method":"no/such","params":"PAD"}`
	e.write(pad(request, 1<<20))
	if answer := e.answer("51"); answer.Error.Code != -32601 {
		t.Errorf("exactly 1 MiB: %s", answer.raw)
	}
	e.write(pad(strings.Replace(request, "51", "52", 1), 1<<20+1))
	if answer := e.answer("52"); answer.Error.Code != -32000 || answer.Error.Data["scope"] != "request_bytes" || answer.Error.Data["limit"] != float64(1<<20) || answer.Error.Data["size"] != float64(1<<20+1) {
		t.Errorf("one more: %s", answer.raw)
	}
	e.write(pad(`{"jsonrpc":"2.0","method":"no/such","params":"PAD"}`, 1<<20+1)) // dropped and counted
	e.write(pad(`{"jsonrpc":"2.0","id":4711,"result":"PAD"}`, 8<<20))            // a response may be as long as a frame
	e.hello()
	conn, ok := p.tree().find("/conn-1")
	if !ok || conn.Refused["request_bytes"] < 2 {
		t.Errorf("the refusals are not shown: %+v", conn)
	}
	e.write(pad(`{"jsonrpc":"2.0","id":4712,"result":"PAD"}`, 8<<20+1))
	if code := e.closeCode(); code != 1009 && code != 0 { // the close may be lost with the socket's unread bytes
		t.Errorf("over 8 MiB: closed with %d", code)
	}
}

func TestAPeerThatGoesOnWithNonsenseIsClosed(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	e.hello()
	for range 200 {
		_ = e.conn.WriteMessage(gws.OpcodeText, []byte("{"))
	}
	if code := e.closeCode(); code != 1013 {
		t.Errorf("closed with %d", code)
	}
	polite := dial(t, p)
	polite.hello()
	for i := range 200 { // an unknown method is a cheap ping, not nonsense
		polite.refused(-32601, "no/such", object{"i": i})
	}
	polite.hello()
}

// Sockets that announce a lot and send nothing are charged before anything is allocated for them.
func TestAnnouncedFramesAreChargedBeforeTheyAreHeld(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.pod_bytes", `"256MiB"`))
	for range 500 {
		conn, response := rawSocket(t, p, "")
		if response.StatusCode != 101 {
			t.Fatalf("upgrade: %d", response.StatusCode)
		}
		frame := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, 8<<20)
		if _, err := conn.Write(append(frame, 1, 2, 3, 4)); err != nil {
			continue // closed already: over the 64 KiB that a connection may send before initialize
		}
	}
	if figures := p.tree().Pod; figures.BytesUsed > figures.BytesLimit {
		t.Errorf("%d bytes of %d are used", figures.BytesUsed, figures.BytesLimit)
	}
	late := dial(t, p)
	late.says(late.open(), "room for one", "echo: room for one\n")
}

func TestAConnectionThatNeverInitializesIsClosed(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.initialize_timeout", `"200ms"`))
	if code := dial(t, p).closeCode(); code != 1008 {
		t.Errorf("closed with %d", code)
	}
}

func TestAnIdleConnectionIsKeptAlive(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.keepalive", `"200ms"`))
	e := dial(t, p)
	e.hello()
	e.await("two keep-alives", func() bool {
		n := 0
		for _, f := range e.frames {
			if f.Method == "_acpod/keepalive" && f.ID == nil && f.raw == `{"jsonrpc":"2.0","method":"_acpod/keepalive"}` {
				n++
			}
		}
		return n >= 2
	})
}
