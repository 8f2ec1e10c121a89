package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wirePeer is a client on the bare socket: it sends what no library would, answers nothing by itself and reads when it is told.
type wirePeer struct {
	t    *testing.T
	conn net.Conn
}

func upgraded(t *testing.T, p *pod) *wirePeer {
	t.Helper()
	conn, response := rawSocket(t, p, "")
	if response.StatusCode != 101 {
		t.Fatalf("upgrade: %s", response.Status)
	}
	return &wirePeer{t, conn}
}

// greeted is upgraded and initialized.
func greeted(t *testing.T, p *pod) *wirePeer {
	t.Helper()
	w := upgraded(t, p)
	w.send(initialize)
	w.answered("1", 0)
	return w
}

func (w *wirePeer) raw(b []byte) {
	w.t.Helper()
	if _, err := w.conn.Write(b); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		w.t.Fatal(err) // what the pod has closed is seen by what it says
	}
}

func (w *wirePeer) send(text string) { w.t.Helper(); w.raw(maskedFrame(text)) }

// message is the next text message, put together from its fragments; pings and keep-alives are passed over.
func (w *wirePeer) message() string {
	w.t.Helper()
	var whole strings.Builder
	for {
		first, payload := w.frame()
		switch first & 0x0f {
		case 0x8:
			w.t.Fatalf("closed with %x", payload)
		case 0x9, 0xa:
			continue
		}
		whole.Write(payload)
		if first&0x80 == 0 {
			continue
		}
		if text := whole.String(); !strings.Contains(text, `"_acpod/keepalive"`) {
			return text
		}
		whole.Reset()
	}
}

// frame is the next frame of the pod, whatever it is: its first byte and its payload.
func (w *wirePeer) frame() (first byte, payload []byte) {
	w.t.Helper()
	first, payload, err := w.tryFrame()
	if err != nil {
		w.t.Fatalf("reading a frame: %v", err)
	}
	return first, payload
}

func (w *wirePeer) tryFrame() (first byte, payload []byte, err error) {
	var header [10]byte
	if _, err = readFull(w.conn, header[:2]); err != nil {
		return 0, nil, err
	}
	if header[1]&0x80 != 0 {
		return 0, nil, errors.New("a server's frame is masked")
	}
	n := uint64(header[1] & 0x7f)
	switch n {
	case 126:
		_, err = readFull(w.conn, header[2:4])
		n = uint64(binary.BigEndian.Uint16(header[2:4]))
	case 127:
		_, err = readFull(w.conn, header[2:10])
		n = binary.BigEndian.Uint64(header[2:10])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = readFull(w.conn, payload)
	return header[0], payload, err
}

// answered wants the answer with that id next, updates aside, and with that error code; 0 is a result.
func (w *wirePeer) answered(id string, code int) frame {
	w.t.Helper()
	for {
		f := frame{raw: w.message()}
		if err := json.Unmarshal([]byte(f.raw), &f); err != nil {
			w.t.Fatalf("%v in %.300s", err, f.raw)
		}
		if f.Method != "" {
			continue
		}
		got := 0
		if f.Error != nil {
			got = f.Error.Code
		}
		if string(f.ID) != id || got != code {
			w.t.Fatalf("answered %.300s; want id %s and code %d", f.raw, id, code)
		}
		return f
	}
}

// anyAnswer is the answer with that id, updates aside.
func (w *wirePeer) anyAnswer(id string) frame {
	w.t.Helper()
	for {
		f := frame{raw: w.message()}
		if err := json.Unmarshal([]byte(f.raw), &f); err != nil {
			w.t.Fatalf("%v in %.300s", err, f.raw)
		}
		if f.Method == "" && string(f.ID) == id {
			return f
		}
	}
}

// ping makes sure that all sent before was dealt with.
func (w *wirePeer) ping() {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"still there?","method":"_test/ping"}`)
	w.answered(`"still there?"`, -32601)
}

// closed wants a close frame with that code, and after it the end of the socket without a reset.
func (w *wirePeer) closed(code uint16) {
	w.t.Helper()
	for {
		first, payload, err := w.tryFrame()
		if err != nil {
			w.t.Fatalf("no close frame: %v", err)
		}
		if first&0x0f != 0x8 {
			continue
		}
		if len(payload) < 2 || binary.BigEndian.Uint16(payload) != code {
			w.t.Fatalf("closed with %x %q, not %d", payload[:min(2, len(payload))], payload, code)
		}
		break
	}
	if _, err := io.Copy(io.Discard, w.conn); err != nil {
		w.t.Fatalf("after the close frame: %v", err)
	}
}

// open opens a session without servers and gives its id.
func (w *wirePeer) open() string {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"open","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	var opened struct{ SessionID string }
	if err := json.Unmarshal(w.answered(`"open"`, 0).Result, &opened); err != nil || opened.SessionID == "" {
		w.t.Fatalf("session/new: %v", err)
	}
	return opened.SessionID
}

func (w *wirePeer) prompt(id, session, text string) {
	w.t.Helper()
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session, text))
}

// wireFrame builds one client frame by its parts: the first byte, the payload, masked.
func wireFrame(first byte, payload string) []byte {
	frame := maskedFrame(payload)
	frame[0] = first
	return frame
}

// announced is the 14 bytes of a header with a 64-bit length, and nothing behind them.
func announced(first byte, length uint64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, length), 1, 2, 3, 4)
}

// eventually polls for something that the pod shows.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}
