package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// fight is two clients with the same key and secret who want one session, each by one socket after the other, and a stranger with
// another secret.
type fight struct {
	p        *pod
	sim      *kerneltest.Sim
	seed     uint64
	id       string
	sockets  []*client
	stranger *client
	asked    map[uint64]*client
	prompts  map[uint64]bool
	resumes  map[uint64]*client
	foreign  []uint64 // what the stranger asked of that session
	said     int      // chunks that the agents said
	heard    []int    // chunks that somebody got, in order
	taken    int      // resumes that took the session from a socket that was open
}

func (f *fight) enter(secret byte) *client {
	c, spec := f.p.connection("k", secret)
	if err := f.p.root.Tell(func(ctx *kernel.Ctx) { c.ref, _ = ctx.Spawn(spec) }); err != nil {
		f.p.t.Fatal(err)
	}
	for c.ref.IsZero() && f.step() {
	}
	return c
}

// ask sends a request and waits for nothing.
func (f *fight) ask(by *client, to kernel.Ref, make func(req uint64) kernel.Msg) uint64 {
	f.p.req++
	if err := to.Tell(make(f.p.req)); err != nil {
		return 0
	}
	f.asked[f.p.req] = by
	return f.p.req
}

func (f *fight) resume(c *client) uint64 {
	params, bad := ParseResume(fmt.Appendf(nil, `{"sessionId":%q,"cwd":"/","mcpServers":[]}`, f.id))
	if bad != nil {
		f.p.t.Fatal(bad)
	}
	return f.ask(c, f.p.sessions, func(req uint64) kernel.Msg { return Resume{Client: c, Req: req, Params: params} })
}

// act does one thing of one of the two, of their agent, or of the stranger.
func (f *fight) act() {
	dice := f.sim.Rand()
	c := f.sockets[dice.IntN(len(f.sockets))]
	own, owns := c.session(f.id)
	switch op := dice.IntN(12); {
	case op <= 2: // a new socket of one of the two: it may have the session
		c = f.enter(1)
		f.sockets = append(f.sockets, c)
		f.resumes[f.resume(c)] = c
	case op == 3: // a socket that may be old by now asks again
		f.resumes[f.resume(c)] = c
	case op <= 5 && owns:
		f.prompts[f.ask(c, own, func(req uint64) kernel.Msg {
			return Prompt{Client: c, Req: req, Params: fmt.Appendf(nil, `{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, f.id)}
		})] = true
	case op == 6 && owns:
		_ = own.Tell(Cancel{Client: c})
	case op == 7 && len(f.sockets) > 1 && dice.IntN(2) == 0:
		f.sockets = slices.DeleteFunc(f.sockets, func(x *client) bool { return x == c })
		close(c.gone)
		c.ref.Stop(nil)
	case op == 8:
		f.foreign = append(f.foreign, f.resume(f.stranger))
	default:
		f.agent(dice.IntN(4) == 0)
	}
}

// agent lets the living agent say something, or end its turn.
func (f *fight) agent(end bool) {
	a := f.p.agents.last()
	_ = a.ref.Tell(inAgent(func(*kernel.Ctx) error {
		switch {
		case a.turn == nil:
		case end:
			a.turn.Answer(replyFor(`{"stopReason":"end_turn"}`), nil)
			a.turn = nil
		default:
			f.said++
			a.tellUpdate(strconv.Itoa(f.said) + " ")
		}
		return nil
	}))
}

// step is one turn of one actor, and what must hold after each.
func (f *fight) step() bool {
	before := f.owner()
	more := f.sim.Step()
	after := f.owner()
	if before != nil && after != nil && before != after && !gone(before) {
		f.taken++
	}
	for _, c := range f.sockets {
		for _, text := range texts(c.heard()) {
			for part := range strings.FieldsSeq(text) { // chunks may be merged
				n, err := strconv.Atoi(part)
				if err != nil {
					break // it is no chunk
				}
				if c != before && c != after {
					f.p.t.Fatalf("seed %d: connection %d heard what the session of another said", f.seed, c.rank)
				}
				f.heard = append(f.heard, n)
			}
		}
	}
	if f.stranger == nil || f.id == "" {
		return more
	}
	if said := f.stranger.heard(); slices.ContainsFunc(said, func(frame string) bool { return strings.Contains(frame, f.id) }) {
		f.p.t.Fatalf("seed %d: the stranger heard %q", f.seed, said)
	}
	return more
}

func (f *fight) everybody() []*client {
	all := slices.Clone(f.sockets)
	if f.stranger != nil {
		all = append(all, f.stranger)
	}
	return all
}

// owner is who owns the session; two are a failure.
func (f *fight) owner() (owner *client) {
	for _, c := range f.everybody() {
		if _, owns := c.session(f.id); !owns || gone(c) {
			continue
		}
		if owner != nil || c == f.stranger {
			f.p.t.Fatalf("seed %d: connections %d and another own one session", f.seed, c.rank)
		}
		owner = c
	}
	return owner
}

// end lets everything come to its end: a last resume finds what is left, and every request of who is there has its answer.
func (f *fight) end() {
	for f.step() {
	}
	last := f.enter(1)
	f.sockets = append(f.sockets, last)
	f.resumes[f.resume(last)] = last
	for range 2000 {
		f.agent(true)
		for f.step() {
		}
		if f.p.s.Turns() == 0 && !f.open() {
			break
		}
		f.sim.Tick()
	}
	if f.owner() != last {
		f.p.t.Fatalf("seed %d: the newest did not get the session: %+v", f.seed, last.answers)
	}
	for i, n := range f.heard {
		if n != i+1 {
			f.p.t.Fatalf("seed %d: of %d chunks these were heard: %v", f.seed, f.said, f.heard)
		}
	}
	if len(f.heard) != f.said {
		f.p.t.Fatalf("seed %d: %d chunks were said, %d heard", f.seed, f.said, len(f.heard))
	}
	f.answers()
}

// open tells whether a request of somebody who is there has no answer.
func (f *fight) open() bool {
	for req, by := range f.asked {
		if !gone(by) && by.answer(req) == nil {
			return true
		}
	}
	return false
}

// answers looks at each: it is there, it is with whom asked, and it is one that the contract knows. That there is no second one, the client sees.
func (f *fight) answers() {
	for req, by := range f.asked {
		for _, c := range f.everybody() {
			if c != by && c.answer(req) != nil {
				f.p.t.Fatalf("seed %d: connection %d got the answer of connection %d", f.seed, c.rank, by.rank)
			}
		}
		a := by.answer(req)
		if a == nil {
			if !gone(by) {
				f.p.t.Fatalf("seed %d: request %d has no answer", f.seed, req)
			}
			continue
		}
		code := 0
		if a.err != nil {
			code = a.err.Code
		}
		allowed := []int{0, jsonrpc.Busy}
		switch {
		case by == f.stranger:
			allowed = []int{jsonrpc.InvalidParams}
		case f.prompts[req]:
			allowed = append(allowed, jsonrpc.InvalidParams) // it was no longer the owner
			if code == 0 && a.result != `{"stopReason":"end_turn"}` && a.result != `{"stopReason":"cancelled"}` {
				f.p.t.Fatalf("seed %d: a prompt was answered %s", f.seed, a.result)
			}
		}
		if !slices.Contains(allowed, code) {
			f.p.t.Fatalf("seed %d: request %d of connection %d: %s", f.seed, req, by.rank, a.err.AppendObject(nil))
		}
	}
	if listed := f.list(f.stranger); strings.Contains(listed, f.id) {
		f.p.t.Fatalf("seed %d: the stranger lists %s", f.seed, listed)
	}
	if listed := f.list(f.owner()); strings.Count(listed, f.id) != 1 {
		f.p.t.Fatalf("seed %d: the owner lists %s", f.seed, listed)
	}
}

func (f *fight) list(c *client) string {
	req := f.ask(c, f.p.sessions, func(req uint64) kernel.Msg { return List{Client: c, Req: req} })
	for f.step() {
	}
	if a := c.answer(req); a != nil {
		return a.result
	}
	return ""
}

// Two clients fight for one session in a thousand orders: at each moment one owns it, every request has one answer and gets it where it was
// asked, what the agent says is heard once, in order, by who owns the session then, and a stranger with another secret finds nothing.
func TestTwoClientsFightForOneSession(t *testing.T) {
	taken, foreign := 0, 0
	for seed := range uint64(1000) {
		inSim(t, seed, nil, func(p *pod, sim *kerneltest.Sim, _ *client) {
			f := &fight{p: p, sim: sim, seed: seed, asked: map[uint64]*client{}, prompts: map[uint64]bool{}, resumes: map[uint64]*client{}}
			first := f.enter(1)
			f.sockets, f.stranger = []*client{first}, f.enter(2)
			f.id = first.opened("[]")
			for range 25 {
				f.act()
				for range sim.Rand().IntN(6) {
					f.step()
				}
			}
			f.end()
			taken += f.taken
			foreign += len(f.foreign)
			f.owner().close(f.id)
		})
	}
	if taken < 1000 || foreign < 500 {
		t.Errorf("%d takeovers, %d attempts of the stranger: too few to show anything", taken, foreign)
	}
	t.Logf("%d takeovers of an open socket, %d attempts of a stranger", taken, foreign)
}
