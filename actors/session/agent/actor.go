package agent

import (
	"context"
	"errors"
	"log/slog"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// The scopes under which the actor counts what it skips or drops; they show in Node.Refused.
const (
	ScopeStdin     = "agent_stdin"      // a notification or answer for which there was no room
	ScopeJunk      = "junk_line"        // a line that is no JSON-RPC, or an answer that is none
	ScopeLong      = "long_line"        // a line over Config.LineBytes
	ScopeUnknown   = "unknown_response" // an answer to nothing that is open: late, double or invented
	ScopeDuplicate = "duplicate_answer" // a Respond to a request that is not open (any more)
	ScopeUTF8      = "not_utf8"         // a line with bytes that were replaced by U+FFFD
	ScopeLost      = "undelivered"      // a line that the owner did not take because one of both is ending
)

// Spec is an agent process as a child of owner, which gets what it says. Temporary: when the process ends, the actor
// ends, with *Exited or *StartError as its cause.
func Spec(cfg Config, owner kernel.Ref, name string) kernel.Spec {
	cfg = cfg.withDefaults()
	return kernel.Spec{
		Name: name, Kind: "agent", Restart: kernel.Temporary,
		New:   func() kernel.Behavior { return &actor{cfg: cfg, owner: owner} },
		Grace: cfg.process(0).Longest() + kernel.DefaultGrace, // the ladder runs in a goroutine of the actor
	}
}

type actor struct {
	cfg   Config
	owner kernel.Ref
	run   *runner
}

type (
	spawned      struct{ pid int }
	ready        struct{ name, version string }
	ended        struct{ cause error }
	startTimeout struct{}
	usageDue     struct{}
)

// Start registers what will be owed and starts the two goroutines; nothing here waits for the process.
func (a *actor) Start(c *kernel.Ctx) error {
	log := a.cfg.Log
	if log == nil {
		log = c.Log()
	}
	a.cfg.Log = log
	a.run = newRunner(a.cfg, c.Self(), a.owner, c.Account())
	c.Attr("phase", "starting")
	c.Own("process group", a.run.release)
	c.Go("stdout", func(ctx context.Context) kernel.Msg { a.run.pump(ctx); return nil })
	c.Go("process", func(ctx context.Context) kernel.Msg { return ended{a.run.supervise(ctx)} })
	c.After(a.cfg.StartTimeout, startTimeout{})
	return nil
}

// Receive never waits: what goes to the process is queued.
func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case Request:
		a.request(c.Question(), m)
	case Notify:
		a.write(c, jsonrpc.AppendNotification(make([]byte, 0, len(m.Params)+len(m.Method)+64), m.Method, m.Params), m.Held)
	case Withdraw:
		if id := m.Wire.id.Load(); id != 0 {
			n := acp.CancelRequest(jsonrpc.IntID(id))
			a.write(c, jsonrpc.AppendNotification(nil, n.Method, n.Params), nil)
		}
	case Respond:
		a.respond(c, m)
	case kernel.Cancelled:
		a.run.pending.forget(m.Question)
	case spawned:
		c.Attr("pid", m.pid)
		c.After(usageFirst, usageDue{})
	case usageDue:
		a.showUsage(c)
	case ready:
		c.Attr("phase", "ready")
		c.Attr("agent", m.name)
		c.Attr("version", m.version)
	case startTimeout:
		if !a.run.ready.Load() {
			return a.run.startError(nil)
		}
	case ended:
		return m.cause
	default:
		c.Refuse("unknown_message")
		c.Log().Warn("unknown message", slog.Any("type", typeOf(m)))
	}
	return nil
}

func (a *actor) request(q *kernel.Question, m Request) {
	if !a.run.ready.Load() {
		m.Held.Release()
		q.Fail(ErrNotReady)
		return
	}
	id, err := a.run.pending.enter(q)
	if err != nil {
		m.Held.Release()
		q.Fail(err)
		return
	}
	if m.Wire != nil {
		m.Wire.Got(id)
	}
	frame := jsonrpc.AppendRequest(make([]byte, 0, len(m.Params)+len(m.Method)+80), jsonrpc.IntID(id), m.Method, m.Params)
	if err := a.run.send(frame, m.Held); err != nil {
		a.run.pending.settle(id)
		if errors.Is(err, process.ErrStdinClosed) {
			err = ErrClosed
		}
		q.Fail(err)
	}
}

func (a *actor) respond(c *kernel.Ctx, m Respond) {
	if !a.run.pending.answer(m.ID) {
		m.Held.Release()
		c.Refuse(ScopeDuplicate)
		return
	}
	dst := make([]byte, 0, len(m.Result)+len(m.ID.Raw())+64)
	if m.Err != nil {
		a.write(c, jsonrpc.AppendError(dst, m.ID, m.Err), m.Held)
		return
	}
	a.write(c, jsonrpc.AppendResult(dst, m.ID, m.Result), m.Held)
}

// write sends what nobody waits for.
func (a *actor) write(c *kernel.Ctx, frame []byte, held *kernel.Lease) {
	if err := a.run.send(frame, held); err != nil {
		c.Refuse(ScopeStdin)
	}
}
