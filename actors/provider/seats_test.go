package provider

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// several is a config of servers a, b, c … of which most may be connected.
func several(most, n int) (Config, []*fakeServer) {
	cfg := Config{Set: mcpjson.Set{MaxConnected: most, IdleTTL: time.Hour}}
	var servers []*fakeServer
	for i := range n {
		s := newFakeServer("buy")
		s.answer = ok
		servers = append(servers, s)
		cfg.Set.Servers = append(cfg.Set.Servers, mcpjson.Server{Name: string(rune('a' + i)), Kind: mcpjson.HTTP, URL: fmt.Sprintf("http://127.0.0.1:1/%d", i), RequestTimeout: time.Minute})
	}
	cfg.Dial = func(r mcpjson.Resolved, modern bool) (link.Link, error) {
		return servers[r.Name[0]-'a'].dial(r, modern)
	}
	return cfg, servers
}

func connected(servers []*fakeServer) string {
	text := ""
	for i, s := range servers {
		s.mu.Lock()
		if s.now > 0 {
			text += string(rune('a' + i))
		}
		s.mu.Unlock()
	}
	return text
}

func TestTheServerNotUsedForLongestMakesPlace(t *testing.T) {
	cfg, servers := several(2, 4)
	play(t, cfg, func(w *world) {
		use := func(i int, want string) {
			t.Helper()
			w.pass(time.Second)
			if o := w.callOf(w.p.sources[i], "buy"); o.err != nil {
				t.Fatal(o.err)
			}
			if got := connected(servers); got != want {
				t.Errorf("%s are connected, want %s", got, want)
			}
		}
		use(0, "a")
		use(1, "ab")
		use(0, "ab")
		use(2, "ac")
		use(3, "cd")
		use(0, "ad")
	})
}

func TestTheBoundIsExceededWhileAllAreBusyAndNoLonger(t *testing.T) {
	cfg, servers := several(2, 3)
	play(t, cfg, func(w *world) {
		for _, s := range servers {
			s.silent["tools/call"], s.answer = true, nil
		}
		for i := range 3 {
			w.callOf(w.p.sources[i], "buy")
			w.pass(time.Second)
		}
		if got := connected(servers); got != "abc" {
			t.Fatal(got)
		}
		servers[1].last().reply(servers[1].heard("tools/call")[0], `{"content":[]}`)
		w.pass(0)
		if got := connected(servers); got != "ac" {
			t.Errorf("%s are connected when one has become idle", got)
		}
		o := w.callOf(w.p.sources[1], "buy")
		if got := connected(servers); got != "abc" || o.ended {
			t.Errorf("%s %+v", got, o)
		}
	})
}

func TestAServerThatIsConnectingIsNotAskedToLeave(t *testing.T) {
	cfg, servers := several(1, 2)
	servers[0].silent["initialize"] = true
	play(t, cfg, func(w *world) {
		w.discover()
		if o := w.callOf(w.p.sources[1], "buy"); o.err != nil || !o.ended {
			t.Fatalf("%+v", o)
		}
		if got := connected(servers); got != "a" || servers[1].dials() != 1 { // it was let in, and went when it was idle
			t.Error(got)
		}
		servers[0].last().usual(servers[0].heard("initialize")[0])
		w.pass(time.Second)
		if got := connected(servers); got != "a" || w.state() != capability.Ready {
			t.Errorf("%s are connected, %v", got, w.state())
		}
	})
}

func TestAServerThatNobodyUsesIsNotKept(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	cfg := with(s)
	cfg.Set.IdleTTL = 10 * time.Minute
	play(t, cfg, func(w *world) {
		w.call("buy", func(c *capability.Call) { c.Limit = time.Now().Add(time.Hour) })
		for range 30 {
			w.pass(50 * time.Second)
			s.last().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}`)
		}
		if s.running() != 1 {
			t.Error("it has a call, and was ended")
		}
		s.last().reply(s.heard("tools/call")[0], `{"content":[]}`)
		w.pass(9*time.Minute + 59*time.Second)
		if s.running() != 1 {
			t.Error("too early")
		}
		w.pass(2 * time.Second)
		if s.running() != 0 || w.state() != capability.Idle || w.tools().List == nil {
			t.Errorf("%d, %v", s.running(), w.state())
		}
		w.pass(time.Hour)
		if s.dials() != 1 {
			t.Error("it came back although nobody called it")
		}
	})
}

func TestEachSessionHasAnInstanceOfItsOwn(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	cfg := with(s, func(e *mcpjson.Server) { e.PerSession = true })
	cfg.Set.IdleTTL = time.Minute
	play(t, cfg, func(w *world) {
		src, isolated := w.p.sources[0].(capability.Isolated)
		if !isolated {
			t.Fatal("it is not isolated")
		}
		if o := w.call("buy"); !errors.Is(o.err, capability.ErrDetached) || s.dials() != 0 {
			t.Errorf("what instances are made of was called: %+v", o)
		}
		kerneltest.Do(t, w.desk, func(c *kernel.Ctx) {
			if _, err := src.Discover(c, capability.Searched); !errors.Is(err, capability.ErrDetached) {
				t.Error(err)
			}
		})
		one, spec := src.Instance("#1")
		two, other := src.Instance("-")
		if spec.Name != "shop" || one.Server() != "shop" || !one.Allows("buy") {
			t.Errorf("%q %q", spec.Name, one.Server())
		}
		other.Name = "other"
		first := kerneltest.Spawn(t, w.desk, spec)
		kerneltest.Spawn(t, w.desk, other)
		w.pass(0)
		a, b := w.callOf(one, "buy"), w.callOf(two, "buy")
		if a.err != nil || b.err != nil || s.running() != 2 {
			t.Fatalf("%v, %v, %d connections", a.err, b.err, s.running())
		}
		w.pass(time.Hour)
		if s.running() != 1 || one.Tools().State != capability.Ready || two.Tools().State != capability.Idle {
			t.Errorf("%d connections: a session's stays, that of nobody's does not", s.running())
		}
		kerneltest.Do(t, w.desk, func(c *kernel.Ctx) { c.Stop(first, nil) })
		w.pass(0)
		if s.running() != 0 {
			t.Error("it outlives its session")
		}
		if o := w.callOf(one, "buy"); !errors.Is(o.err, capability.ErrDetached) {
			t.Errorf("%+v", o)
		}
	})
}
