package provider

import (
	"math"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/provider/mcpjson"
)

// gate bounds the calls of one tool: so many at a time, so many a second, and a queue in front of that, in the order of their arrival.
type gate struct {
	most    int
	rate    float64 // a second; 0 = any number
	running int
	queue   []*call
	tokens  float64 // calls that the rate allows now
	at      time.Time
	timer   func() // wakes the queue when the rate allows its first one; nil = not set
}

func newGate(e mcpjson.Server, now time.Time) *gate {
	g := &gate{most: e.Concurrency, rate: e.Rate, at: now}
	if g.most <= 0 {
		g.most = defaultCalls
	}
	g.tokens = g.burst()
	return g
}

// burst is how many calls may go at once after a pause: those of one second.
func (g *gate) burst() float64 { return max(1, g.rate) }

// admission is what becomes of a call that arrives.
type admission uint8

const (
	goes admission = iota
	waits
	refused // the queue is full
)

// admit decides about one more call, and counts it when it goes.
func (g *gate) admit(now time.Time) admission {
	switch {
	case len(g.queue) == 0 && g.running < g.most && g.pay(now):
		g.running++
		return goes
	case len(g.queue) < maxQueue:
		return waits
	}
	return refused
}

// next takes the first of the queue when it may go, and counts it.
func (g *gate) next(now time.Time) *call {
	if len(g.queue) == 0 || g.running >= g.most || !g.pay(now) {
		return nil
	}
	k := g.queue[0]
	g.queue = slices.Delete(g.queue, 0, 1)
	g.running++
	return k
}

// leave takes a call out that was queued or ran.
func (g *gate) leave(k *call, queued bool) {
	if !queued {
		g.running--
		return
	}
	g.queue = slices.DeleteFunc(g.queue, func(x *call) bool { return x == k })
}

// pay takes one call off the rate.
func (g *gate) pay(now time.Time) bool {
	if g.rate <= 0 {
		return true
	}
	g.refill(now)
	if g.tokens < 1-1e-9 {
		return false
	}
	g.tokens--
	return true
}

// wait is how long it takes until the rate allows the next call: rounded up, so that it does allow it then, and no moment passes in which
// the queue is looked at over and over again.
func (g *gate) wait(now time.Time) time.Duration {
	if g.rate <= 0 {
		return 0
	}
	g.refill(now)
	return time.Duration(math.Ceil(max(0, 1-g.tokens) / g.rate * float64(time.Second)))
}

func (g *gate) refill(now time.Time) {
	g.tokens = min(g.burst(), g.tokens+now.Sub(g.at).Seconds()*g.rate)
	g.at = now
}

// spare reports that nothing would be different without it.
func (g *gate) spare(now time.Time) bool {
	if g.running > 0 || len(g.queue) > 0 {
		return false
	}
	if g.rate <= 0 {
		return true
	}
	g.refill(now)
	return g.tokens >= g.burst()
}
