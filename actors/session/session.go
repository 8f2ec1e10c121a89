package session

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Kind is the kind of a session in the tree.
const Kind = "session"

// birth is what a session begins with. All of it but open is for every generation.
type birth struct {
	id      string
	owner   owner
	life    *life
	folders Folders
	meta    []byte // what of the client's _meta reaches the agent
	slot    slot
	carried          // of a suspended session's record
	known   []string // names that its clients declared in former lives
	pins    []byte   // what the tools of its servers were then
	open    *opener
}

// carried is what a session keeps while it is suspended, or between two generations of it.
type carried struct {
	inner    string // the agent's own session id, "" = it has none yet
	memory   memory // what of its agent's the client has not been told
	lastTurn []byte // JSON; nil = none
	missed   int64
	missedB  int64
}

// opener is the request that a session is opened for.
type opener struct {
	client Client
	req    uint64
	params *Params
	held   *kernel.Lease
	resume bool   // of a session that there was
	load   bool   // … with all that was said in it
	shown  bool   // … which was shown to the client, or there is nothing to show
	fork   string // the agent's id of the session that it copies
}

func (o *opener) method() string {
	switch {
	case o.load:
		return acp.MethodSessionLoad
	case o.resume:
		return acp.MethodSessionResume
	case o.fork != "":
		return acp.MethodSessionFork
	}
	return acp.MethodSessionNew
}

// slot is a session's place among max_sessions.
type slot uint8

const (
	slotNone    slot = iota
	slotPending      // promised: another session is being suspended for it
	slotHeld
)

// session is one generation of a session's actor.
type session struct {
	s *Sessions
	birth
	c *kernel.Ctx // of the current turn

	client   Client // nil: nobody is attached
	formerly Client // the last one, so that what it sent before it went still counts
	owned    *kernel.Obligation
	opening  *request // session/new, or the resume of a suspended session, until its answer
	out      outbox

	view      *atomic.Pointer[capability.View]
	desk      kernel.Ref
	token     token
	servers   []*served
	declared  []string           // every name that the client declared, for the desk
	paid      *kernel.Obligation // of what is kept of the declarations
	paidLease *kernel.Lease
	tunnels   map[kernel.Ref]underway
	tunnelled int // tunnels opened, for their names
	facade    facadeReport
	shown     facadeReport // in the tree
	phase     convPhase    // … of the agent

	delivering delivering

	caps     capabilities
	settings settings
	offer    offer
	keeping  kernel.Ticket // the record is being written
	again    []*request    // resumes of the client that has the session, which are answered after that
	parked   *parked

	conv     conversation
	parted   parted
	turn     turn
	prompt   prompt
	queue    []*queued  // prompts behind it
	forwards []*forward // of the client's other requests, what the agent has not answered
	removal  removal
	// leaving is the request that ended the session, which waits for the end of its record.
	leaving  *request
	dropping kernel.Ticket
	asks     []*ask
	tools    toolCalls
	over     bool // this generation has ended itself
	parting  bool // … and waits for its agent, which reads its last words
	ttl      func()
	retry    func()
	since    time.Time // end of the last turn, or the last client's going
	idleFor  time.Time // end of the last turn, or the opening
	merged   int64     // of the outbox, as far as it was shown
}

// request is an open request of a client, and the obligation to answer it.
type request struct {
	method string
	client Client
	req    uint64
	owed   *kernel.Obligation
}

// Messages to a session from its supervisor and from itself.
type (
	// attach is a resume of a living session. It is asked: the answer, attached, says that the session has dealt with it.
	attach struct {
		client  Client
		req     uint64
		params  *Params
		folders Folders
		load    bool
		held    *kernel.Lease
	}
	attached    bool     // whether the resume was granted
	suspend     struct{} // asked: nil error = it stops now
	slotGranted struct{} // the place that was promised is free
	flush       struct{} // the client's stream may have room again
	ttlPassed   struct{}
	newOverdue  struct{} // agent.new_timeout
	silent      struct{} // agent.turn_idle_timeout
	overdue     struct{} // agent.cancel_timeout
	askOverdue  struct{ ask *ask }
)

// Lease implements kernel.Leased.
func (m attach) Lease() *kernel.Lease { return m.held }

var errBusy = errors.New("a turn runs")

// spec describes the actor of one session. All of its generations share the birth's life; only the first one opens.
func (s *Sessions) spec(name string, b birth) kernel.Spec {
	return kernel.Spec{
		Name: name, Kind: Kind, Restart: kernel.Transient, Scope: "session_bytes", Limit: s.cfg.SessionBytes,
		New: func() kernel.Behavior {
			mine := b
			if b.life.started.Swap(true) {
				mine.open, mine.slot = nil, slotNone
				if st := b.life.status.Load(); st != nil { // it goes on where the one before has ended
					mine.carried = st.carried
				}
			}
			return &session{s: s, birth: mine}
		},
	}
}

// Start implements kernel.Starter.
func (x *session) Start(c *kernel.Ctx) error {
	x.c = c
	self := c.Self()
	x.out = outbox{session: x.id, account: c.Account(), spare: x.s.cfg.spare(), wake: func() { _ = self.Signal(flush{}) }, refused: self.CountRefusal}
	x.out.missed, x.out.missedBytes = x.missed, x.missedB
	x.since, x.idleFor = c.Now(), c.Now()
	x.facade = facadeReport{state: facadeOff}
	if x.open != nil { // first of all: it is answered however this ends
		x.opening = x.owe(x.open.method(), x.open.client, x.open.req)
	}
	if x.open == nil { // a generation after a crash
		if x.life.ending.Load() != uint32(endUnknown) { // … on its way out
			return kernel.ErrDone
		}
		if !x.life.opened.Load() { // … before anybody was told of it
			x.life.ending.Store(uint32(endClosed))
			return kernel.ErrDone
		}
	}
	x.tunnels = make(map[kernel.Ref]underway)
	x.view = new(atomic.Pointer[capability.View])
	cfg := x.s.cfg.Desk
	cfg.Tag, cfg.Owner, cfg.View = acp.SessionTag(x.id), acp.SessionSum(x.id), x.view
	cfg.PinScope, cfg.OwnPins = x.owner.pinScope(), x.pins
	desk, err := c.Spawn(capability.DeskSpec("desk", cfg))
	if err != nil {
		return err
	}
	x.desk = desk
	x.recollect()
	if x.open != nil {
		x.begin()
	}
	x.publish()
	x.armTTL()
	return x.verdict()
}

// Receive implements kernel.Behavior.
func (x *session) Receive(c *kernel.Ctx, m kernel.Msg) error {
	x.c = c
	if x.over {
		x.afterwards(m)
		return x.verdict()
	}
	switch m := m.(type) {
	case agent.Update:
		x.onUpdate(m)
	case agent.Called:
		x.onCalled(m)
	case agent.Noted:
		x.onNoted(m)
	case agent.Skipped:
		x.onSkipped(m)
	case agent.Ready:
		x.onReady(m)
	case kernel.Answer:
		x.onAnswer(m)
	case Prompt:
		x.onPrompt(m)
	case Cancel:
		x.onCancel(m)
	case Forward:
		x.onForward(m)
	case Inform:
		x.onInform(m)
	case forwardOverdue:
		x.onForwardOverdue(m.forward)
	case Close:
		x.onClose(m)
	case attach:
		x.onAttach(m)
	case Detach:
		x.lose(m.Client)
	case kernel.Down:
		if x.client != nil && m.Ref == x.client.Ref() {
			x.lose(x.client)
		}
	case kernel.Exited:
		x.onExited(m)
	case tunnel.Changed:
		x.onTunnel(m)
	case capability.InFlight:
		x.onInFlight(m)
	case slotGranted:
		x.onSlot(nil)
	case suspend:
		x.onSuspend()
	case remove:
		x.onRemove(m)
	case removeOverdue:
		x.onRemoveOverdue()
	case storeOverdue:
		x.onStoreOverdue(m.ticket)
	case leaseLost:
		x.onLeaseLost()
	case flush:
		x.retry = nil
		x.out.flush()
		x.askAhead()
	case ttlPassed:
		x.onTTL()
	case prepared:
		x.onPrepared(m)
	case prepareOverdue:
		x.onPrepareOverdue(m)
	case proxyReady:
		x.onProxyReady(m)
	case newOverdue:
		x.onNewOverdue()
	case silent:
		x.onSilent()
	case overdue:
		x.advance(evOverdue, reply{})
	case askOverdue:
		x.onAskOverdue(m.ask)
	}
	x.nextTurn()
	x.publish()
	x.retryLater()
	return x.verdict()
}

func (x *session) verdict() error {
	if x.over && !x.parting && x.leaving == nil {
		return kernel.ErrDone
	}
	return nil
}

// Stop implements kernel.Stopper: before any process is stopped, the token is.
func (x *session) Stop(c *kernel.Ctx, cause error) {
	x.c = c
	if x.turn.phase != idle { // a crash, or the end of the pod: an end of its own has settled it
		x.fated(reply{err: ended(cause)})
	}
	x.revoke()
	x.leaveParked()
	x.out.close()
	for len(x.asks) > 0 { // of a crash: an end of its own has answered them
		x.drop(x.asks[0])
	}
	x.free()
	x.publish()
}

// Free gives back what the session holds of others' words: a Stop hook that never ran has left it.
func (x *session) Free(error) {
	x.out.free()
	for _, a := range x.asks {
		a.free()
	}
	x.free()
	if x.open != nil {
		x.open.held.Release()
	}
	if x.parked != nil {
		x.parked.held.Release()
	}
}

// free gives back what is held of the client's requests, and remembered.
func (x *session) free() {
	x.prompt.held.Release()
	for _, q := range x.queue {
		q.held.Release()
	}
	for _, f := range x.forwards {
		f.held.Release()
	}
	x.caps.free()
	x.settings.free()
}

// onAnswer sorts the answers to what the session asked.
func (x *session) onAnswer(m kernel.Answer) {
	switch {
	case m.Ticket == x.prompt.ticket:
		x.onPromptAnswer(m)
	case m.Ticket == x.removal.ticket:
		m.Lease.Release()
		x.removal.ticket = kernel.Ticket{}
		x.finishRemoval(m.Err)
	case m.Ticket == x.keeping:
		m.Lease.Release()
		x.kept(m.Err)
	case m.Ticket != x.conv.ticket:
		if !x.onForwardAnswer(m) && !x.onAskAnswer(m) {
			m.Lease.Release()
		}
	case x.conv.phase == newing:
		x.onNew(m)
	default:
		m.Lease.Release()
		x.onSlot(m.Err)
	}
}

func (x *session) busy() bool {
	return x.turn.phase != idle || x.opening != nil || len(x.queue) > 0 || x.removal.request != nil
}

// occupied tells whether the session is not at rest: it is not suspended then. An answer that waits behind what its client has not read yet would
// become the news that somebody else has the session.
func (x *session) occupied() bool { return x.busy() || len(x.forwards) > 0 || x.out.weighs[owed] > 0 }

// publish puts the snapshot for the supervisor and the tree's attributes.
func (x *session) publish() {
	st := &status{busy: x.occupied() || x.over, idleSince: x.idleFor, client: x.client, carried: carried{
		inner: x.inner, memory: x.memory, lastTurn: x.lastTurn, missed: x.out.missed, missedB: x.out.missedBytes}}
	if more := x.out.merged - x.merged; more > 0 {
		x.merged += more
		x.s.merged.Add(more)
		x.c.Attr("merged_updates", x.merged)
	}
	x.showAgent()
	old := x.life.status.Load()
	if old != nil && old.same(st) {
		return
	}
	x.life.status.Store(st)
	if x.life.opened.Load() && !x.over && old != nil && (old.inner != st.inner || !bytes.Equal(old.lastTurn, st.lastTurn)) {
		_ = x.c.Parent().Signal(changed{x.change()}) // a supervisor that cannot take it writes it with what comes next
	}
	x.c.Attr("turn", x.turn.phase)
	x.c.Attr("agent", x.conv.phase)
	if x.client == nil {
		x.c.Attr("client", nil)
	} else {
		x.c.Attr("client", x.client.Ref().Name())
	}
	if x.out.missed > 0 {
		x.c.Attr("missed_updates", x.out.missed)
	} else {
		x.c.Attr("missed_updates", nil)
	}
}

// armTTL starts, or stops, the time that a session without a client has left.
func (x *session) armTTL() {
	if x.ttl != nil {
		x.ttl()
		x.ttl = nil
	}
	if x.client == nil && !x.occupied() && !x.over {
		left := x.since.Add(x.s.cfg.SessionTTL).Sub(x.c.Now())
		x.ttl = x.c.After(max(left, time.Millisecond), ttlPassed{})
	}
}

// onTTL ends a session that nobody came back for: in the moment in which one client took it over from another it had none.
func (x *session) onTTL() {
	x.ttl = nil
	if x.client == nil && !x.occupied() {
		x.end(endSuspended, errors.New("nobody was attached for agent.session_ttl"))
	}
}

// owe registers the answer of a client's request, so that it is given however this generation ends.
func (x *session) owe(name string, client Client, req uint64) *request {
	id := x.id
	owed := x.c.Own(name, releaseAnswer(id, client, req))
	return &request{method: name, client: client, req: req, owed: owed}
}

// give answers a request in the stream of that session. One of a generation that was abandoned meanwhile has its answer by the release.
func (r *request) give(session string, result []byte, lease *kernel.Lease, bad *jsonrpc.Error) {
	if !r.owed.Discharge() {
		lease.Release()
		return
	}
	r.client.Respond(session, r.req, result, lease, bad)
}

// answer gives the answer of a request: in its place among what the session says when the request is the present client's.
func (x *session) answer(r *request, result []byte, lease *kernel.Lease, bad *jsonrpc.Error) {
	give := func() error {
		r.give(x.id, result, lease, bad)
		return nil
	}
	if r.client != x.client {
		_ = give()
		return
	}
	it := &item{weight: pinned, answer: true, act: give}
	if r.method == acp.MethodSessionPrompt {
		it.short = func() {
			if end(x.life.ending.Load()) == endClosed { // its client did that: nobody has what was not said
				_ = give()
				return
			}
			lease.Release()
			r.give(x.id, nil, nil, jsonrpc.SupersededError())
		}
	}
	x.out.push(it)
}

// retryLater looks again at a stream that is full, also when nothing of ours is in it, so that nobody tells us when it has room.
func (x *session) retryLater() {
	if x.retry == nil && x.out.blocked.Load() {
		x.retry = x.c.After(retryEvery, flush{})
	}
}

const retryEvery = 100 * time.Millisecond

// isOwner tells whether a message of that client counts: it owns the session, or it was the last to own it and is gone, so
// that the message was sent while it did.
func (x *session) isOwner(client Client) bool {
	return client == x.client || x.client == nil && client == x.formerly
}
