package session

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// errand is one request to an agent process that has no session and lives for it alone: it is started, asked, and ended after its
// answer. It takes a place among max_sessions, and has agent.start_timeout to be ready and once more to answer.
type errand struct {
	method string
	params []byte        // raw, nil = none
	held   *kernel.Lease // of what params point into
	// offered tells whether an agent that says this of itself may be asked; nil = always.
	offered func(*acp.AgentInfo) bool
	client  Client // whose capabilities the agent is told, and who answers what it asks; nil = nobody
	req     uint64 // its request, for which the errand is run
	// done gets the outcome, once, in a turn of the process' actor or on the goroutine of its release: result or error, and the
	// lease of the result.
	done func(result []byte, lease *kernel.Lease, bad *jsonrpc.Error)
}

// Ask is authenticate or logout: a request to the agent that is of no session. The connection has checked that it is
// initialized.
type Ask struct {
	Client Client
	Req    uint64
	Method string
	Params []byte // raw, nil when absent
	Held   *kernel.Lease
}

// Lease implements kernel.Leased.
func (m Ask) Lease() *kernel.Lease { return m.Held }

// maxErrands bounds those that run or wait for a place.
const maxErrands = 8

// onAsk runs authenticate or logout, after which what the agent offers may be another thing.
func (v *supervisor) onAsk(m Ask) {
	refuse := func(bad *jsonrpc.Error) {
		m.Held.Release()
		m.Client.Respond("", m.Req, nil, nil, bad)
	}
	info, _ := v.s.learned.Now()
	switch {
	case v.s.cfg.Driver == DriverNone, m.Method == acp.MethodLogout && info != nil && !info.Logout:
		refuse(jsonrpc.UnknownMethod(m.Method))
		return
	case v.s.draining.Load():
		refuse(jsonrpc.Draining(0))
		return
	}
	again := v.c.Self()
	e := errand{method: m.Method, params: m.Params, held: m.Held, client: m.Client, req: m.Req}
	if m.Method == acp.MethodLogout {
		e.offered = func(info *acp.AgentInfo) bool { return info.Logout }
	}
	e.done = func(result []byte, lease *kernel.Lease, bad *jsonrpc.Error) {
		if bad == nil {
			_ = again.Signal(learnAgain{}) // a supervisor that has ended learns at its start
		}
		m.Client.Respond("", m.Req, result, lease, bad)
	}
	if err := v.send(e); err != nil {
		refuse(wireError(err))
	}
}

// errandPlace is an errand as the places see it.
type errandPlace struct {
	*record
	client Client
	req    uint64
}

type learnAgain struct{}

// learn runs the agent for what it says of itself, off the turn: one at a time, and once more when that was wanted meanwhile.
func (v *supervisor) learn() {
	if v.learning {
		v.stale = true
		return
	}
	v.learning = true
	cfg, learned, learn := v.s.cfg.Agent, v.s.learned, v.s.learnAgent
	cfg.Dir = v.s.cfg.Workdir
	d := v.s.cfg.Delivery
	v.c.Go("learn", func(ctx context.Context) kernel.Msg {
		if d != nil {
			d.Migrate(ctx)
		}
		info, err := learn(ctx, cfg)
		learned.learn(info) // nil after an error
		if d != nil {
			known, _ := learned.Now()
			d.Tidy(ctx, deliveryAgent(known))
		}
		return learnt{err}
	})
}

// onLearnt follows one of those.
func (v *supervisor) onLearnt(m learnt) {
	v.learning = false
	if m.failed != nil && !errors.Is(m.failed, context.Canceled) {
		v.c.Log().Warn("the agent could not be asked what it offers: clients are offered the baseline", "err", m.failed.Error())
	}
	if v.stale {
		v.stale = false
		v.learn()
	}
}

// send starts an errand as a child of the supervisor. When it is refused here, done is not called and held not released.
func (v *supervisor) send(e errand) error {
	if len(v.errands) == maxErrands {
		v.c.Refuse("errands")
		return &kernel.Overloaded{Scope: jsonrpc.ScopeMaxSessions, Limit: maxErrands, Used: maxErrands, Size: 1, RetryAfter: time.Second}
	}
	v.errandSeq++
	ref, err := v.c.Spawn(v.s.errandSpec(v.errandSeq, e))
	if err == nil {
		v.errands[ref] = &errandPlace{&record{ref: ref}, e.client, e.req}
	}
	return err
}

// onErrandClaim gives an errand a place.
func (v *supervisor) onErrandClaim(m claimErrand) {
	at, q := v.errands[m.ref], v.c.Question()
	if at == nil {
		q.Fail(kernel.ErrStopped)
		return
	}
	v.places.want(wish{rec: at.record, question: q})
}

// errandExited gives its place back.
func (v *supervisor) errandExited(ref kernel.Ref) {
	if at := v.errands[ref]; at != nil {
		delete(v.errands, ref)
		v.places.free(at.record)
	}
}

// onCancelAsk is the client's $/cancel_request for authenticate or logout.
func (v *supervisor) onCancelAsk(m Cancel) {
	for ref, at := range v.errands {
		if at.client == m.Client && at.req == m.Req {
			_ = ref.Signal(callBack{})
		}
	}
}

type claimErrand struct{ ref kernel.Ref } // asked: nil error = the place is taken

type (
	callBack    struct{} // it is not wanted any more
	errandTimer struct{}
)

// errandActor runs one errand.
type errandActor struct {
	errand
	s      *Sessions
	place  kernel.Ticket
	agent  kernel.Ref
	answer kernel.Ticket
	wire   agent.Wire
	owed   *kernel.Obligation
	asks   map[kernel.Ticket]jsonrpc.ID // of the agent, which the client has
	caps   acp.ClientCapabilities
}
