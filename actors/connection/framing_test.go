package connection

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/runtime/kernel"
)

// frameOf builds a client's frame. declared, when not nil, is the length that its header claims.
func frameOf(first byte, payload []byte, declared *uint64) []byte {
	var b []byte
	n := uint64(len(payload))
	if declared != nil {
		n = *declared
	}
	b = append(b, first)
	switch {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), n)
	}
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	b = append(b, mask[:]...)
	for i, c := range payload {
		b = append(b, c^mask[i%4])
	}
	return b
}

func textFrame(payload string) []byte { return frameOf(0x81, []byte(payload), nil) }

func headerOnly(length uint64) []byte { return frameOf(0x81, nil, &length) }

// script is a socket whose peer sends the given bytes in the given pieces and then ends. What is written to it is kept.
type script struct {
	net.Conn
	pieces  [][]byte
	written bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error)      { return s.written.Write(p) }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) Close() error                     { return nil }

// pieces cuts b at random places, seeded.
func pieces(b []byte, seed uint64) (out [][]byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	for len(b) > 0 {
		n := 1 + r.IntN(min(len(b), 1+r.IntN(64)))
		if r.IntN(4) == 0 {
			n = len(b)
		}
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

// outcome is what came of feeding bytes through the wire and gws.
type outcome struct {
	messages []string
	pings    []string
	reason   Reason
	maxUsed  int64
}

type collector struct {
	gws.BuiltinEventHandler
	w   *wire
	out *outcome
	err error
	bad error
}

func (c *collector) OnOpen(*gws.Conn)               {}
func (c *collector) OnClose(_ *gws.Conn, err error) { c.err = err }
func (c *collector) OnPing(_ *gws.Conn, p []byte)   { c.out.pings = append(c.out.pings, string(p)) }
func (c *collector) OnMessage(_ *gws.Conn, m *gws.Message) {
	c.out.maxUsed = max(c.out.maxUsed, c.w.account.Used())
	lease := c.w.paid(len(m.Bytes()))
	if lease.Size() != int64(len(m.Bytes())) {
		c.bad = fmt.Errorf("a message of %d bytes came with a lease of %d", len(m.Bytes()), lease.Size())
	}
	c.out.messages = append(c.out.messages, fmt.Sprintf("%d:%s", m.Opcode, m.Bytes()))
	lease.Release()
	_ = m.Close()
}

// run feeds the bytes through a wire and gws.
func run(t testing.TB, cfg Config, account *kernel.Account, open bool, in [][]byte) outcome {
	t.Helper()
	cfg = cfg.withDefaults()
	socket := &script{pieces: in}
	w := newWire(socket, bufio.NewReaderSize(socket, 64), account, &cfg)
	w.open.Store(open)
	var out outcome
	c := &collector{w: w, out: &out}
	request := &http.Request{Method: http.MethodGet, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}}
	up := gws.NewUpgrader(c, &gws.ServerOption{ReadMaxPayloadSize: int(cfg.FrameBytes), Logger: silent{}})
	conn, err := up.UpgradeFromConn(w, bufio.NewReaderSize(w, 128), request)
	if err != nil {
		t.Fatal(err)
	}
	w.upgraded = true
	conn.ReadLoop()
	if c.bad != nil {
		t.Error(c.bad)
	}
	w.paid(0).Release()
	if account.Used() != 0 {
		t.Errorf("%d bytes are left on the account", account.Used())
	}
	out.reason = (&reader{wire: w, closed: c.err}).ended().Reason
	return out
}

func testAccount(limit int64) *kernel.Account {
	return kernel.New(kernel.Options{}).Account().Child("connection_bytes", limit)
}

func TestFramesPassTheWire(t *testing.T) {
	big := string(bytes.Repeat([]byte("x"), 70_000))
	for _, test := range []struct {
		name     string
		in       []byte
		messages []string
		pings    []string
		reason   Reason
	}{
		{"nothing", nil, nil, nil, StreamEnded},
		{"one text", textFrame("hello"), []string{"1:hello"}, nil, StreamEnded},
		{"empty text", textFrame(""), []string{"1:"}, nil, StreamEnded},
		{"two in a row", append(textFrame("a"), textFrame("b")...), []string{"1:a", "1:b"}, nil, StreamEnded},
		{"16-bit length", textFrame(big[:300]), []string{"1:" + big[:300]}, nil, StreamEnded},
		{"64-bit length", textFrame(big), []string{"1:" + big}, nil, StreamEnded},
		{"binary", frameOf(0x82, []byte("b"), nil), []string{"2:b"}, nil, StreamEnded},
		{"ping", frameOf(0x89, []byte("p"), nil), nil, []string{"p"}, StreamEnded},
		{"fragments with a ping between", slices.Concat(frameOf(0x01, []byte("he"), nil), frameOf(0x89, []byte("p"), nil), frameOf(0x00, []byte("l"), nil), frameOf(0x80, []byte("lo"), nil)),
			[]string{"1:hello"}, []string{"p"}, StreamEnded},
		{"close", append(frameOf(0x88, []byte{0x03, 0xe8}, nil), textFrame("late")...), nil, nil, ClientClosed},
		{"cut in a header", textFrame("hello")[:3], nil, nil, StreamEnded},
		{"cut in a payload", textFrame("hello")[:8], nil, nil, StreamEnded},
		{"negative length", headerOnly(1 << 63), nil, nil, ProtocolError},
		{"length -1", headerOnly(^uint64(0)), nil, nil, ProtocolError},
		{"length -8", headerOnly(^uint64(0) - 7), nil, nil, ProtocolError},
		{"largest positive length", headerOnly(1<<63 - 1), nil, nil, FrameTooLarge},
		{"above the limit", headerOnly(8<<20 + 1), nil, nil, FrameTooLarge},
		{"unmasked", []byte{0x81, 0x01, 'a'}, nil, nil, ProtocolError},
		{"reserved bit", frameOf(0xc1, []byte("a"), nil), nil, nil, ProtocolError},
		{"reserved opcode", frameOf(0x83, []byte("a"), nil), nil, nil, ProtocolError},
		{"reserved control opcode", frameOf(0x8b, nil, nil), nil, nil, ProtocolError},
		{"long ping", frameOf(0x89, make([]byte, 126), nil), nil, nil, ProtocolError},
		{"ping in fragments", frameOf(0x09, nil, nil), nil, nil, ProtocolError},
		{"continuation of nothing", frameOf(0x80, []byte("a"), nil), nil, nil, ProtocolError},
		{"text within a message", append(frameOf(0x01, []byte("a"), nil), textFrame("b")...), nil, nil, ProtocolError},
	} {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(20) {
				out := run(t, Config{}, testAccount(48<<20), true, pieces(test.in, seed))
				if !slices.Equal(out.messages, test.messages) || !slices.Equal(out.pings, test.pings) || out.reason != test.reason {
					t.Fatalf("seed %d: got %.80q, pings %q, %s; want %.80q, pings %q, %s", seed, out.messages, out.pings, out.reason, test.messages, test.pings, test.reason)
				}
			}
		})
	}
}

func TestLimitsOfAMessage(t *testing.T) {
	cfg := Config{FrameBytes: 1000, EarlyFrameBytes: 100}
	payload := func(n int) []byte { return bytes.Repeat([]byte("y"), n) }
	fragments := func(sizes ...int) (b []byte) {
		for i, n := range sizes {
			first := byte(0x00)
			if i == 0 {
				first = 0x01
			}
			if i == len(sizes)-1 {
				first |= 0x80
			}
			b = append(b, frameOf(first, payload(n), nil)...)
		}
		return b
	}
	for _, test := range []struct {
		name   string
		open   bool
		in     []byte
		reason Reason
		n      int
	}{
		{"early, exactly the early limit", false, textFrame(string(payload(100))), StreamEnded, 1},
		{"early, one more", false, textFrame(string(payload(101))), FrameTooLarge, 0},
		{"early, fragments count together", false, fragments(60, 41), FrameTooLarge, 0},
		{"open, exactly the limit", true, textFrame(string(payload(1000))), StreamEnded, 1},
		{"open, one more", true, textFrame(string(payload(1001))), FrameTooLarge, 0},
		{"open, fragments up to the limit", true, fragments(300, 300, 400), StreamEnded, 1},
		{"open, fragments above it", true, fragments(300, 300, 401), FrameTooLarge, 0},
		{"a later message begins at zero", true, append(fragments(600, 400), fragments(600, 400)...), StreamEnded, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := run(t, cfg, testAccount(1<<20), test.open, [][]byte{test.in})
			if out.reason != test.reason || len(out.messages) != test.n {
				t.Errorf("%d messages, %s; want %d, %s", len(out.messages), out.reason, test.n, test.reason)
			}
		})
	}
}

// TestManySmallFragmentsNeedOneLease: the bytes charged follow the message, not the number of its fragments.
func TestManySmallFragmentsNeedOneLease(t *testing.T) {
	var in []byte
	const n = 20_000
	for i := range n {
		first := byte(0x00)
		if i == 0 {
			first = 0x01
		}
		in = append(in, frameOf(first, []byte("z"), nil)...)
	}
	in = append(in, frameOf(0x80, nil, nil)...)
	out := run(t, Config{}, testAccount(1<<20), true, [][]byte{in})
	if len(out.messages) != 1 || len(out.messages[0]) != n+2 {
		t.Fatalf("%d messages, %s", len(out.messages), out.reason)
	}
	if out.maxUsed < n || out.maxUsed > 4*n {
		t.Errorf("%d bytes were charged for a message of %d", out.maxUsed, n)
	}
}

// TestAFrameIsPaidForBeforeItsHeaderIsSeen: a reader behind the wire that would allocate from the header never gets one that
// the account has no room for.
func TestAFrameIsPaidForBeforeItsHeaderIsSeen(t *testing.T) {
	account := testAccount(10_000)
	cfg := Config{BytesWait: time.Millisecond}.withDefaults()
	length := uint64(8_000)
	socket := &script{pieces: [][]byte{headerOnly(length)}}
	w := newWire(socket, bufio.NewReader(socket), account, &cfg)
	w.open.Store(true)
	var b [1]byte
	if _, err := w.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	if account.Used() != 8<<10 { // the buffer that it will be read into
		t.Errorf("%d bytes are charged when the first byte of the header is handed over, want %d", account.Used(), 8<<10)
	}
	full, err := account.Acquire(10_000 - 8<<10)
	must(t, err)
	other := &script{pieces: [][]byte{headerOnly(1_000)}}
	v := newWire(other, bufio.NewReader(other), account, &cfg)
	v.open.Store(true)
	n, err := v.Read(b[:])
	var exit *Exit
	if n != 0 || !errors.As(err, &exit) || exit.Reason != Overloaded {
		t.Fatalf("got %d bytes and %v", n, err)
	}
	var refused *kernel.Overloaded
	if !errors.As(err, &refused) || refused.Scope != "connection_bytes" || refused.Size != 1_000 {
		t.Errorf("the refusal is %v", err)
	}
	full.Release()
	w.paid(0).Release()
}

func TestAReaderWaitsForBytesAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := testAccount(10_000)
		hold, err := account.Acquire(9_900)
		must(t, err)
		time.AfterFunc(4*time.Second, hold.Release)
		out := run(t, Config{}, account, true, [][]byte{textFrame(string(make([]byte, 5_000)))})
		if out.reason != StreamEnded || len(out.messages) != 1 {
			t.Errorf("%d messages, %s", len(out.messages), out.reason)
		}
	})
}

// pipe is a wire whose peer is a pipe, in a bubble of fake time.
func pipe(cfg Config) (peer net.Conn, w *wire) {
	peer, socket := net.Pipe()
	cfg = cfg.withDefaults()
	return peer, newWire(socket, bufio.NewReader(socket), testAccount(1<<20), &cfg)
}

func TestAMessageThatDoesNotGetWholeEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		in   []byte
	}{
		{"in its header", textFrame("hello")[:1]},
		{"in its payload", textFrame("hello")[:8]},
		{"between fragments", frameOf(0x01, []byte("he"), nil)},
		{"in a control frame", frameOf(0x89, []byte("ping"), nil)[:7]},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer, w := pipe(Config{})
				begun := time.Now()
				go func() { _, _ = peer.Write(test.in) }()
				_, err := io.Copy(io.Discard, w)
				var exit *Exit
				if !errors.As(err, &exit) || exit.Reason != FrameTimeout {
					t.Errorf("got %v", err)
				}
				if took := time.Since(begun); took != 30*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// stopped is a socket on which the deadline is noticed before what came in: that of a pod that stood still.
type stopped struct {
	script
	at, times int // the read, from 0, before which it stands still, and how many reads in a row say so
	reads     int
}

func (s *stopped) Read(p []byte) (int, error) {
	n := s.reads
	s.reads++
	if n >= s.at && n < s.at+s.times {
		return 0, os.ErrDeadlineExceeded
	}
	return s.script.Read(p)
}

func TestAPodThatStoodStillReadsWhatCameInMeanwhile(t *testing.T) {
	const limit = 1000
	over := headerOnly(limit + 1)
	for _, test := range []struct {
		name     string
		late     time.Duration // after the deadline
		in       [][]byte
		at, n    int
		want     Reason
		messages int
	}{
		{"in a header that says it is too large", time.Minute, [][]byte{over[:1], over[1:]}, 1, 1, FrameTooLarge, 0},
		{"in a payload", time.Minute, [][]byte{textFrame("hello")[:7], textFrame("hello")[7:]}, 1, 1, StreamEnded, 1},
		{"more than once in one message", time.Minute, [][]byte{over[:1], over[1:]}, 1, 2, FrameTimeout, 0},
		{"the peer is late, and not the pod", 0, [][]byte{over[:1], over[1:]}, 1, 1, FrameTimeout, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{FrameBytes: limit}.withDefaults()
			cfg.FrameTimeout = -test.late // it was over that long before it was noticed
			socket := &stopped{script: script{pieces: test.in}, at: test.at, times: test.n}
			w := newWire(socket, bufio.NewReader(socket), testAccount(1<<20), &cfg)
			w.open.Store(true)
			got, err := io.ReadAll(w)
			var exit *Exit
			if !errors.As(err, &exit) || exit.Reason != test.want || (len(got) > 0) != (test.messages > 0) {
				t.Errorf("%d bytes, %v; want %s", len(got), err, test.want)
			}
			w.paid(0).Release()
		})
	}
}

// TestABytesWaitIsNotThePeersFault: the time in which the socket is not read does not count against the frame.
func TestABytesWaitIsNotThePeersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, w := pipe(Config{})
		hold, err := w.account.Acquire(1 << 20)
		must(t, err)
		time.AfterFunc(4*time.Second, hold.Release)
		frame := textFrame("hello")
		go func() {
			_, _ = peer.Write(frame[:8])
			<-time.After(27 * time.Second) // 31 s after the first byte, 27 s of them the peer's
			_, _ = peer.Write(frame[8:])
			_ = peer.Close()
		}()
		n, err := io.Copy(io.Discard, w)
		var exit *Exit
		if !errors.As(err, &exit) || exit.Reason != StreamEnded || n != int64(len(frame)) {
			t.Errorf("%d bytes, then %v", n, err)
		}
	})
}

func TestAnIdleSocketHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, w := pipe(Config{})
		frame := textFrame("hi")
		go func() {
			for range 3 {
				for i := range frame { // byte by byte, so that a deadline is armed each time
					_, _ = peer.Write(frame[i : i+1])
				}
				<-time.After(time.Hour)
			}
			_ = peer.Close()
		}()
		n, err := io.Copy(io.Discard, w)
		var exit *Exit
		if !errors.As(err, &exit) || exit.Reason != StreamEnded || n != 3*int64(len(frame)) {
			t.Errorf("%d bytes, then %v", n, err)
		}
	})
}

func TestReadingIsCalledOff(t *testing.T) {
	for _, sent := range [][]byte{nil, textFrame("hello")[:4], append(textFrame("whole"), textFrame("part")[:3]...)} {
		synctest.Test(t, func(t *testing.T) {
			peer, w := pipe(Config{})
			go func() { _, _ = peer.Write(sent) }()
			time.AfterFunc(time.Second, w.interrupt)
			if _, err := io.Copy(io.Discard, w); !errors.Is(err, errInterrupted) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAWaitForBytesIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, w := pipe(Config{})
		hold, err := w.account.Acquire(1 << 20)
		must(t, err)
		defer hold.Release()
		ctx, cancel := context.WithCancel(context.Background())
		w.ctx = ctx
		go func() { _, _ = peer.Write(textFrame("hello")); _ = peer.Close() }()
		time.AfterFunc(time.Second, func() { w.interrupt(); cancel() })
		if _, err := io.Copy(io.Discard, w); !errors.Is(err, errInterrupted) {
			t.Errorf("got %v", err)
		}
	})
}

// model decodes frames the simple way: all bytes at hand, one limit, no accounts.
func model(b []byte, limit uint64) (messages, pings []string, reason Reason) {
	var open *byte
	var body []byte
	for {
		if len(b) < 2 {
			return messages, pings, StreamEnded
		}
		first, n, at := b[0], uint64(b[1]&0x7f), 2
		masked := b[1]&0x80 != 0
		size := map[uint64]int{126: 2, 127: 8}[n]
		if masked && len(b) < at+size+4 || len(b) < at+size {
			return messages, pings, StreamEnded
		}
		switch size {
		case 2:
			n = uint64(binary.BigEndian.Uint16(b[at:]))
		case 8:
			n = binary.BigEndian.Uint64(b[at:])
		}
		at += size
		op, fin := first&15, first&0x80 != 0
		if n>>63 == 1 || first&0x70 != 0 || !masked || op > 10 || op > 2 && op < 8 || op >= 8 && (!fin || size > 0) ||
			op < 8 && (op == 0) != (open != nil) {
			return messages, pings, ProtocolError
		}
		if op < 8 && n > limit-uint64(len(body)) {
			return messages, pings, FrameTooLarge
		}
		mask := b[at : at+4]
		at += 4
		if uint64(len(b)-at) < n {
			return messages, pings, StreamEnded
		}
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = b[at+i] ^ mask[i%4]
		}
		b = b[at+int(n):]
		switch op {
		case 8:
			if n == 1 {
				return messages, pings, ProtocolError
			}
			if n > 1 { // RFC 6455, 7.4: 1000 to 1014 without the three that are never sent, 3000 to 4999 for libraries and users
				switch c := int(payload[0])<<8 | int(payload[1]); {
				case c == 1004, c == 1005, c == 1006, c < 1000, c > 1014 && c < 3000, c > 4999:
					return messages, pings, ProtocolError
				}
			}
			return messages, pings, ClientClosed
		case 9:
			pings = append(pings, string(payload))
		case 0, 1, 2:
			if open == nil {
				open = &op
			}
			if body = append(body, payload...); fin {
				messages = append(messages, fmt.Sprintf("%d:%s", *open, body))
				open, body = nil, nil
			}
		}
	}
}

// FuzzWire feeds arbitrary bytes in arbitrary pieces and compares with the model. Nothing may panic, stay charged or pass
// unpaid, and no lease may outgrow the account.
func FuzzWire(f *testing.F) {
	f.Add(textFrame("hello"), uint64(1))
	f.Add(slices.Concat(frameOf(0x01, []byte("he"), nil), frameOf(0x89, []byte("p"), nil), frameOf(0x80, []byte("llo"), nil)), uint64(2))
	f.Add(headerOnly(1<<63), uint64(3))
	f.Add(headerOnly(^uint64(0)), uint64(4))
	f.Add(headerOnly(5000), uint64(5))
	f.Add(append(frameOf(0x88, []byte{3, 232, 'b', 'y', 'e'}, nil), textFrame("x")...), uint64(6))
	f.Add(frameOf(0x88, []byte{3}, nil), uint64(9))
	f.Add([]byte("\x89\xff\x00\x00\x00\x00\x00\x00\x0000000"), uint64(3)) // a short ping whose length is spelled for a long one
	f.Add(frameOf(0x88, []byte{3, 247}, nil), uint64(10))
	f.Add(frameOf(0x88, nil, nil), uint64(11))
	f.Add(textFrame(string(make([]byte, 300)))[:100], uint64(7))
	f.Add(append(frameOf(0x02, make([]byte, 3000), nil), frameOf(0x80, make([]byte, 2000), nil)...), uint64(8))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		const limit = 4096
		messages, pings, reason := model(in, limit)
		out := run(t, Config{FrameBytes: limit}, testAccount(1<<20), true, pieces(in, seed))
		if !slices.Equal(out.messages, messages) || !slices.Equal(out.pings, pings) || out.reason != reason {
			t.Errorf("got %q, pings %q, %s; the model says %q, pings %q, %s", out.messages, out.pings, out.reason, messages, pings, reason)
		}
		if out.maxUsed > 3*limit {
			t.Errorf("%d bytes were charged", out.maxUsed)
		}
	})
}
