package connection

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/kernel"
)

func testOutbox(frames int, bytes int64) *outbox {
	cfg := Config{OutboundFrames: frames, OutboundBytes: bytes}.withDefaults()
	return newOutbox(&cfg)
}

func text(stream, s string) *outFrame { return &outFrame{stream: stream, parts: [3][]byte{[]byte(s)}} }

// drain takes all frames that wait, as the writer would.
func drain(o *outbox) (out []string) {
	for {
		j, ok := o.next()
		if !ok || j.frame == nil {
			return out
		}
		out = append(out, string(j.frame.parts[0]))
		j.frame.end(true)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStreamsAreServedInTurnAndKeepTheirOrder(t *testing.T) {
	o := testOutbox(100, 1<<20)
	for i := range 4 {
		must(t, o.push(text("flood", fmt.Sprint("f", i))))
	}
	for i := range 2 {
		must(t, o.push(text("a", fmt.Sprint("a", i))))
		must(t, o.push(text("b", fmt.Sprint("b", i))))
	}
	want := []string{"f0", "a0", "b0", "f1", "a1", "b1", "f2", "f3"}
	if got := drain(o); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheControlLaneGoesFirstButStarvesNobody(t *testing.T) {
	o := testOutbox(100, 1<<20)
	must(t, o.push(text("a", "data")))
	for i := range controlBurst + 3 {
		must(t, o.push(text(control, fmt.Sprint("c", i))))
	}
	got := drain(o)
	if at := slices.Index(got, "data"); at != controlBurst {
		t.Errorf("the stream's frame came at %d, want after %d control frames", at, controlBurst)
	}
	if len(got) != controlBurst+4 {
		t.Errorf("%d frames came out", len(got))
	}
}

func TestAStreamIsBoundedInFrames(t *testing.T) {
	o := testOutbox(2, 1<<20)
	must(t, o.push(text("a", "1")))
	must(t, o.push(text("a", "2")))
	var full *kernel.Overloaded
	if err := o.push(text("a", "3")); !errors.As(err, &full) || full.Scope != "outbound_frames" || full.Limit != 2 || full.Used != 2 {
		t.Fatalf("got %v", err)
	}
	must(t, o.push(text("b", "other streams have room")))
	must(t, o.push(&outFrame{stream: "a", parts: [3][]byte{[]byte("an answer has its place")}, answer: true}))
	if got := drain(o); len(got) != 4 {
		t.Errorf("%d frames came out", len(got))
	}
	must(t, o.push(text("a", "4")))
}

func TestStreamsShareTheBytes(t *testing.T) {
	o := testOutbox(100, 10)
	must(t, o.push(text("a", "123456")))
	var full *kernel.Overloaded
	if err := o.push(text("b", "12345")); !errors.As(err, &full) || full.Scope != "outbound_bytes" || full.Limit != 10 || full.Used != 6 || full.Size != 5 {
		t.Fatalf("got %v", err)
	}
	must(t, o.push(text("b", "1234")))
	must(t, o.push(text(control, "the control lane has bytes of its own")))
	drain(o)
	must(t, o.push(text("b", "1234567890")))
}

func TestTheControlLaneIsBounded(t *testing.T) {
	o := testOutbox(100, 1<<20)
	for range controlFrames {
		must(t, o.push(text(control, "x")))
	}
	var full *kernel.Overloaded
	if err := o.push(text(control, "x")); !errors.As(err, &full) {
		t.Fatalf("got %v", err)
	}
	must(t, o.push(&outFrame{parts: [3][]byte{[]byte("answer")}, answer: true}))
}

func TestAQueuedRequestIsTakenOut(t *testing.T) {
	o := testOutbox(100, 1<<20)
	ended := 0
	request := func(ask uint64) *outFrame {
		return &outFrame{stream: "t", parts: [3][]byte{fmt.Append(nil, "r", ask)}, ask: ask, done: func(written bool) {
			if !written {
				ended++
			}
		}}
	}
	for i := uint64(1); i <= 3; i++ {
		must(t, o.push(request(i)))
	}
	if !o.takeOut("t", 2) || o.takeOut("t", 2) {
		t.Fatal("request 2 was not taken out exactly once")
	}
	if ended != 1 {
		t.Errorf("done was told %d times that a frame is dropped", ended)
	}
	if got := drain(o); !slices.Equal(got, []string{"r1", "r3"}) {
		t.Errorf("got %v", got)
	}
	if o.takeOut("t", 1) {
		t.Error("a request that was written was taken out")
	}
}

func TestEvictLeavesAnswersAndOtherStreams(t *testing.T) {
	o := testOutbox(100, 1<<20)
	must(t, o.push(text("s", "update")))
	must(t, o.push(&outFrame{stream: "s", parts: [3][]byte{[]byte("permission")}, ask: 7}))
	must(t, o.push(&outFrame{stream: "s", parts: [3][]byte{[]byte("answer")}, answer: true}))
	must(t, o.push(text("s/1", "tunnel")))
	if asks := o.evict("s"); !slices.Equal(asks, []uint64{7}) {
		t.Errorf("asks %v, want 7", asks)
	}
	if got := drain(o); !slices.Equal(got, []string{"answer", "tunnel"}) {
		t.Errorf("got %v", got)
	}
	if frames, bytes := o.queued(); frames != 0 || bytes != 0 {
		t.Errorf("%d frames, %d bytes are left", frames, bytes)
	}
}

func TestFinishFlushesOrDrops(t *testing.T) {
	for _, flush := range []bool{true, false} {
		t.Run(fmt.Sprint("flush ", flush), func(t *testing.T) {
			o := testOutbox(100, 1<<20)
			var fate []bool
			f := text("a", "x")
			f.done = func(written bool) { fate = append(fate, written) }
			must(t, o.push(f))
			o.finish(flush)
			if err := o.push(text("a", "late")); !errors.Is(err, tunnel.ErrGone) {
				t.Errorf("a late frame: %v", err)
			}
			drain(o)
			if !slices.Equal(fate, []bool{flush}) {
				t.Errorf("done was told %v", fate)
			}
			if j, ok := o.next(); !ok || !j.finish {
				t.Error("the writer is not told to finish")
			}
		})
	}
}

func TestOnlyTheLastPingIsAnswered(t *testing.T) {
	o := testOutbox(100, 1<<20)
	must(t, o.push(text(control, "c")))
	o.answerPing([]byte("one"))
	o.answerPing([]byte("two"))
	o.ping()
	if j, ok := o.next(); !ok || !j.isPong || string(j.pong) != "two" {
		t.Fatalf("got %+v", j)
	}
	if j, ok := o.next(); !ok || !j.ping {
		t.Fatalf("got %+v", j)
	}
	if j, ok := o.next(); !ok || j.frame == nil {
		t.Fatalf("got %+v", j)
	}
	if j, ok := o.next(); ok {
		t.Fatalf("got %+v", j)
	}
}
