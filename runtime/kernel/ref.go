package kernel

// Ref addresses one generation of an actor. It is a comparable value, safe to copy and to use from any goroutine, and never
// blocks. The zero Ref addresses nobody: it answers ErrStopped.
type Ref struct{ c *cell }

// IsZero tells the zero Ref.
func (r Ref) IsZero() bool { return r.c == nil }

// Tell puts m into the data lane. The error is nil, *Overloaded (nothing was queued) or ErrStopped; a lease that m brings is
// released with a refusal. Messages of one sender arrive in the order in which they were told.
func (r Ref) Tell(m Msg) error {
	if r.c == nil {
		leaseOf(m).Release()
		return ErrStopped
	}
	return r.c.mb.Offer(m)
}

// Signal puts m into the control lane, which overtakes data and has a small reserve of its own, so that a full account does not
// keep a cancel out. Never for frames: it breaks their order.
func (r Ref) Signal(m Msg) error {
	if r.c == nil {
		leaseOf(m).Release()
		return ErrStopped
	}
	return r.c.mb.signal(m)
}

// Ask puts a question for a caller that is no actor (an actor has Ctx.Request). The error is a refusal now.
// It charges AnswerBytes to the callee's account until the Pending is dropped or read.
func (r Ref) Ask(m Msg) (*Pending, error) {
	if r.c == nil {
		leaseOf(m).Release()
		return nil, ErrStopped
	}
	p := &Pending{slot: make(chan struct{})}
	p.q.id, p.q.callee, p.q.pending = r.c.k.ids.Add(1), r.c, p
	if err := r.c.mb.ask(m, &p.q, r.c); err != nil {
		return nil, err
	}
	return p, nil
}

// Stop asks the generation to end, with this cause; nil is ErrStopped. The first cause wins. The actor's context is cancelled
// before Stop returns; the rest of the end happens elsewhere.
func (r Ref) Stop(cause error) {
	if r.c == nil {
		return
	}
	if cause == nil {
		cause = ErrStopped
	}
	r.c.finish(end{cause: cause})
}

// Done is closed when the generation has ended and its releases have begun.
func (r Ref) Done() <-chan struct{} {
	if r.c == nil {
		return closedChan
	}
	return r.c.done
}

// Cause is why the generation ended or is ending, nil while it lives.
func (r Ref) Cause() error {
	if r.c == nil {
		return ErrStopped
	}
	return r.c.cause()
}

// Gen is the generation's number, unique in the kernel; a later generation has a higher one. 0 for the zero Ref.
func (r Ref) Gen() uint64 {
	if r.c == nil {
		return 0
	}
	return r.c.gen
}

// Path is the names from the root, joined by '/'.
func (r Ref) Path() string {
	if r.c == nil {
		return ""
	}
	return r.c.path
}

// Name is the last part of the path.
func (r Ref) Name() string {
	if r.c == nil {
		return ""
	}
	return r.c.slot.spec.Name
}

// Account is what the actor's mailbox is charged to; nil for the zero Ref.
func (r Ref) Account() *Account {
	if r.c == nil {
		return nil
	}
	return r.c.acct
}

// Current is the latest generation of the same child, r itself when none followed.
func (r Ref) Current() Ref {
	if r.c == nil {
		return r
	}
	if c := r.c.slot.current.Load(); c != nil {
		return Ref{c}
	}
	return r
}

// CountRefusal counts something refused on this actor's behalf from outside its turn; it shows in Node.Refused.
func (r Ref) CountRefusal(scope string) {
	if r.c != nil {
		r.c.refuse(scope)
	}
}

var closedChan = make(chan struct{})

func init() { close(closedChan) }
