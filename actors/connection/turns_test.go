package connection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func sized(stream string, n int) *outFrame {
	return &outFrame{stream: stream, parts: [3][]byte{make([]byte, n)}}
}

// order is the streams of the frames as the writer gets them; after each, push may say more.
func order(o *outbox, push func(sent int, f *outFrame)) (out []string) {
	for {
		j, ok := o.next()
		if !ok || j.frame == nil {
			return out
		}
		out = append(out, j.frame.stream)
		if push != nil {
			push(len(out), j.frame)
		}
	}
}

// A stream that has sent much waits until the others have had theirs; that its queue was empty in between changes nothing.
func TestALargeMessageIsPaidForByItsStream(t *testing.T) {
	for _, name := range []string{"queued", "one at a time"} {
		t.Run(name, func(t *testing.T) {
			o := testOutbox(1000, 256<<20)
			must(t, o.push(sized("large", 8<<20)))
			if name == "queued" {
				must(t, o.push(sized("large", 8<<20)))
			}
			got := order(o, func(sent int, _ *outFrame) {
				if sent > 1 {
					return
				}
				for range 100 { // while it is being written
					must(t, o.push(sized("small", 10_000)))
				}
				if name != "queued" {
					must(t, o.push(sized("large", 8<<20)))
				}
			})
			if got[0] != "large" || slices.Index(got[1:], "large") != 100 || len(got) != 102 {
				t.Errorf("the second large message came at %d of %d", slices.Index(got[1:], "large")+1, len(got))
			}
		})
	}
}

// Whatever waits, what comes new goes next, and the control lane before it.
func TestWhatComesNewIsDueAtOnce(t *testing.T) {
	o := testOutbox(1000, 256<<20)
	for i := range 5 {
		for range 3 {
			must(t, o.push(sized(fmt.Sprint("large ", i), 4<<20)))
		}
	}
	got := order(o, func(sent int, _ *outFrame) {
		if sent == 7 {
			must(t, o.push(sized("response", 100)))
			must(t, o.push(sized(control, 100)))
		}
	})
	if !slices.Equal(got[7:9], []string{control, "response"}) {
		t.Errorf("then came %q", got[7:9])
	}
}

// However large the frames: as long as two streams have something to say, neither has had more than the other by more than one
// of its frames.
func TestStreamsShareTheBytesOfTheSocket(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		o := testOutbox(1000, 1<<40)
		const streams, largest = 6, 1 << 20
		had := map[string]int64{}
		for i := range streams {
			for range 200 {
				n := 1 + rng.IntN(100)
				if rng.IntN(10) < i { // some say more than others
					n = 1 + rng.IntN(largest)
				}
				must(t, o.push(sized(fmt.Sprint(i), n)))
			}
		}
		order(o, func(sent int, f *outFrame) {
			had[f.stream] += f.size() + frameCost
			if len(o.turns.waiting) < streams {
				return
			}
			low, high := had["0"], had["0"]
			for _, n := range had {
				low, high = min(low, n), max(high, n)
			}
			if len(had) == streams && high-low > largest+frameCost {
				t.Fatalf("seed %d: after %d frames one stream had %d bytes and another %d", seed, sent, low, high)
			}
		})
		if o.used != 0 || len(o.turns.named) != 0 || o.turns.now != 0 {
			t.Fatalf("at rest %d bytes, %d streams, time %d", o.used, len(o.turns.named), o.turns.now)
		}
	}
}

// Names of streams come and go while one never ends: they are not kept.
func TestSilentStreamsAreForgotten(t *testing.T) {
	o := testOutbox(1000, 1<<40)
	must(t, o.push(sized("flood", 1)))
	for i := range 10_000 {
		must(t, o.push(sized("flood", 1)))
		must(t, o.push(sized(fmt.Sprint("once ", i), 50)))
		for range 2 {
			o.next()
		}
	}
	if n := len(o.turns.named); n > 4*idleStreams {
		t.Errorf("%d streams are remembered", n)
	}
}
