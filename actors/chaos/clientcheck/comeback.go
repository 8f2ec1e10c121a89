package clientcheck

import (
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// loss is a way for a client to lose its socket.
type loss struct {
	row    string
	code   int // of the close frame; 0 is none
	reason string
	outage bool // nobody is let in for a while
}

// comeBack takes the socket away, three times, and looks how the client finds its session.
func (r *run) comeBack() {
	for _, one := range []loss{
		{rowBack1012, 1012, "the pod stops", true},
		{rowBack1013, 1013, "slow_reader: the check says so", false},
		{rowBackLost, 0, "", false},
	} {
		if r.sock == nil {
			return
		}
		r.lose(one)
		if !r.await(one) {
			r.stayed = true
			return
		}
		if !r.greet() {
			return
		}
		r.sheet.put(judgeSecret(r.first.in.ClientSecret, r.hello.in.ClientSecret))
		if !r.resume() {
			return
		}
	}
}

// lose ends the socket.
func (r *run) lose(l loss) {
	s := r.sock
	r.attempts = r.attempts[:0]
	r.door.shut.Store(l.outage)
	if l.code == 0 {
		s.reset()
	} else {
		if l.outage {
			r.notify("_acpod/draining", []byte(`{"deadline_ms":1}`))
		}
		_ = s.close(r.cfg.Patience, l.code, l.reason)
		switch r.until(r.cfg.Patience, func() bool { return r.sock == nil }); {
		case r.sock != nil:
			r.sheet.put(failed(rowEcho, "", "no close frame within %v", r.cfg.Patience))
		case !s.framing.closed:
			r.sheet.put(failed(rowEcho, r.how, "a close frame is answered with one before the socket ends"))
		default:
			r.sheet.put(passed(rowEcho, "%d", s.framing.code))
		}
		s.reset()
	}
	r.until(r.cfg.Patience, func() bool { return r.sock == nil })
}

// await waits for the client to come again.
func (r *run) await(l loss) bool {
	lost := time.Now()
	r.waiting("the client to come again")
	if l.outage {
		r.until(r.cfg.outage, func() bool { return false })
		r.door.shut.Store(false)
	}
	step := r.cfg.Step
	if d, some := r.cfg.sooner[l.row]; some {
		step = d
	}
	back := r.until(step, func() bool { return r.sock != nil })
	if len(r.attempts) > 0 {
		r.sheet.put(judgeAttempts(r.attempts))
	}
	if !back {
		r.sheet.put(skipped(l.row, "it did not come again within %v", step))
		return false
	}
	r.sheet.put(passed(l.row, "after %.1f s and %d attempts", time.Since(lost).Seconds(), len(r.attempts)))
	return true
}

// judgeAttempts says whether a client comes in a storm.
func judgeAttempts(at []time.Time) mark {
	const most, window = 5, time.Second
	for k := most; k < len(at); k++ {
		if gap := at[k].Sub(at[k-most]); gap < window {
			return failed(rowStorm, fmt.Sprintf("%d attempts in %.2f s", most+1, gap.Seconds()), "a thousand clients that do so keep a pod down that starts again: wait longer each time, and not all equally long")
		}
	}
	return passed(rowStorm, "%d attempts", len(at))
}

// judgeSecret compares the secrets of two sockets of one client.
func judgeSecret(first, now string) mark {
	switch {
	case first == "" && now == "":
		return skipped(rowSecret, "it gave none: who has the same key, or none, is the same client to the pod")
	case first != now:
		return failed(rowSecret, "another one, or none", "to a pod this is another client, and the sessions of the first are unknown to it")
	}
	return passed(rowSecret, "")
}

// resume waits for the client to take its session up, and serves it again.
func (r *run) resume() bool {
	r.expected = true
	defer r.answerRest()
	r.waiting("session/resume")
	for r.until(r.cfg.Step, func() bool { return r.sock == nil || len(r.openings) > 0 }) && r.sock != nil {
		one := r.openings[0]
		r.openings = r.openings[1:]
		known := r.known(one.params)
		switch {
		case one.method == acp.MethodSessionResume && known && r.hello.in.ClientSecret == r.first.in.ClientSecret:
			r.sheet.put(passed(rowResume, ""))
			r.serveAgain(one)
			return r.sock != nil
		case one.method == acp.MethodSessionResume && known: // the pod says unknown, and the row about the secret says why
			r.respond(one.id, nil, acp.UnknownSession(r.session))
			return r.sock != nil
		case one.method == acp.MethodSessionNew:
			had := len(r.sessions) > 0
			r.openBeside(one, true)
			switch {
			case r.sheet.is(rowSecret, tally.Fail): // it could not have taken it up
			case !had:
				r.sheet.put(skipped(rowResume, "it had closed its session"))
			case r.first.in.ClientSecret == "":
				r.sheet.put(skipped(rowResume, "it opened another session, and gave no secret to be known again by"))
			default:
				r.sheet.put(failed(rowResume, "session/new", "the session that it had is kept for it, with its agent, until its time is over"))
			}
			return r.sock != nil
		}
		r.openBeside(one, false)
	}
	return false
}

// known says whether params name a session that the client has.
func (r *run) known(params []byte) bool {
	id, bad := acp.ParseSessionID(params)
	return bad == nil && r.sessions[id]
}

// serveAgain connects the servers of a resume.
func (r *run) serveAgain(one opening) {
	p, bad := acp.ParseResume(one.params)
	if bad != nil {
		r.sheet.put(failed(rowServed, jsonrpc.Show(string(one.params)), "%s", bad.Message))
		r.respond(one.id, nil, bad)
		return
	}
	r.session = p.SessionID
	before := r.tunnels
	var declared []acp.Declared
	if p.Servers != nil {
		var marks []mark
		declared, marks, bad = judgeServers(p.Servers)
		r.sheet.put(marks...)
	}
	if bad != nil {
		r.respond(one.id, nil, bad)
		return
	}
	r.tunnels = tunnelsOf(declared, r.cfg.Tool)
	for _, t := range r.tunnels {
		if method, params, ok := t.codec.Connect(t.declared); ok {
			t.connecting = r.ask(method, params)
		}
	}
	result := append([]byte(`{"_meta":{"`+acp.MetaSession+`":{"state":"idle","agent":"alive","missed_updates":0,"missed_bytes":0,"last_turn":null},`), serverStates(declared, "connecting")[len(`"_meta":{`):]...)
	r.respond(one.id, result, nil)
	r.sheet.put(r.servedAgain(before, p.Servers != nil)...)
}

// servedAgain looks whether what was served before is served again.
func (r *run) servedAgain(before []*tunnel, declared bool) []mark {
	var had, again []*tunnel
	for _, old := range before {
		if old.catalog.first == "" {
			continue
		}
		had = append(had, old)
		for _, t := range r.tunnels {
			if t.declared.Name == old.declared.Name {
				t.catalog.first = old.catalog.first
				again = append(again, t)
			}
		}
	}
	switch {
	case len(had) == 0:
		return nil
	case !declared:
		return []mark{failed(rowServed, "no array mcpServers", "nothing is served on the new socket, and the agent is told that the tools are detached")}
	case len(again) < len(had): // it may withdraw servers
		return []mark{skipped(rowServed, "it declared %d of %d again, and so withdrew the others", len(again), len(had))}
	}
	for _, t := range again {
		if t.connecting != nil {
			if !r.answered(rowServed, t.connecting) {
				return []mark{r.unanswered(rowServed, "connect")}
			}
			id, next, m := judgeConnected(t, *t.connecting.reply)
			switch {
			case next != nil:
				t.codec, t.target = next, t.declared.ID
			case id == "":
				m.row = rowServed
				return []mark{m}
			default:
				t.target = id
			}
			r.watch.targets[t.target] = true
		}
		if t.connects() {
			answer, ok := r.mcp(rowServed, t, t.target, mcp.MethodInitialize, mcp.InitializeParams(build))
			if !ok {
				return nil
			}
			if m := judgeHandshake(answer); m.status != tally.Pass {
				m.row = rowServed
				return []mark{m}
			}
			r.watch.silent = rowInitialized
			r.tell(t, mcp.MethodInitialized, nil)
		}
		same := r.listed(rowServed, t, t.target)
		r.watch.silent = ""
		if !same {
			return nil
		}
		t.usable = true
	}
	r.notify(acp.MethodServers, r.states())
	return []mark{passed(rowServed, "%d servers", len(again))}
}
