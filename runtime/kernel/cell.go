package kernel

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// cell is one generation of an actor, and the only actor that the engine knows. To the engine all cells are roots: the tree,
// its supervision and its stop are the kernel's. No panic and no Goexit reaches the engine, so it never restarts anything.
type cell struct {
	k        *Kernel
	slot     *slot
	parent   *cell
	gen      uint64
	path     string
	acct     *Account
	ownsAcct bool
	mb       *mailbox
	ctx      context.Context
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the generation has ended and its releases have begun
	created  time.Time
	logger   atomic.Pointer[slog.Logger]

	exit atomic.Pointer[end] // the first reason wins
	over atomic.Bool         // past its end, or abandoned: refused everything
	beh  Behavior            // the turn's, then the Stop hook's
	view Ctx                 // what the behavior sees, one value for all turns

	// Of the current turn, touched by its goroutine only.
	question *Question
	handled  bool

	life life // of the book, under the kernel's lock

	mu      sync.Mutex // what the tree shows
	attrs   map[string]any
	refused map[string]*refused
}

// slot is a child's place under its parent: its generations follow each other in it.
type slot struct {
	spec     Spec
	order    uint64 // of spawning, among all slots
	current  atomic.Pointer[cell]
	restarts int // under the kernel's lock
}

// engine is protoactor's actor system: one for the process, since it costs megabytes, keeps no goroutine and no state of ours.
var engine = sync.OnceValue(func() *actor.ActorSystem {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	return actor.NewActorSystem(actor.WithDeadLetterThrottleCount(0),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
})

// engineNames numbers the engine's actors; it knows them by nothing else, and no number comes twice.
var engineNames atomic.Uint64

// dispatcher lets the engine's turns run on the kernel's scheduler.
type dispatcher struct {
	s    Scheduler
	kind string
}

func (d *dispatcher) Schedule(f func()) { d.s.Go(d.kind, f) }
func (d *dispatcher) Throughput() int   { return d.s.Batch() }

// ignite hands the cell to the engine, and returns how to stop it there. It does not block and runs no code of the behavior.
func (c *cell) ignite() (stop func(), err error) {
	props := actor.PropsFromProducer(func() actor.Actor { return c },
		actor.WithMailbox(func() actor.Mailbox { return c.mb }),
		actor.WithDispatcher(&dispatcher{c.k.scheduler, c.slot.spec.Kind}))
	root := engine().Root
	pid, err := root.SpawnNamed(props, "cell-"+strconv.FormatUint(engineNames.Add(1), 10))
	if err != nil {
		return nil, err
	}
	return func() { root.Stop(pid) }, nil
}

// Receive is the engine's call: one turn.
//
//go:noinline
func (c *cell) Receive(e actor.Context) {
	switch e.Message().(type) {
	case turnToken:
		c.take()
	case *actor.Started:
		c.start()
	case *actor.Stopped:
		c.k.turnsOver(c)
	}
	runtime.KeepAlive(c) // the stack of a stuck turn is found by the cell in this frame
}

// take handles the current message.
func (c *cell) take() {
	if c.isEnding() {
		return // ended between queue and turn
	}
	it := &c.mb.current // nobody else writes it during the turn
	c.question = it.q
	if it.kind != told {
		c.question = nil
	}
	err := c.receive(it.msg)
	c.question = nil
	if err != nil {
		c.ended(err)
	}
}

// receive calls the behavior, and turns its panic into an error. Goexit passes: the mailbox sees it.
func (c *cell) receive(m Msg) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Crash{Value: r, Stack: debug.Stack()}
		}
	}()
	err = c.beh.Receive(&c.view, m)
	c.handled = true
	return err
}

// start makes the behavior and lets it begin.
func (c *cell) start() {
	if c.isEnding() {
		return // stopped before it began: it never was
	}
	c.mb.setDoing("Start")
	err := c.guard(func() error {
		c.beh = c.slot.spec.New()
		c.k.started(c)
		if s, ok := c.beh.(Starter); ok {
			return s.Start(&c.view)
		}
		return nil
	})
	c.mb.setDoing("")
	if err != nil {
		c.ended(err)
		return
	}
	c.k.running(c)
}

// guard turns a panic into an error. Goexit passes: the mailbox sees it.
func (c *cell) guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Crash{Value: r, Stack: debug.Stack()}
		}
	}()
	return f()
}
