package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// hang lets the store hang in those operations until the function that it returns is called.
func (p *pod) hang(ops ...string) (free func()) {
	end := make(chan struct{})
	p.records.is(func(s *records) {
		s.fail = func(op string) error {
			if slices.Contains(ops, op) {
				s.mu.Unlock()
				<-end
				s.mu.Lock()
			}
			return nil
		}
	})
	return func() {
		close(end)
		p.records.is(func(s *records) { s.fail = nil })
		p.settle()
	}
}

// wantHangs checks that a request was told of a disk that does not answer, and what to do.
func (c *client) wantHangs(name string, req uint64) {
	c.p.t.Helper()
	switch a := c.answer(req); {
	case a == nil:
		c.p.t.Errorf("%s: it still waits", name)
	case a.err == nil || a.err.Code != jsonrpc.Internal || !strings.Contains(a.err.Message, "try again in a minute"):
		c.p.t.Errorf("%s: %+v", name, a)
	}
}

func (c *client) list(params string) uint64 {
	c.p.t.Helper()
	c.p.req++
	if err := c.p.sessions.Tell(List{Client: c, Req: c.p.req, Params: []byte(params)}); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.p.req
}

func TestARecordThatDoesNotComeKeepsNobodyWaiting(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true, Fork: true, Delete: true})
		id := asleep(p, "[]")
		c := p.client("k", 1)
		free := p.hang("take")
		reqs := []uint64{c.resume(id, "[]"), c.load(id, "[]"), c.fork(id), c.remove(id)}
		p.after(givenUp)
		for _, req := range reqs {
			c.wantHangs("while it hangs", req)
		}
		c.wantHangs("after that, at once", c.resume(id, "[]"))
		if n, _ := p.node("test/sessions"); n.Attrs["hanging"] != 1 || n.Refused["session_records"] == 0 {
			t.Errorf("the tree says %v, refused %v", n.Attrs, n.Refused)
		}
		free()
		if _, held, ok := p.records.has(id); !ok || held {
			t.Errorf("what came late was not let go of: there %v, held %v", ok, held)
		}
		p.atRest()
		if got := accountOf(t, c.answer(c.resume(id, "[]"))); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if n, _ := p.node("test/sessions"); n.Attrs["hanging"] != 0 {
			t.Errorf("the tree still says %v", n.Attrs)
		}
	})
}

// What a sleeping session's record is still busy with is what its resume waits for.
func TestARecordThatIsNotLetGoOfKeepsNobodyWaiting(t *testing.T) {
	for _, op := range []string{"release", "delete"} {
		t.Run(op, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(true, acp.SessionCapabilities{Resume: true, Delete: true})
				c := p.client("k", 1)
				id := c.opened("[]")
				c.leave()
				free := p.hang(op)
				p.after(p.s.cfg.SessionTTL)
				again := p.client("k", 1)
				var first uint64
				if op == "delete" {
					first = again.remove(id)
				} else {
					first = again.resume(id, "[]")
				}
				p.after(givenUp)
				if a := again.answer(first); a == nil || a.err == nil || a.err.Code != jsonrpc.Internal {
					t.Errorf("%+v", a)
				}
				again.wantHangs("at once", again.resume(id, "[]"))
				free()
				p.atRest()
				a := again.answer(again.resume(id, "[]"))
				if op == "delete" && (a == nil || a.err == nil || a.err.Code != jsonrpc.InvalidParams) {
					t.Errorf("what was deleted in the end was answered %+v", a)
				}
				if op == "release" && accountOf(t, a).Agent != "restored" {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

func TestAListThatDoesNotComeKeepsNobodyWaiting(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		free := p.hang("list")
		var reqs []uint64
		for range lists + 2 {
			reqs = append(reqs, c.list("{}"))
		}
		p.after(keepWait)
		for _, req := range reqs {
			c.wantHangs("list", req)
		}
		free()
		if listed := c.listed(); !strings.Contains(listed, id) {
			t.Errorf("%s", listed)
		}
	})
}

// A store that hangs for good is not sent one goroutine after the other.
func TestNobodyIsSentAfterManyThatHang(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		free := p.hang("take")
		for range maxHung {
			c.resume(newID(), "[]")
		}
		p.after(givenUp)
		p.records.did()
		c.wantHangs("one more", c.resume(newID(), "[]"))
		if ops := p.records.did(); len(ops) != 0 {
			t.Errorf("the store was asked %q", ops)
		}
		free()
		c.wantError(c.resume(newID(), "[]"), jsonrpc.InvalidParams, "")
		p.atRest()
	})
}

func TestNobodyIsSentToWriteWhereManyHang(t *testing.T) {
	inPod(t, func(c *Config) { c.Driver = DriverNone }, func(p *pod) {
		c := p.client("k", 1)
		free := p.hang("create")
		for range maxHung {
			c.open("[]")
		}
		p.after(keepWait)
		p.records.did()
		id := c.opened("[]") // at once
		if ops := p.records.did(); len(ops) != 0 {
			t.Errorf("the store was asked %q", ops)
		}
		free()
		c.resume(id, roomServer) // something new
		if _, held, _ := p.records.has(id); !held {
			t.Error("it was not made good")
		}
		c.leave()
		p.after(p.s.cfg.SessionTTL)
		p.atRest()
	})
}

func TestAFolderThatHangsKeepsNobodyWaiting(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		id := asleep(p, "[]")
		c := p.client("k", 1)
		end, resolve := make(chan struct{}), p.s.folders
		p.s.folders = func(workdir string, of *Params) (Folders, *jsonrpc.Error) {
			<-end
			return resolve(workdir, of)
		}
		agents := p.agents.count()
		reqs := []uint64{c.open("[]"), c.resume(id, "[]"), c.list(`{"cwd":"/"}`)}
		p.after(keepWait)
		for _, req := range reqs {
			c.wantHangs("while it hangs", req)
		}
		if _, held, ok := p.records.has(id); !ok || held {
			t.Errorf("its record was not let go of: there %v, held %v", ok, held)
		}
		p.atRest()
		close(end)
		p.settle()
		if p.agents.count() != agents {
			t.Error("what was refused was opened all the same")
		}
		if got := accountOf(t, c.answer(c.resume(id, "[]"))); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if n, _ := p.node("test/sessions"); n.Attrs["hanging"] != 0 {
			t.Errorf("the tree says %v", n.Attrs)
		}
	})
}
