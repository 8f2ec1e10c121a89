package kerneltest

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Result is what one simulated run came to.
type Result struct {
	Seed        uint64
	Trace       uint64 // equal for equal runs
	Steps       int
	Generations int
	Bad         []string
	Events      string // the last events, for a failure
}

// String tells how to see it again.
func (r Result) String() string {
	return fmt.Sprintf("seed %d (replay: go test ./runtime/kernel -run Simulation -seed %d): %d steps, %d generations\n%s\nlast events:\n%s",
		r.Seed, r.Seed, r.Steps, r.Generations, strings.Join(r.Bad, "\n"), r.Events)
}

// crowd is those whom monkeys can meet: the last few, living and dead.
type crowd struct {
	mu   sync.Mutex
	rng  *rand.Rand
	refs []kernel.Ref
}

func (c *crowd) meet(r kernel.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refs = append(c.refs, r); len(c.refs) > 40 {
		c.refs = slices.Delete(c.refs, 1, 20) // the root stays
	}
}

func (c *crowd) any() kernel.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refs) == 0 {
		return kernel.Ref{}
	}
	return c.refs[c.rng.IntN(len(c.refs))].Current()
}

// asked is a question of the driver, which is no actor.
type asked struct {
	p       *kernel.Pending
	callee  kernel.Ref
	dropped bool
}

// Simulate runs a zoo under one seed until it has ended, and checks I1 to I12 all the way.
func Simulate(seed uint64) Result {
	sim := NewSim(seed)
	rng := sim.Rand()
	check := NewCheck(sim.Now)
	var log bytes.Buffer
	const grace, release = time.Second, time.Second
	k := kernel.New(kernel.Options{Limit: 96 << 10, Release: release, Scheduler: sim, Clock: sim, Rand: rng.Float64,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnExit: func(x kernel.Exit) {
			sim.Note("exit", x.Path, fmt.Sprint(x.Gen), x.Cause.Error())
			check.Exit(x)
		}})
	c := &crowd{rng: rng}
	energy := 400 + rng.IntN(1200)
	z := &Zoo{Check: check, Rand: rng, Sleep: sim.Sleep, Long: 3 * time.Second, Grace: grace, Peers: c.any, Meet: c.meet,
		Spend: func() bool { energy--; return energy > 0 }}
	z.Bank = k.Account()
	root, err := k.Root(z.Spec("zoo", 0))
	if err != nil {
		return Result{Seed: seed, Bad: []string{err.Error()}}
	}
	var asks []*asked
	var seq uint64
	stopAt := 300 + rng.IntN(1200)
	step := 0
	for ; step < stopAt; step++ {
		switch rng.IntN(12) {
		case 0, 1, 2:
			seq++
			_ = c.any().Tell(&Blob{0, seq, "data", rng.IntN(3000), Secret})
		case 3:
			to := c.any()
			if p, err := to.Ask(&ping{Secret}); err == nil {
				asks = append(asks, &asked{p: p, callee: to})
			}
		case 4:
			if n := len(asks); n > 0 {
				asks[n-1].p.Drop()
				asks[n-1].dropped = true
				asks = asks[:n-1]
			}
		}
		if rng.IntN(20) == 0 {
			sim.Tick() // time may pass between any two steps
		}
		if !sim.Step() && !sim.Tick() && rng.IntN(50) == 0 {
			break
		}
		if step%25 == 0 {
			check.Sums(k, orphans(k, asks))
		}
	}
	energy = 0
	if !sim.Run(200_000) {
		check.Violate("I12", "a zoo without energy does not come to rest")
	}
	check.Sums(k, orphans(k, asks))
	check.Quiet()
	if strings.Contains(fmt.Sprintf("%+v", k.Tree()), Secret) {
		check.Violate("I11", "a payload stands in the tree")
	}
	energy = 60 // some mischief in the stop hooks too
	t0 := sim.Now()
	root.Stop(kernel.ErrShutdown)
	const depth = 4
	ended := func() bool {
		select {
		case <-k.Done():
			return true
		default:
			return false
		}
	}
	for !ended() && (sim.Step() || sim.Tick()) {
	}
	switch took := sim.Now().Sub(t0); {
	case !ended():
		check.Violate("I10", "the kernel did not end: %v", k.Unstopped())
	case took > width*depth*(grace+release):
		check.Violate("I10", "the stop took %v", took)
	}
	sim.Run(200_000) // what was abandoned ends at last
	for _, a := range asks {
		select {
		case <-a.p.Done():
		default:
			check.Violate("I7", "an ask of %s was never answered", a.callee.Path())
		}
		a.p.Drop()
	}
	check.Intensity(zooIntensity)
	check.Rest(k)
	if !sim.Idle() {
		check.Violate("I12", "something is still ready or timed at rest")
	}
	if left := k.Unstopped(); len(left) > 0 {
		check.Violate("I12", "left at rest: %v", left)
	}
	if strings.Contains(log.String(), Secret) {
		check.Violate("I11", "a payload stands in the log")
	}
	return Result{Seed: seed, Trace: sim.Trace(), Steps: sim.Steps(), Generations: check.Generations(), Bad: check.Bad(), Events: check.Events()}
}

// width bounds the children that an Ordered parent of the zoo stops one after the other.
const width = 12

// orphans sums what the driver's questions keep charged to accounts of callees that are not in the tree any more.
func orphans(k *kernel.Kernel, asks []*asked) map[*kernel.Account]int64 {
	in := map[uint64]bool{}
	var walk func(n kernel.Node)
	walk = func(n kernel.Node) {
		in[n.Gen] = true
		for _, kid := range n.Children {
			walk(kid)
		}
	}
	walk(k.Tree())
	more := map[*kernel.Account]int64{}
	for _, a := range asks {
		if !a.dropped && !in[a.callee.Gen()] {
			more[a.callee.Account()] += a.p.Reserved()
		}
	}
	return more
}

// Storm runs a zoo on real goroutines: for the race detector and the leak detector. It returns what was violated.
func Storm(seed uint64) Result {
	src := &lockedSource{s: rand.NewPCG(seed, 7)}
	rng := rand.New(src)
	check := NewCheck(time.Now)
	check.parallel = true
	var energy atomic.Int64
	energy.Store(3000)
	c := &crowd{rng: rng}
	z := &Zoo{Check: check, Rand: rng, Sleep: time.Sleep, Long: 60 * time.Millisecond, Grace: 40 * time.Millisecond, Peers: c.any, Meet: c.meet,
		Spend: func() bool { return energy.Add(-1) > 0 }}
	k := kernel.New(kernel.Options{Limit: 96 << 10, Release: 40 * time.Millisecond, OnExit: check.Exit, Rand: rng.Float64})
	z.Bank = k.Account()
	root, err := k.Root(z.Spec("zoo", 0))
	if err != nil {
		return Result{Seed: seed, Bad: []string{err.Error()}}
	}
	var wg sync.WaitGroup
	for from := range uint64(4) {
		wg.Go(func() {
			var seq uint64
			for range 300 {
				to := c.any()
				seq++
				_ = to.Tell(&Blob{^from, seq, "data", rng.IntN(3000), Secret})
				if rng.IntN(3) == 0 {
					if p, err := to.Ask(&ping{Secret}); err == nil {
						if rng.IntN(2) == 0 {
							select {
							case <-p.Done():
							case <-time.After(time.Millisecond):
							}
						}
						p.Drop()
					}
				}
				_ = k.Tree()
			}
		})
	}
	wg.Wait()
	root.Stop(kernel.ErrShutdown)
	for end := time.Now().Add(Deadline); ; time.Sleep(time.Millisecond) {
		select {
		case <-k.Done():
			if k.Tree().Gen == 0 && k.Account().Used() == 0 {
				check.Rest(k)
				return Result{Seed: seed, Generations: check.Generations(), Bad: check.Bad(), Events: check.Events()}
			}
		default:
		}
		if time.Now().After(end) {
			check.Violate("I10", "not at rest after %v: %v, %d bytes", Deadline, k.Unstopped(), k.Account().Used())
			return Result{Seed: seed, Generations: check.Generations(), Bad: check.Bad(), Events: check.Events()}
		}
	}
}

// lockedSource makes one source of chance safe for many.
type lockedSource struct {
	mu sync.Mutex
	s  rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.Uint64()
}
