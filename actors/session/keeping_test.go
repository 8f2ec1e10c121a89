package session

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// restart ends the sessions as a pod ends, and lets others begin with the same records.
func (p *pod) restart() {
	p.t.Helper()
	p.sessions.Stop(kernel.ErrShutdown)
	<-p.sessions.Done()
	p.settle()
	p.after(time.Minute) // the backoff of a restart
	p.sessions = p.sessions.Current()
	if p.sessions.Cause() != nil {
		p.t.Fatal("the sessions are not back")
	}
}

func TestARequestThatOpensIsAnsweredWhenItsRecordIsWritten(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true, Fork: true})
		c := p.client("k", 1)
		early, req := "", uint64(1)
		p.records.is(func(s *records) {
			s.fail = func(op string) error {
				if op == "create" && c.answer(req) != nil {
					early = op
				}
				return nil
			}
		})
		id := c.opened(roomServer)
		if early != "" {
			t.Error("answered before its record was written")
		}
		d, held, ok := p.records.has(id)
		if !ok || !held || d.Key != "k" || d.Client != c.secret || d.Agent != "inner-1" || d.Cwd == "" || !slices.Equal(d.Servers, []string{"room"}) || d.LastTurn != nil || d.Created.IsZero() {
			t.Errorf("%+v, held %v", d, held)
		}
		c.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		if d, _, _ := p.records.has(id); string(d.LastTurn) != `{"stopReason":"end_turn"}` || !d.Updated.After(d.Created) {
			t.Errorf("after the turn: %+v", d)
		}
		p.records.did()
		c.resume(id, roomServer)
		if ops := p.records.did(); len(ops) != 0 {
			t.Errorf("a resume that changes nothing wrote: %q", ops)
		}
		c.resume(id, `[{"type":"acp","id":"r2","name":"other"}]`)
		if d, _, _ := p.records.has(id); !slices.Equal(d.Servers, []string{"room", "other"}) {
			t.Errorf("after another declaration: %+v", d)
		}
	})
}

func TestASessionOutlivesItsPod(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id, idle := c.opened(roomServer), c.opened("[]")
		closed := c.opened("[]")
		c.want(c.close(closed), "{}")
		if _, _, ok := p.records.has(closed); ok {
			t.Error("what was closed for good has a record")
		}
		c.prompt(id, "hello")
		agents := p.agents.count()
		p.restart()
		for _, one := range []string{id, idle} {
			if _, held, ok := p.records.has(one); !ok || held {
				t.Errorf("after the end of the pod: %v, held %v", ok, held)
			}
		}
		p.atRest()
		if p.agents.count() != agents {
			t.Error("a record opened something by itself")
		}
		again := p.client("k", 1)
		if listed := again.listed(); !strings.Contains(listed, id) || strings.Index(listed, id) < strings.Index(listed, idle) {
			t.Errorf("listed: %s", listed)
		}
		for name, other := range map[string]*client{"another client": p.client("k", 2), "no secret": p.client("k", 0), "another key": p.client("l", 1)} {
			other.wantError(other.resume(id, "[]"), jsonrpc.InvalidParams, "")
			other.wantError(other.load(id, "[]"), jsonrpc.InvalidParams, "")
			if strings.Contains(other.listed(), "sess_") {
				t.Errorf("%s finds %s", name, other.listed())
			}
		}
		got := accountOf(t, again.answer(again.resume(id, "null")))
		if got.Agent != "restored" || got.State != "idle" {
			t.Errorf("%+v", got)
		}
		a := p.agents.last()
		caller, ok := p.s.tokens.Resolve(sum(a.token()))
		if !ok {
			t.Fatal("its agent has no token")
		}
		if r := caller.View.Load().Resolve("room.click", true); r.Refusal == nil || r.Refusal.Code != "detached" {
			t.Errorf("a tool of a server that is not back is %+v", r.Refusal)
		}
	})
}

// A pod that is killed writes nothing at its end: what was acknowledged is there, and what it held is free.
func TestWhatWasAcknowledgedIsThereAfterAKill(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"max_tokens"}`)
		p.records.is(func(s *records) { s.fail = func(string) error { return errors.New("killed") } })
		p.restart()
		p.records.is(func(s *records) { s.fail = nil })
		again := p.client("k", 1)
		if got := accountOf(t, again.answer(again.resume(id, "[]"))); got.Agent != "restored" || got.LastTurn == nil {
			t.Errorf("%+v", got)
		}
	})
}

// One that cannot be written is not refused: it serves, the tree and the log say so, and what comes next is written.
func TestASessionWithoutARecordServes(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		p.records.is(func(s *records) { s.fail = func(string) error { return errors.New("no space left") } })
		c := p.client("k", 1)
		id := c.opened("[]")
		if n, _ := p.node("test/sessions/" + acp.TreeName(id)); n.Refused["session_record"] == 0 {
			t.Errorf("the tree says nothing: %v", n.Refused)
		}
		p.records.is(func(s *records) { s.fail = nil })
		req := c.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(req, `{"stopReason":"end_turn"}`)
		if d, held, _ := p.records.has(id); !held || d.LastTurn == nil {
			t.Errorf("it was not made good: %+v", d)
		}
		c.leave()
		p.after(p.s.cfg.SessionTTL)
		again := p.client("k", 1)
		p.records.is(func(s *records) { s.fail = func(string) error { return errors.New("no disk") } })
		again.wantError(again.resume(id, "[]"), jsonrpc.Internal, "")
		p.records.is(func(s *records) { s.fail = nil })
		if got := accountOf(t, again.answer(again.resume(id, "[]"))); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		p.records.is(func(s *records) { s.fail = func(string) error { return errors.New("no disk") } })
		again.wantError(again.close(id), jsonrpc.Internal, "")
		if _, owns := again.session(id); owns {
			t.Error("it is not closed")
		}
		p.atRest()
	})
}

// Whoever knows no more than the id of a session that sleeps finds nothing, and leaves it as it is.
func TestStrangersTouchNoRecord(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true, Fork: true, Delete: true})
		id := asleep(p, "[]")
		before, _, _ := p.records.has(id)
		agents := p.agents.count()
		for name, c := range map[string]*client{"another client": p.client("k", 2), "no secret": p.client("k", 0), "another key": p.client("l", 1)} {
			for method, req := range map[string]uint64{"resume": c.resume(id, roomServer), "load": c.load(id, roomServer), "fork": c.fork(id), "delete": c.remove(id)} {
				if got := c.answer(req); got == nil || got.err == nil || got.err.Message != acp.UnknownSession(id).Message {
					t.Errorf("%s, %s: %+v", name, method, got)
				}
			}
			if len(c.mcp) != 0 {
				t.Errorf("%s: %q", name, c.mcp)
			}
		}
		if after, held, ok := p.records.has(id); !ok || held || !reflect.DeepEqual(after, before) || p.agents.count() != agents {
			t.Errorf("the record was %+v and is %+v, held %v", before, after, held)
		}
		p.atRest()
	})
}

// Somebody else has the record: two pods with one session are worse than none.
func TestASessionWhoseRecordIsTakenEnds(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened(roomServer)
		turn := c.prompt(id, "hello")
		p.records.is(func(s *records) { s.all[id].gen++ })
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(turn, `{"stopReason":"end_turn"}`)
		if _, owns := c.session(id); owns || c.frames("mcp/disconnect") != 1 {
			t.Errorf("it lives on: %q", c.mcp)
		}
		if _, held, ok := p.records.has(id); !ok || !held {
			t.Error("the other's record was touched")
		}
		p.atRest()
	})
}

func TestAnotherPodsSessionIsHeld(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		id := asleep(p, "[]")
		p.records.is(func(s *records) {
			s.fail = func(op string) error {
				if op == "take" {
					return &HeldError{Owner: "elsewhere"}
				}
				return nil
			}
		})
		c := p.client("k", 1)
		req := c.resume(id, "[]")
		c.wantError(req, jsonrpc.Internal, "internal")
		if text := c.answer(req).err.Message; !strings.Contains(text, "another pod") {
			t.Errorf("%q", text)
		}
		p.atRest()
	})
}

func TestLeasesThatEndAreRenewed(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.records.is(func(s *records) { s.ends = 30 * time.Second })
		c := p.client("k", 1)
		id := c.opened("[]")
		p.records.did()
		p.after(65 * time.Second)
		if ops := slices.DeleteFunc(p.records.did(), func(op string) bool { return op != "renew" }); len(ops) != 6 {
			t.Errorf("%d renewals", len(ops))
		}
		p.records.is(func(s *records) {
			s.all[id].gen++ // somebody else has it, and the store says that something is lost
			s.fail = func(op string) error {
				if op == "renew" {
					return ErrLeaseLost
				}
				return nil
			}
		})
		p.after(15 * time.Second)
		if _, owns := c.session(id); owns {
			t.Error("it lives on")
		}
		p.atRest()
	})
}

func TestAListHasPages(t *testing.T) {
	inPod(t, func(c *Config) { c.Driver = DriverNone }, func(p *pod) {
		c := p.client("k", 1)
		var ids []string
		for range 2*pageSize + 50 {
			ids = append(ids, c.opened("[]"))
		}
		slices.Reverse(ids)
		check := func() {
			t.Helper()
			var got []string
			params := "{}"
			for page := range 3 {
				p.req++
				if err := p.sessions.Tell(List{Client: c, Req: p.req, Params: []byte(params)}); err != nil {
					t.Fatal(err)
				}
				p.settle()
				text := c.answer(p.req).result
				for _, part := range strings.Split(text, `"sessionId":"`)[1:] {
					got = append(got, part[:len(ids[0])])
				}
				_, after, more := strings.Cut(text, `"nextCursor":"`)
				if more != (page < 2) {
					t.Fatalf("page %d: more %v, %d so far: %.300s", page, more, len(got), text)
				}
				cursor, _, _ := strings.Cut(after, `"`)
				params = `{"cursor":"` + cursor + `"}`
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%d listed, in another order than they were opened, or not all", len(got))
			}
		}
		check()
		c.leave()
		p.after(p.s.cfg.SessionTTL)
		p.atRest()
		c = p.client("k", 1)
		check() // of the records alone
		if text := p.client("k", 2).listed(); text != `{"sessions":[]}` {
			t.Errorf("a stranger's list: %s", text)
		}
	})
}

// A client without a secret is not known again, but its connection is.
func TestAConnectionFindsWhatItHadOpened(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("k", 0)
		first := c.opened("[]")
		second := c.opened("[]")
		if listed := c.listed(); !strings.Contains(listed, first) || !strings.Contains(listed, second) {
			t.Errorf("%s", listed)
		}
		if listed := p.client("k", 0).listed(); strings.Contains(listed, "sess_") {
			t.Errorf("another connection finds %s", listed)
		}
		c.want(c.close(second), "{}")
		if got := c.answer(c.resume(first, "[]")); got == nil || got.err != nil {
			t.Errorf("%+v", got)
		}
		if listed := c.listed(); strings.Contains(listed, second) || strings.Count(listed, first) != 1 {
			t.Errorf("%s", listed)
		}
	})
}

// noPins remembers nothing: what a session without a client secret pins is its own.
type noPins struct{}

func (noPins) Admit(capability.PinOwner, []*capability.Tool)          {}
func (noPins) Changed(capability.PinOwner, *capability.Tool) []string { return nil }

// The tools of a client that nobody knows again are pinned for the life of its session, which is longer than that of a pod.
func TestPinsOfASessionOutliveThePod(t *testing.T) {
	inPod(t, func(c *Config) { c.Desk.Pins = noPins{} }, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 0)
		id := c.opened(roomServer)
		resolves := func() capability.Code {
			t.Helper()
			caller, ok := p.s.tokens.Resolve(sum(p.agents.last().token()))
			if !ok {
				t.Fatal("no token")
			}
			if r := caller.View.Load().Resolve("room.click", true); r.Refusal != nil {
				return r.Refusal.Code
			}
			return ""
		}
		if code := resolves(); code != "" {
			t.Fatalf("before: %s", code)
		}
		c.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		if d, _, _ := p.records.has(id); !strings.Contains(string(d.Pins), `"room.click"`) {
			t.Errorf("pins of the record: %s", d.Pins)
		}
		p.restart()
		again := p.client("k", 0)
		again.resume(id, roomServer)
		if code := resolves(); code != "" {
			t.Errorf("what has not changed: %s", code)
		}
		again.leave()
		p.restart()
		third := p.client("k", 0)
		third.changed = true
		third.resume(id, roomServer)
		if code := resolves(); code != capability.PinChanged {
			t.Errorf("what has changed: %q", code)
		}
	})
}

// Who has the record may have deleted it: what the session here still says makes no other.
func TestALostRecordIsNotMadeAnew(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		p.records.is(func(s *records) {
			s.fail = func(op string) error {
				if op != "put" {
					return nil
				}
				delete(s.all, id)
				_ = p.sessions.Signal(changed{change{id: id}})
				return ErrLeaseLost
			}
		})
		p.agents.last().end(endTurn)
		if _, _, ok := p.records.has(id); ok {
			t.Error("it is there again")
		}
		c.wantError(c.resume(id, "[]"), jsonrpc.InvalidParams, "")
		p.atRest()
	})
}

func TestADiskThatHangsKeepsNobodyWaitingForEver(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		free := make(chan struct{})
		p.records.is(func(s *records) {
			s.fail = func(string) error {
				s.mu.Unlock()
				<-free
				s.mu.Lock()
				return nil
			}
		})
		req := c.open("[]")
		p.after(keepWait)
		if a := c.answer(req); a == nil || a.err != nil {
			t.Fatalf("the session was answered %+v", a)
		}
		closing := uint64(0)
		for id := range c.sessions {
			closing = c.close(id)
		}
		p.after(keepWait)
		c.wantError(closing, jsonrpc.Internal, "internal")
		close(free)
		p.settle()
		p.atRest()
	})
}
