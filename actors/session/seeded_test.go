package session

import (
	"context"
	"encoding/binary"
	"encoding/json/v2"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// inSim runs the sessions with one client in a simulation that is a function of the seed.
func inSim(t *testing.T, seed uint64, set func(*Config), f func(p *pod, sim *kerneltest.Sim, c *client)) {
	t.Helper()
	sim := kerneltest.NewSim(seed)
	k := kernel.New(kernel.Options{Clock: sim, Scheduler: sim})
	p := &pod{t: t, k: k, rest: func() {
		for sim.Step() {
		}
	}}
	cfg := Config{Workdir: "/", FacadeURL: "http://127.0.0.1:1/mcp"}
	p.records = newRecords()
	cfg.Store = p.records
	if set != nil {
		set(&cfg)
	}
	p.s = New(cfg)
	p.agents = &agents{info: acp.AgentInfo{MCP: acp.MCPCapabilities{HTTP: true}}, pod: p}
	p.s.newID = func() string {
		var bits [16]byte
		binary.LittleEndian.PutUint64(bits[:], sim.Rand().Uint64())
		return acp.SessionID(bits)
	}
	p.s.agentSpec = p.agents.spec
	p.s.learnAgent = func(context.Context, agent.Config) (*agent.Info, error) { info := p.agents.info; return &info, nil }
	c, spec := p.connection("", 0)
	root := kerneltest.NewProbe()
	root.OnStart = func(ctx *kernel.Ctx) (err error) {
		if c.ref, err = ctx.Spawn(spec); err != nil {
			return err
		}
		p.sessions, err = ctx.Spawn(p.s.Spec())
		return err
	}
	root.On = func(ctx *kernel.Ctx, m kernel.Msg) (bool, error) {
		if f, ok := m.(func(*kernel.Ctx)); ok {
			f(ctx)
		}
		return true, nil
	}
	var err error
	if p.root, err = k.Root(root.Spec("test")); err != nil {
		t.Fatal(err)
	}
	p.settle()
	f(p, sim, c)
	p.root.Stop(kernel.ErrShutdown)
	for range 1000 {
		p.settle()
		select {
		case <-k.Done():
			if k.Account().Used() != 0 || p.s.Tokens().Live() != 0 {
				t.Fatalf("seed %d: %d bytes, %d tokens are left", seed, k.Account().Used(), p.s.Tokens().Live())
			}
			return
		default:
			sim.Tick()
		}
	}
	t.Fatalf("seed %d: the pod does not end", seed)
}

// An agent is stopped, and another is started in its place while the old one's releases still run, in every order that
// the scheduler finds: the successor's token works, the old one does not, and every prompt has one answer.
func TestASuccessorsTokenSurvivesItsPredecessorsRelease(t *testing.T) {
	late, early := 0, 0
	for seed := range uint64(1000) {
		inSim(t, seed, nil, func(p *pod, sim *kerneltest.Sim, c *client) {
			id := c.opened("[]")
			first := c.promptSoon(id, "one")
			for range sim.Rand().IntN(40) {
				sim.Step()
			}
			c.tell(id, Cancel{Client: c})
			p.settle()
			for p.s.Turns() > 0 { // until agent.cancel_timeout, unless it was cancelled before the agent had it
				sim.Tick() // with the agent's end not yet begun: the next prompt comes in the midst of it
				for range sim.Rand().IntN(6) {
					sim.Step()
				}
			}
			before := p.agents.count()
			second := c.promptSoon(id, "two")
			for p.agents.count() == before && sim.Step() {
			}
			switch n := p.s.Agents(); {
			case p.agents.count() == before: // the cancel came first: the agent was never stopped
			case n > 0:
				late++
			default:
				early++
			}
			p.settle()
			a := p.agents.last()
			if _, ok := resolves(p.s.tokens, a.token()); !ok || p.s.Tokens().Live() != 1 {
				t.Fatalf("seed %d: the successor's token works: %v; %d are live", seed, ok, p.s.Tokens().Live())
			}
			if got := c.answer(first); got == nil || got.err != nil || got.result != `{"stopReason":"cancelled"}` {
				t.Fatalf("seed %d: the first prompt was answered %+v", seed, got)
			}
			a.end(`{"stopReason":"end_turn"}`)
			if got := c.answer(second); got == nil || got.err != nil || got.result != `{"stopReason":"end_turn"}` {
				t.Fatalf("seed %d: the second prompt was answered %+v", seed, got)
			}
			c.close(id)
		})
	}
	if late == 0 || early == 0 {
		t.Errorf("the release came after the mint in %d runs, before it in %d: both orders must be met", late, early)
	}
	t.Logf("the release came after the successor's mint in %d runs, before it in %d", late, early)
}

// monkey drives the sessions at random and remembers what must hold.
type monkey struct {
	p       *pod
	sim     *kerneltest.Sim
	seed    uint64
	clients []*client
	ids     []string
	reqs    map[uint64]asked
	home    map[string]string // agent → session
}

// asked is a request that was taken.
type asked struct {
	by *client
	to kernel.Ref
}

// join is another client.
func (m *monkey) join() {
	c, spec := m.p.connection([]string{"", "k"}[m.sim.Rand().IntN(2)], byte(m.sim.Rand().IntN(2)))
	c.caps = [][]byte{nil, []byte(everything)}[m.sim.Rand().IntN(2)]
	err := m.p.root.Tell(func(ctx *kernel.Ctx) { c.ref, _ = ctx.Spawn(spec) })
	if err != nil {
		m.p.t.Fatal(err)
	}
	m.p.settle()
	m.clients = append(m.clients, c)
}

func (m *monkey) request(c *client, to kernel.Ref, make func(req uint64) kernel.Msg) {
	m.p.req++
	if to.Tell(make(m.p.req)) == nil {
		m.reqs[m.p.req] = asked{c, to}
	}
}

// act does one thing.
func (m *monkey) act() {
	rng := m.sim.Rand()
	c := m.clients[rng.IntN(len(m.clients))]
	var id string
	if len(m.ids) > 0 {
		id = m.ids[rng.IntN(len(m.ids))]
	}
	own, owns := c.session(id)
	switch op := rng.IntN(18); {
	case op == 14 && owns:
		method := []string{"_x", acp.MethodSessionSetMode}[rng.IntN(2)]
		m.request(c, own, func(req uint64) kernel.Msg {
			return Forward{Client: c, Req: req, Method: method, Params: []byte(`{"sessionId":"` + id + `","modeId":"y"}`)}
		})
	case op == 15 && owns:
		_ = own.Tell(Cancel{Client: c, Req: m.p.req - uint64(rng.IntN(8))})
		_ = own.Tell(Inform{Client: c, Method: "_x", Params: []byte(`{"sessionId":"` + id + `"}`)})
	case op == 16 && rng.IntN(4) == 0:
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Ask{Client: c, Req: req, Method: acp.MethodAuthenticate} })
	case op == 17 && rng.IntN(4) == 0:
		_ = m.p.sessions.Tell(Cancel{Client: c, Req: m.p.req})
	case op == 0:
		params, _ := ParseNew([]byte(`{"cwd":"/","mcpServers":[]}`), nil)
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Open{Client: c, Req: req, Params: params} })
	case op <= 2 && id != "":
		params, _ := ParseResume([]byte(`{"cwd":"/","mcpServers":[],"sessionId":"` + id + `"}`))
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Resume{Client: c, Req: req, Params: params} })
	case op <= 5 && owns:
		m.request(c, own, func(req uint64) kernel.Msg {
			return Prompt{Client: c, Req: req, Params: []byte(`{"prompt":[{"type":"text","text":"x"}]}`)}
		})
	case op == 6 && owns:
		_ = own.Tell(Cancel{Client: c})
	case op == 7 && owns && rng.IntN(3) == 0:
		m.request(c, own, func(req uint64) kernel.Msg { return Close{Client: c, Req: req} })
	case op == 8 && rng.IntN(4) == 0:
		m.clients = slices.DeleteFunc(m.clients, func(x *client) bool { return x == c })
		close(c.gone)
		c.ref.Stop(nil)
		m.join()
	case op == 9 && rng.IntN(4) == 0: // time passes only when nobody is starved: a cell that gets no turn for its grace is abandoned
		m.p.settle()
		m.sim.Tick()
	default:
		m.agent(rng.IntN(8))
	}
}

// agent lets one of the agents do something.
func (m *monkey) agent(what int) {
	if m.p.agents.count() == 0 {
		return
	}
	all := m.p.agents.all
	f := all[m.sim.Rand().IntN(len(all))]
	_ = f.ref.Tell(inAgent(func(*kernel.Ctx) error {
		switch {
		case what == 0:
			return agentExit(1)
		case what <= 3 && f.turn != nil:
			f.turn.Answer(replyFor(`{"stopReason":"end_turn"}`), nil)
		case what == 4:
			ask := `{"sessionId":"` + f.id() + `","toolCall":{},"options":[{"optionId":"x","name":"x","kind":"allow_once"}]}`
			_ = f.owner.Tell(agent.Called{From: f.ref, ID: jsonrpc.IntID(7), Method: acp.MethodPermission, Params: []byte(ask)})
			_ = f.owner.Tell(agent.Called{From: f.ref, ID: jsonrpc.IntID(8), Method: "terminal/create", Params: []byte(`{"sessionId":"` + f.id() + `"}`)})
			_ = f.owner.Tell(agent.Noted{From: f.ref, Method: "_x", Params: []byte(`{}`)})
		default:
			f.tellUpdate(f.id())
		}
		return nil
	}))
}

// running is how many agents have not ended.
func (m *monkey) running() (n int) {
	for _, f := range m.p.agents.all {
		select {
		case <-f.ref.Done():
		default:
			n++
		}
	}
	return n
}

// check is what holds at every moment.
func (m *monkey) check() {
	if n := m.running(); n > m.p.s.cfg.MaxSessions {
		m.p.t.Fatalf("seed %d: %d agents at a cap of %d", m.seed, n, m.p.s.cfg.MaxSessions)
	}
	owner := map[string]*client{}
	for _, c := range m.clients {
		for _, id := range slices.Sorted(maps.Keys(c.sessions)) {
			if other := owner[id]; other != nil {
				m.p.t.Fatalf("seed %d: two clients own one session", m.seed)
			}
			owner[id] = c
			if !slices.Contains(m.ids, id) {
				m.ids = append(m.ids, id)
			}
		}
		for _, frame := range c.heard() {
			var n struct {
				Params struct {
					SessionID string `json:"sessionId"`
				} `json:"params"`
			}
			for _, text := range texts([]string{frame}) {
				if strings.HasPrefix(text, "inner-") && json.Unmarshal([]byte(frame), &n) == nil {
					if home := m.home[text]; home != "" && home != n.Params.SessionID {
						m.p.t.Fatalf("seed %d: what %s said reached two sessions", m.seed, text)
					}
					m.home[text] = n.Params.SessionID
				}
			}
		}
	}
}

// answered lets everything come to its end and looks whether each request of those who are still there has its answer.
func (m *monkey) answered() {
	open := func() (reqs []uint64) {
		for req, a := range m.reqs {
			ended := a.to != m.p.sessions && a.to.Cause() != nil // then the connection, which watches the session, answers
			if !gone(a.by) && !ended && a.by.answer(req) == nil {
				reqs = append(reqs, req)
			}
		}
		return reqs
	}
	m.p.settle()
	for range 2000 {
		if len(open()) == 0 {
			return
		}
		m.agentsEnd()
		m.p.settle()
		m.sim.Tick()
		m.p.settle()
		m.check()
	}
	m.p.t.Fatalf("seed %d: requests %v have no answer", m.seed, open())
}

// agentsEnd ends every turn that an agent has.
func (m *monkey) agentsEnd() {
	for _, f := range m.p.agents.all {
		_ = f.ref.Tell(inAgent(func(*kernel.Ctx) error {
			if f.turn != nil {
				f.turn.Answer(replyFor(`{"stopReason":"end_turn"}`), nil)
			}
			for _, o := range f.others {
				o.question.Answer(replyFor(`{"modes":{"currentModeId":"x"}}`), nil)
			}
			return nil
		}))
	}
}

// Clients come, go, prompt, cancel, take over and close while agents talk, ask, answer and exit, in any order: every request
// has one answer, nobody shares a session, the cap holds, and in the end nothing is left.
func TestAnythingInAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		inSim(t, seed, func(c *Config) { c.MaxSessions, c.SessionTTL, c.Queue = 2, time.Minute, 1 }, func(p *pod, sim *kerneltest.Sim, first *client) {
			m := &monkey{p: p, sim: sim, seed: seed, clients: []*client{first}, reqs: map[uint64]asked{}, home: map[string]string{}}
			m.join()
			m.join()
			for range 150 {
				m.act()
				for range sim.Rand().IntN(8) {
					sim.Step()
				}
				m.check()
			}
			m.answered()
			for _, c := range m.clients {
				close(c.gone)
				c.ref.Stop(nil)
			}
			for range 5000 { // timers too: cancelled turns, permissions, the TTL
				m.agentsEnd()
				p.settle()
				if p.s.Living() == 0 {
					break
				}
				sim.Tick()
			}
			if p.s.Living() != 0 || p.s.Agents() != 0 || p.s.Turns() != 0 || p.s.Tokens().Live() != 0 || p.k.Account().Used() != 0 {
				t.Fatalf("seed %d: %d sessions, %d agents, %d turns, %d tokens, %d bytes are left", seed, p.s.Living(), p.s.Agents(), p.s.Turns(), p.s.Tokens().Live(), p.k.Account().Used())
			}
		})
	}
}
