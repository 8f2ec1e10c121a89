package kernel

import "time"

// Msg is whatever one actor tells another. Its type is declared by the package of the actor that receives it.
type Msg = any

// Behavior is the code of an actor. One value serves one generation.
//
// Receive handles one message, alone: no other method of the behavior runs at the same time, save Stop of a generation that is
// already past its last turn. It must not block, except on what ends with c.Context(). Returning nil keeps the generation
// running, ErrDone (also wrapped) ends it cleanly, any other error ends it as a crash with that cause. A panic and
// runtime.Goexit are crashes as well.
type Behavior interface {
	Receive(c *Ctx, m Msg) error
}

// Starter is implemented by a behavior that has something to do before its first message.
// Its error ends the generation just as Receive's does.
type Starter interface {
	Start(c *Ctx) error
}

// Stopper is implemented by a behavior that has last words. Stop runs once, on a goroutine of its own, after the last turn and
// before the children are stopped. What it may still do: answer questions, tell others, discharge obligations, read its state.
// Spawn, Request and Watch are refused by then. It is not run for a generation that was abandoned before it could begin: what must be
// undone in any case is an obligation, what must be given back in any case is for Freer.
type Stopper interface {
	Stop(c *Ctx, cause error)
}

// Freer is implemented by a behavior whose state holds leases, or anything else that is only memory and counts. Free gives all of it back. It
// runs once for every generation whose New has returned, however that ended, when nothing of it runs any more: no turn, no Stop
// hook, no owned goroutine. So it is alone with the state. In an ordinary end that is before the exit. Of a generation that was abandoned
// the Stop hook may never have run, and Free comes when the last of what was stuck has ended, long after the exit and all releases: what it does must not
// touch what a successor has. cause is that of the end, so errors.Is(cause, ErrAbandoned) tells the two apart. It must not block.
type Freer interface {
	Free(cause error)
}

// Sized is implemented by messages that hold memory beyond their own struct: Size is that many bytes.
type Sized interface {
	Size() int
}

// Leased is implemented by messages whose bytes are already on an account. The mailbox charges them the fixed cost only.
// The receiver owns the lease once its turn has handled the message; on every other end the kernel releases it.
type Leased interface {
	Lease() *Lease
}

// Policy says when a child comes back after its generation has ended.
type Policy uint8

const (
	// Temporary children never come back.
	Temporary Policy = iota
	// Transient children come back after a crash, and not after a clean end (ErrDone or a Stop).
	Transient
	// Permanent children come back after every end but a Ctx.Stop by their parent.
	Permanent
)

func (p Policy) String() string {
	switch p {
	case Transient:
		return "transient"
	case Permanent:
		return "permanent"
	default:
		return "temporary"
	}
}

// Intensity bounds the restarts among the children of one supervisor: more than Max within Window ends the supervisor itself.
type Intensity struct {
	Max    int
	Window time.Duration
}

// DefaultIntensity is used where a Spec gives none.
var DefaultIntensity = Intensity{Max: 5, Window: 10 * time.Second}

// Backoff is the range of waits before a restart: a random wait in [0, min(Max, Min·2ⁿ)) after the n-th failure in a row.
type Backoff struct {
	Min, Max time.Duration
}

// DefaultBackoff is used where a Spec gives none.
var DefaultBackoff = Backoff{Min: 50 * time.Millisecond, Max: 10 * time.Second}

const (
	// DefaultGrace is how long a generation may take for its last turn, its Stop hook and its owned goroutines. None of these may block on
	// anything but what ends with the context, so all that they ever wait for is the processor: it is what a machine that is far too
	// busy needs, not what a stop takes. A process or a peer that is waited for has limits of its own, which come before it.
	DefaultGrace = 30 * time.Second
	// DefaultRelease is the deadline of one release of an obligation.
	DefaultRelease = 5 * time.Second
	// DefaultLimit is the root account's limit, in bytes, where Options give none.
	DefaultLimit = 1 << 30
	// MessageBytes is the fixed cost of a queued message: its place in the queue and its small struct.
	MessageBytes = 128
	// AnswerBytes is bought with each question, so that its answer is never refused.
	AnswerBytes = 4 << 10
	// ControlBytes is the reserve of each mailbox for signals: full accounts do not keep a cancel out.
	ControlBytes = 64 << 10
)

// Spec describes a child to be spawned.
type Spec struct {
	// Name is unique among the living siblings, without '/' and control characters; Kind groups actors of one sort.
	Name, Kind string
	// New makes the behavior of one generation. It runs in the cell, so its panic is a crash of the child, not of the parent.
	New     func() Behavior
	Restart Policy
	// Scope and Limit (bytes) make an account of the child's own below its parent's. Limit 0: the parent's account is used.
	Scope string
	Limit int64
	// Account is an account made beforehand by the spawner; the cell closes it at its end. A later generation gets a fresh one
	// with the same parent, scope and limit.
	Account *Account
	// Grace bounds the last turn, the Stop hook and the end of owned goroutines; then the cell is abandoned. 0 = DefaultGrace.
	Grace time.Duration
	// Ordered stops the children one by one, the last spawned first, each with all that it owes, before the next.
	Ordered   bool
	Intensity Intensity
	Backoff   Backoff
}
