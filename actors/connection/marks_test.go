package connection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func update(stream string, n int) *outFrame {
	f := sized(stream, n)
	f.patient = true
	return f
}

func reply(stream string, n int) *outFrame {
	f := sized(stream, n)
	f.answer = true
	return f
}

func TestWhatIsTakenUpToWhichMark(t *testing.T) {
	const frames, bytes = 8, 1000
	for _, test := range []struct {
		name   string
		queued []*outFrame
		f      *outFrame
		full   string // scope; "" = it is taken
		window bool
	}{
		{"an update of an empty outbox, as long as can be", nil, update("s", 1000), "", false},
		{"… and a byte longer", nil, update("s", 1001), "outbound_bytes", false},
		{"an update below the soft mark", []*outFrame{sized("s", 499)}, update("s", 1), "", false},
		{"one that crosses it", []*outFrame{sized("s", 499)}, update("s", 501), "", false},
		{"… beyond the hard mark", []*outFrame{sized("s", 499)}, update("s", 502), "outbound_bytes", false},
		{"an update at the soft mark", []*outFrame{sized("s", 500)}, update("s", 1), "outbound_bytes", false},
		{"… of a stream that has nothing queued", []*outFrame{sized("s", 500)}, update("t", 250), "", false},
		{"… up to three quarters", []*outFrame{sized("s", 500)}, update("t", 251), "outbound_bytes", false},
		{"a request above the soft mark", []*outFrame{sized("s", 500)}, sized("s", 500), "", false},
		{"a request beyond the hard mark", []*outFrame{sized("s", 500)}, sized("t", 501), "outbound_bytes", true},
		{"an answer beyond the hard mark", []*outFrame{sized("s", 500)}, reply("t", 501), "", true},
		{"a request that is too large for an outbox that is read", []*outFrame{sized("s", 499)}, sized("t", 502), "outbound_bytes", false},
		{"an update of a stream below its soft mark", []*outFrame{sized("s", 1), sized("s", 1), sized("s", 1)}, update("s", 1), "", false},
		{"an update of a stream at its soft mark", []*outFrame{sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1)}, update("s", 1), "outbound_frames", false},
		{"an update of another", []*outFrame{sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1)}, update("t", 1), "", false},
		{"a request of a stream at its hard mark", []*outFrame{sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1)}, sized("s", 1), "outbound_frames", true},
		{"an answer there", []*outFrame{sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1), sized("s", 1)}, reply("s", 1), "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := testOutbox(frames, bytes)
			var opened []window
			o.exceeded = func(w window) { opened = append(opened, w) }
			for _, f := range test.queued {
				must(t, o.push(f))
			}
			err := o.push(test.f)
			var full *kernel.Overloaded
			switch {
			case test.full == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.full != "" && (!errors.As(err, &full) || full.Scope != test.full || full.Limit == 0 || full.RetryAfter == 0):
				t.Errorf("got %v", err)
			}
			if (len(opened) == 1) != test.window {
				t.Errorf("windows: %v", opened)
			}
			for _, w := range opened {
				if !o.stands(w) {
					t.Error("it is closed already")
				}
			}
		})
	}
}

// A window ends when the soft mark is free again, not before, and the next one is another.
func TestAWindowEndsBelowTheSoftMark(t *testing.T) {
	for _, scope := range []string{"outbound_bytes", "outbound_frames"} {
		t.Run(scope, func(t *testing.T) {
			o := testOutbox(8, 800)
			if scope == "outbound_bytes" {
				o = testOutbox(100, 800)
			}
			var opened []window
			o.exceeded = func(w window) { opened = append(opened, w) }
			fill := func() {
				for o.used < 800 {
					must(t, o.push(sized("s", 100)))
				}
				for range 3 {
					if err := o.push(sized("s", 100)); err == nil {
						t.Fatal("taken")
					}
				}
			}
			fill()
			for range 4 { // down to four of eight: the mark itself
				o.next()
			}
			if len(opened) != 1 || !o.stands(opened[0]) || opened[0].full.Scope != scope {
				t.Fatalf("at the mark: %v", opened)
			}
			o.next()
			if o.stands(opened[0]) {
				t.Fatal("it stands below the mark")
			}
			fill()
			if len(opened) != 2 || o.stands(opened[0]) || !o.stands(opened[1]) {
				t.Fatalf("the next time: %v", opened)
			}
			for o.used > 0 {
				o.next()
			}
			if o.stands(opened[1]) {
				t.Error("it stands when nothing is queued")
			}
		})
	}
}

// handClock is a kernel's clock that stands still until the test moves it.
type handClock struct{ due chan func() }

func (c handClock) Now() time.Time { return time.Unix(1_000_000, 0) }
func (c handClock) AfterFunc(d time.Duration, f func()) func() bool {
	if d == testGrace {
		c.due <- f
		return func() bool { return true }
	}
	return time.AfterFunc(d, f).Stop
}

const testGrace = 12345 * time.Second

// owe makes the pod owe the client more than its outbox holds.
func owe(t *testing.T, s *testSession) {
	t.Helper()
	o := s.client.(*client).out
	args := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 100 {
		if err := s.client.Notify("tunnel", "mcp/message", args); err != nil {
			var full *kernel.Overloaded
			if !errors.As(err, &full) || full.Scope != "outbound_bytes" {
				t.Fatal(err)
			}
			return
		}
		kerneltest.Eventually(t, "the writer is stuck or waits", func() bool {
			frames, _ := o.queued()
			return frames > 0 || s.client.(*client).stats.framesOut.Load() > 0
		})
	}
	t.Fatal("the outbox is never full")
}

// A client that leaves unread what cannot wait has some time to read; then it is closed with 1013, and told which limit it was.
// It reads that when it reads on. Its session is its own again.
func TestAClientThatDoesNotReadWhatItIsOwedIsClosed(t *testing.T) {
	clock := handClock{due: make(chan func(), 10)}
	p := startPodIn(t, Config{SlowGrace: testGrace, FlushTimeout: kerneltest.Deadline, WriteTimeout: 10 * time.Minute}, kernel.Options{Clock: clock})
	c := p.hello()
	s := p.open(c, 1)
	block(t, s, c)
	owe(t, s)
	over := <-clock.due
	if s.client.(*client).departed() {
		t.Fatal("it was closed at once")
	}
	over()
	if m := kerneltest.Await[session.Detach](t, s.probe); m.Client != s.client {
		t.Errorf("got %+v", m)
	}
	for {
		f := c.frame()
		if f.first&0x0f != opClose {
			continue
		}
		if code(f) != 1013 || !strings.HasPrefix(string(f.payload[2:]), "slow_reader: outbound_bytes, ") {
			t.Errorf("closed with %d %q", code(f), f.payload[2:])
		}
		break
	}
	_ = c.conn.Close()
	p.rest()
	if n := p.gateway.Stats().Exits[SlowReader]; n != 1 {
		t.Errorf("exits: %v", p.gateway.Stats().Exits)
	}
}

// … and one that reads in time stays, with everything that was taken.
func TestAClientThatReadsInTimeStays(t *testing.T) {
	clock := handClock{due: make(chan func(), 10)}
	p := startPodIn(t, Config{SlowGrace: testGrace, WriteTimeout: 10 * time.Minute}, kernel.Options{Clock: clock})
	c := p.hello()
	s := p.open(c, 1)
	block(t, s, c)
	owe(t, s)
	over := <-clock.due
	o := s.client.(*client).out
	read := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			if f, err := readServed(c.in); err != nil || strings.Contains(string(f.payload), "the last") {
				break
			}
		}
		read <- n
	}()
	kerneltest.Eventually(t, "it has read", func() bool { frames, _ := o.queued(); return frames == 0 })
	over()
	must(t, s.client.Notify("tunnel", "mcp/message", []byte(`{"the last":1}`)))
	<-read
	if s.client.(*client).departed() {
		t.Error("it was closed")
	}
	_ = c.conn.Close()
}

// A client that only reads slowly is never closed for it, however much its sessions have to say: they wait.
func TestUpdatesAloneNeverFillAnOutbox(t *testing.T) {
	clock := handClock{due: make(chan func(), 10)}
	p := startPodIn(t, Config{SlowGrace: testGrace, WriteTimeout: 10 * time.Minute}, kernel.Options{Clock: clock})
	c := p.hello()
	s := p.open(c, 1)
	block(t, s, c)
	frame := make([]byte, 100<<10)
	taken := 0
	for i := range 2000 {
		var full *kernel.Overloaded
		if err := s.client.Offer(fmt.Sprint("s", i%40), frame, nil, nil); err == nil {
			taken++
		} else if !errors.As(err, &full) {
			t.Fatal(err)
		}
	}
	if frames, bytes := s.client.(*client).out.queued(); bytes > 18<<20 || taken < 100 {
		t.Errorf("%d frames with %d bytes are queued", frames, bytes)
	}
	must(t, s.client.Notify("tunnel", "mcp/message", make([]byte, 1<<20))) // what cannot wait has room
	if len(clock.due) != 0 {
		t.Error("a window was opened for updates")
	}
	_ = c.conn.Close()
}

// The place of what cannot be sent is named: which limit, how much of it is in use, and when to try again.
func TestARefusedRequestNamesTheLimit(t *testing.T) {
	p := startPod(t, Config{WriteTimeout: 10 * time.Minute, FlushTimeout: 100 * time.Millisecond, SlowGrace: time.Hour})
	c := p.hello()
	s := p.open(c, 1)
	block(t, s, c)
	owe(t, s)
	var err error
	kerneltest.Do(t, s.ref, func(ctx *kernel.Ctx) {
		_, err = s.client.Request(ctx, tunnel.Out{Stream: "tunnel", Method: "mcp/message", Params: make([]byte, 1<<20)})
	})
	var full *kernel.Overloaded
	if !errors.As(err, &full) || full.Scope != "outbound_bytes" || full.Limit != 24<<20 || full.Used == 0 || full.RetryAfter == 0 {
		t.Errorf("got %v", err)
	}
	_ = c.conn.Close()
}
