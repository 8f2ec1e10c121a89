package session

import (
	"errors"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// lives is the monkey whose sessions have many lives: they are loaded, copied and deleted, their supervisor is stopped, their store fails.
type lives struct {
	monkey
	restarts int
}

func (m *lives) act() {
	rng := m.sim.Rand()
	m.p.sessions = m.p.sessions.Current()
	c := m.clients[rng.IntN(len(m.clients))]
	if len(m.ids) == 0 || rng.IntN(3) > 0 {
		m.monkey.act()
		return
	}
	id := m.ids[rng.IntN(len(m.ids))]
	params, _ := ParseResume([]byte(`{"cwd":"/","mcpServers":[],"sessionId":"` + id + `"}`))
	switch rng.IntN(12) {
	case 0, 1, 2:
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Load{Client: c, Req: req, Params: params} })
	case 3:
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Fork{Client: c, Req: req, Params: params} })
	case 4:
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Delete{Client: c, Req: req, Session: id} })
	case 5, 6:
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return List{Client: c, Req: req} })
	case 7:
		if m.restarts < 3 && rng.IntN(3) == 0 {
			m.restarts++
			m.p.stopped = true
			m.p.sessions.Stop(errors.New("the sessions end"))
		}
	case 8:
		failing := rng.IntN(4) == 0
		m.p.records.is(func(s *records) {
			s.fail = nil
			if failing {
				s.fail = func(op string) error {
					if m.sim.Rand().IntN(3) == 0 {
						return errors.New("the disk fails")
					}
					return nil
				}
			}
		})
	case 9:
		kind := rng.IntN(4)
		m.p.agents.is(func(a *agents) {
			a.back = func(string) error {
				return []error{nil, nil, &jsonrpc.Error{Code: -32002}, &jsonrpc.Error{Code: -32603}}[kind]
			}
		})
	default:
		m.p.sessions = m.p.sessions.Current()
		m.request(c, m.p.sessions, func(req uint64) kernel.Msg { return Resume{Client: c, Req: req, Params: params} })
	}
}

// Sessions are opened, loaded, copied, suspended, brought back and deleted while agents die or forget, the disk fails and the supervisor ends, in
// any order: every request has one answer, nobody shares a session, nothing crosses, and in the end the store holds what was not deleted, for nobody.
func TestAnythingInAnyOrderOverManyLives(t *testing.T) {
	restored := 0
	for seed := range uint64(120) {
		inSim(t, seed, func(c *Config) { c.MaxSessions, c.SessionTTL, c.Workdir = 2, 60e9, "/" }, func(p *pod, sim *kerneltest.Sim, first *client) {
			p.agents.offering(true, acp.SessionCapabilities{Resume: seed%2 == 0, Fork: true, Delete: true})
			m := &lives{monkey: monkey{p: p, sim: sim, seed: seed, clients: []*client{first}, reqs: map[uint64]asked{}, home: map[string]string{}}}
			m.join()
			m.join()
			for range 150 {
				m.act()
				for range sim.Rand().IntN(8) {
					sim.Step()
				}
				m.check()
			}
			p.records.is(func(s *records) { s.fail = nil })
			p.settle()
			for range 100 { // the backoff of a supervisor that has just ended
				if p.sessions = p.sessions.Current(); p.sessions.Cause() == nil {
					break
				}
				sim.Tick()
				p.settle()
			}
			m.answered()
			for _, c := range m.clients {
				close(c.gone)
				c.ref.Stop(nil)
			}
			for range 5000 {
				m.agentsEnd()
				p.settle()
				if p.s.Living() == 0 && p.s.Agents() == 0 {
					break
				}
				sim.Tick()
			}
			f := p.records.Figures()
			if p.s.Living() != 0 || p.s.Agents() != 0 || p.s.Turns() != 0 || p.s.Tokens().Live() != 0 || p.k.Account().Used() != 0 {
				t.Fatalf("seed %d: %d sessions, %d agents, %d turns, %d tokens, %d bytes are left", seed, p.s.Living(), p.s.Agents(), p.s.Turns(), p.s.Tokens().Live(), p.k.Account().Used())
			}
			if f.Held != 0 {
				t.Fatalf("seed %d: %d of %d records are still held", seed, f.Held, f.Records)
			}
			for _, a := range p.agents.all {
				restored += len(a.backs)
			}
		})
	}
	if restored == 0 {
		t.Error("no agent was ever asked to bring anything back")
	}
	t.Logf("agents were asked %d times to bring a session back", restored)
}
