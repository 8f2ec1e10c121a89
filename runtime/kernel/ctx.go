package kernel

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Ctx is what a behavior sees of the kernel. It is valid during a turn (Start, Receive) and in the Stop hook of its own cell, on
// their goroutine; functions given to Go and After never get it. No method blocks. A generation that has ended, or was
// abandoned, is refused everything: ErrStopped where there is an error, nothing happens where there is none.
type Ctx struct{ c *cell }

// Self addresses this generation.
func (c *Ctx) Self() Ref { return Ref{c.c} }

// Parent addresses the generation that spawned it; the zero Ref for the root.
func (c *Ctx) Parent() Ref { return Ref{c.c.parent} }

// Kernel is where it lives.
func (c *Ctx) Kernel() *Kernel { return c.c.k }

// Context ends with this generation; its cause is the cause of the end. It is not below the parent's: a parent's last words, and
// an ordered stop, find the children whole.
func (c *Ctx) Context() context.Context { return c.c.ctx }

// Now is the kernel's clock.
func (c *Ctx) Now() time.Time { return c.c.k.clock.Now() }

// Log is the kernel's logger with the actor's path and generation.
func (c *Ctx) Log() *slog.Logger { return c.c.log() }

// Account is what this actor's mailbox is charged to.
func (c *Ctx) Account() *Account { return c.c.acct }

// Spawn starts a child. The Ref takes messages at once; Start runs later. The error says that this generation is stopping
// (ErrStopped), that the name is taken (ErrTaken), or what is wrong with the spec.
func (c *Ctx) Spawn(s Spec) (Ref, error) {
	n, err := c.c.k.spawn(c.c, s)
	if err != nil {
		return Ref{}, err
	}
	return Ref{n}, nil
}

// Stop ends a child of this actor for good: also a Permanent one does not come back. For others it is Ref.Stop.
func (c *Ctx) Stop(child Ref, cause error) {
	if child.c == nil {
		return
	}
	if cause == nil {
		cause = ErrStopped
	}
	child.c.finish(end{cause: cause, retired: child.c.parent == c.c})
}

// Children lists the living children in the order of their spawning.
func (c *Ctx) Children() []Ref { return c.c.k.children(c.c) }

// Child finds a living child by its name.
func (c *Ctx) Child(name string) (Ref, bool) { return c.c.k.child(c.c, name) }

// Watch asks for one Down when that generation ends. A parent needs none for its children, it gets Exited.
func (c *Ctx) Watch(r Ref) { c.c.k.watch(c.c, r) }

// Go runs f on a goroutine that this generation owns: its context ends with the generation, and the end waits for it within the
// grace. A non-nil result arrives on the data lane, after all that f told this actor itself, is never refused, and
// reaches this generation only; what it holds beyond a few KiB should be Leased, the lease is freed when it cannot be delivered. A panic in f is a
// crash of the cell.
func (c *Ctx) Go(name string, f func(ctx context.Context) Msg) { c.c.own(name, f) }

// After puts m into this generation's control lane after d. cancel takes it back, also when it is already in the lane; it is for
// the same actor's turns, and harmless later.
func (c *Ctx) After(d time.Duration, m Msg) (cancel func()) { return c.c.after(d, m) }

// Request puts a question to another actor. nil error: exactly one Answer with this ticket comes, on the data lane, also when
// the callee ends; its AnswerBytes are charged to this actor's account until it was handled. An error is a refusal now, and
// no Answer comes.
func (c *Ctx) Request(to Ref, m Msg) (Ticket, error) {
	if to.c == nil {
		leaseOf(m).Release()
		return Ticket{}, ErrStopped
	}
	return c.c.request(to.c, m)
}

// Cancel ends the interest in an answer: none comes any more, and the callee gets Cancelled, unless the question has not been
// delivered yet: then it is taken out of its queue.
func (c *Ctx) Cancel(t Ticket) { c.c.mb.cancel(t.id) }

// Question is that of the current message, nil when nobody waits for an answer.
func (c *Ctx) Question() *Question { return c.c.question }

// Own registers an obligation in the kernel's book: release runs once when this generation ends, however it ends, on a
// goroutine of its own, beside its siblings', after the children's, with a deadline in ctx. A generation whose releases have begun
// has it run at once.
func (c *Ctx) Own(name string, release func(ctx context.Context, cause error)) *Obligation {
	return c.c.k.own(c.c, name, release)
}

// Attr shows a value in the tree. Strings are escaped and cut to AttrChars characters; nil removes the key. Never secrets.
func (c *Ctx) Attr(key string, v any) { c.c.attr(key, v) }

// Refuse counts something that this actor refused or dropped; it shows in Node.Refused.
func (c *Ctx) Refuse(scope string) { c.c.refuse(scope) }

// Tell is to.Tell for a generation that lives: one that has ended or was abandoned is refused, and counted.
func (c *Ctx) Tell(to Ref, m Msg) error {
	if c.c.isOver() {
		leaseOf(m).Release()
		c.c.refuse("abandoned")
		return ErrStopped
	}
	return to.Tell(m)
}

// shown turns an attribute into plain data.
func shown(v any) any {
	switch x := v.(type) {
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, time.Time:
		return x
	case time.Duration:
		return x.String()
	case string:
		return Escape(x, AttrChars)
	case error:
		return Escape(x.Error(), AttrChars)
	case fmt.Stringer:
		return Escape(x.String(), AttrChars)
	case []string:
		out := make([]string, len(x))
		for i, s := range x {
			out[i] = Escape(s, AttrChars)
		}
		return out
	case []byte:
		return fmt.Sprintf("%d bytes", len(x))
	default:
		return Escape(fmt.Sprint(x), AttrChars)
	}
}
