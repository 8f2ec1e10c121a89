package kernel_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// counter tells when it has received n messages.
type counter struct {
	left int
	done chan struct{}
}

func (c *counter) Receive(*kernel.Ctx, kernel.Msg) error {
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return nil
}

type echo struct{}

func (echo) Receive(c *kernel.Ctx, m kernel.Msg) error {
	if q := c.Question(); q != nil {
		q.Answer(m, nil)
	}
	return nil
}

var benchMsg any = "a message that is a constant, so that boxing it costs nothing"

func benchRoot(b *testing.B, beh kernel.Behavior) kernel.Ref {
	b.Helper()
	k := kernel.New(kernel.Options{Limit: 1 << 40})
	b.Cleanup(func() { k.Shutdown(context.Background()) })
	r, err := k.Root(kernel.Spec{Name: "root", New: func() kernel.Behavior { return beh }})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// The same work three ways: told to an actor of ours, sent to one of the engine's with its stock mailbox, put into a channel.

func tellOurs(b *testing.B, n int) time.Duration {
	c := &counter{n, make(chan struct{})}
	r := benchRoot(b, c)
	t0 := time.Now()
	for range n {
		_ = r.Tell(benchMsg)
	}
	<-c.done
	return time.Since(t0)
}

func tellChannel(n int) time.Duration {
	ch := make(chan any, 1024)
	done := make(chan struct{})
	go func() {
		for range n {
			<-ch
		}
		close(done)
	}()
	t0 := time.Now()
	for range n {
		ch <- benchMsg
	}
	<-done
	return time.Since(t0)
}

func BenchmarkTellBesideOthers(b *testing.B) {
	n := max(b.N, 10_000)
	var ours, stock, channel time.Duration
	for range 3 {
		ours, stock, channel = ours+tellOurs(b, n), stock+tellStock(n), channel+tellChannel(n)
	}
	b.ReportMetric(float64(ours)/float64(3*n), "ns/tell")
	b.ReportMetric(float64(ours)/float64(stock), "x-stock-mailbox")
	b.ReportMetric(float64(ours)/float64(channel), "x-channel")
	b.ReportMetric(0, "ns/op")
}

// A wake-up is a message to an idle actor: a token that goes round a ring wakes one after the other.

const ringSize = 64

func wakeOurs(b *testing.B, n int) time.Duration {
	done := make(chan struct{})
	refs := make([]kernel.Ref, ringSize)
	k := kernel.New(kernel.Options{Limit: 1 << 40})
	ready := make(chan struct{})
	_, err := k.Root(kernel.Spec{Name: "root", New: func() kernel.Behavior {
		return starting(func(c *kernel.Ctx) error {
			defer close(ready)
			for i := range refs {
				r, err := c.Spawn(kernel.Spec{Name: strconv.Itoa(i), Kind: "ring", New: func() kernel.Behavior {
					return receive(func(_ *kernel.Ctx, m kernel.Msg) error {
						if t := m.(*token); t.left == 0 {
							close(done)
						} else {
							t.left--
							_ = refs[(i+1)%ringSize].Tell(m)
						}
						return nil
					})
				}})
				if err != nil {
					return err
				}
				refs[i] = r
			}
			return nil
		})
	}})
	if err != nil {
		b.Fatal(err)
	}
	<-ready
	t0 := time.Now()
	_ = refs[0].Tell(&token{n})
	<-done
	d := time.Since(t0)
	k.Shutdown(context.Background())
	return d
}

type token struct{ left int }

// starting is a behavior that only starts.
type starting func(*kernel.Ctx) error

func (f starting) Start(c *kernel.Ctx) error             { return f(c) }
func (f starting) Receive(*kernel.Ctx, kernel.Msg) error { return nil }

type receive func(*kernel.Ctx, kernel.Msg) error

func (f receive) Receive(c *kernel.Ctx, m kernel.Msg) error { return f(c, m) }

func wakeChannel(n int) time.Duration {
	done := make(chan struct{})
	ring := make([]chan *token, ringSize)
	for i := range ring {
		ring[i] = make(chan *token, 1)
	}
	for i := range ring {
		go func() {
			for t := range ring[i] {
				if t.left == 0 {
					close(done)
				} else {
					t.left--
					ring[(i+1)%ringSize] <- t
				}
			}
		}()
	}
	t0 := time.Now()
	ring[0] <- &token{n}
	<-done
	d := time.Since(t0)
	for _, c := range ring {
		close(c)
	}
	return d
}

func BenchmarkWakeBesideOthers(b *testing.B) {
	n := max(b.N, 2_000)
	var ours, stock, channel time.Duration
	for range 3 {
		ours, stock, channel = ours+wakeOurs(b, n), stock+wakeStock(n), channel+wakeChannel(n)
	}
	b.ReportMetric(float64(ours)/float64(3*n), "ns/wake")
	b.ReportMetric(float64(ours)/float64(stock), "x-stock-mailbox")
	b.ReportMetric(float64(ours)/float64(channel), "x-channel")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkAsk(b *testing.B) {
	r := benchRoot(b, echo{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		p, err := r.Ask(benchMsg)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := p.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		p.Drop()
	}
}

func BenchmarkTell(b *testing.B) {
	c := &counter{-1, make(chan struct{})}
	r := benchRoot(b, c)
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Tell(benchMsg)
	}
}

func BenchmarkSpawnAndStop(b *testing.B) {
	k := kernel.New(kernel.Options{})
	b.Cleanup(func() { k.Shutdown(context.Background()) })
	var spawn func(s kernel.Spec) kernel.Ref
	start := make(chan struct{})
	r, err := k.Root(kernel.Spec{Name: "root", New: func() kernel.Behavior {
		return receive(func(c *kernel.Ctx, m kernel.Msg) error {
			if s, ok := m.(kernel.Spec); ok {
				ref, err := c.Spawn(s)
				c.Question().Answer(ref, nil)
				return err
			}
			return nil
		})
	}})
	close(start)
	if err != nil {
		b.Fatal(err)
	}
	spawn = func(s kernel.Spec) kernel.Ref {
		p, err := r.Ask(s)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Drop()
		m, _, err := p.Wait(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		return m.(kernel.Ref)
	}
	b.ReportAllocs()
	for b.Loop() {
		c := spawn(kernel.Spec{Name: "child", New: func() kernel.Behavior { return echo{} }})
		c.Stop(nil)
		<-c.Done()
	}
}

func TestAllocationsStayWithinTheirBounds(t *testing.T) {
	k := kernel.New(kernel.Options{})
	defer k.Shutdown(context.Background())
	r, err := k.Root(kernel.Spec{Name: "root", New: func() kernel.Behavior { return echo{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	ask := testing.AllocsPerRun(2000, func() {
		p, err := r.Ask(benchMsg)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		p.Drop()
	})
	tell := testing.AllocsPerRun(20000, func() { _ = r.Tell(benchMsg) })
	t.Logf("allocations: Ask %.1f, Tell %.2f", ask, tell)
	if ask > 6 {
		t.Errorf("Ask allocates %.1f times, more than 6", ask)
	}
	if tell > 1 {
		t.Errorf("Tell allocates %.2f times, more than 1", tell)
	}
}
