package kernel

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Report says who did not stop.
type Report struct {
	Took time.Duration
	Left []Unstopped
}

// Unstopped is a generation of which something still runs: a turn, a Stop hook, an owned goroutine, a Free or an overdue release.
type Unstopped struct {
	Path, Kind string
	Gen        uint64
	Cause      error         // why it was to stop
	Age        time.Duration // since the kernel gave it up, or since it began to stop
	What       string        // what runs: "turn", "stop hook", "goroutine NAME", "free", "release NAME"
	Stack      string        // of what runs, when it could be found
}

// Empty tells a clean shutdown.
func (r Report) Empty() bool { return len(r.Left) == 0 }

func (r Report) String() string {
	if r.Empty() {
		return fmt.Sprintf("all stopped in %v", r.Took.Round(time.Millisecond))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d did not stop:", len(r.Left))
	for _, u := range r.Left {
		fmt.Fprintf(&b, " %s (%s, gen %d, %s for %v);", u.Path, u.Kind, u.Gen, u.What, u.Age.Round(time.Millisecond))
	}
	return strings.TrimSuffix(b.String(), ";")
}

// Shutdown ends the root with ErrShutdown, and with it all actors in their order, and waits until the last has settled or ctx
// ends. It may be called more than once.
func (k *Kernel) Shutdown(ctx context.Context) Report {
	t0 := k.clock.Now()
	k.mu.Lock()
	root := k.root
	k.mu.Unlock()
	if root == nil {
		return Report{}
	}
	root.finish(end{cause: ErrShutdown})
	select {
	case <-k.done:
	case <-ctx.Done():
	}
	return Report{Took: k.clock.Now().Sub(t0), Left: k.Unstopped()}
}

// Unstopped lists what is ending or was given up and has something that still runs, leaves first.
func (k *Kernel) Unstopped() []Unstopped {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.root == nil {
		return nil
	}
	var left []Unstopped
	var stacks []byte
	now := k.clock.Now()
	var walk func(c *cell)
	walk = func(c *cell) {
		for _, kid := range append(k.kidsInOrder(c), c.life.left...) {
			walk(kid)
		}
		l := &c.life
		if l.phase < stopping {
			return
		}
		u := Unstopped{Path: c.path, Kind: c.slot.spec.Kind, Gen: c.gen, Cause: c.cause(), Age: now.Sub(l.since)}
		add := func(what, stack string) { u.What, u.Stack = what, stack; left = append(left, u) }
		find := func(frame string, of any) string {
			if stacks == nil {
				stacks = allStacks()
			}
			return stackWith(stacks, fmt.Sprintf("%s(%p", frame, of))
		}
		if !l.over {
			add("turn", find("(*cell).Receive", c))
		}
		if l.hook && !l.hookDone {
			add("stop hook", find("(*cell).runStop", c))
		}
		for _, g := range slices.SortedFunc(maps.Keys(l.goroutines), func(a, b *goroutine) int { return strings.Compare(a.name, b.name) }) {
			add("goroutine "+g.name, find("(*goroutine).run", g))
		}
		if l.freeing && !l.freed {
			add("free", find("(*cell).runFree", c))
		}
		for o := l.book.first; o != nil; o = o.next {
			if o.state == paying {
				add("release "+o.name, find("(*Obligation).run", o))
			}
		}
	}
	walk(k.root)
	return left
}

// allStacks is the stacks of all goroutines, at most 4 MiB.
func allStacks() []byte {
	for n := 256 << 10; ; n *= 4 {
		b := make([]byte, n)
		if m := runtime.Stack(b, true); m < n || n >= 4<<20 {
			return b[:m]
		}
	}
}

// stackWith finds the goroutine in which a frame like that stands, at most 4 KiB of it.
func stackWith(all []byte, frame string) string {
	for g := range bytes.SplitSeq(all, []byte("\n\n")) {
		if bytes.Contains(g, []byte(frame)) {
			return string(g[:min(len(g), 4<<10)])
		}
	}
	return ""
}
