package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A call that is never answered ends at its deadline, tells the server to stop, says whose it was and how long it took, and leaves its
// neighbours alone.
func TestACallThatIsNeverAnsweredEndsAlone(t *testing.T) {
	t.Parallel()
	offer := []string{"read_hang", "hang", "late", "slow", "echo"}
	child := newEvil(t, evilScript{Name: "child", Offer: offer}).set("request_timeout_secs", 2)
	web := newEvilWeb(t, evilScript{Name: "web", Offer: offer}).set("request_timeout_secs", 2)
	_, a := startEvil(t, providersConfig, child, web)
	for _, s := range []*evilServer{child, web} {
		t.Run(s.script.Name, func(t *testing.T) {
			name := s.script.Name
			a.says(name+".echo", `{}`, `echo {}`)
			var all sync.WaitGroup
			for tool, word := range map[string]string{"read_hang": "timeout", "hang": "outcome_unknown"} {
				all.Go(func() {
					got := a.ask(name+"."+tool, `{}`)
					if got.Result.refusal() != word || !strings.Contains(got.Result.text(), name) {
						t.Errorf("%s: %s, want %s and the server's name", tool, got.raw, word)
					}
					if got.took < 1500*time.Millisecond || got.took > 20*time.Second {
						t.Errorf("%s ended after %v, its deadline is 2 s", tool, got.took)
					}
				})
			}
			until(t, "both at the server", func() bool { return s.calls("hang") == 1 && s.calls("read_hang") == 1 })
			for i := range 10 {
				text := fmt.Sprintf(`{"ms":100,"text":"%d"}`, i)
				a.says(name+".slow", text, fmt.Sprintf("done %d", i))
			}
			all.Wait()
			until(t, "the server was told of both ends", func() bool { return len(s.journal("stopped")) == 2 })
			a.says(name+".echo", `{"n":0}`, `echo {"n":0}`) // so that what follows is no third fault in a row
			// An answer that comes after all is nobody's.
			a.refuses("outcome_unknown", name+".late", `{}`)
			until(t, "the late answer", func() bool { return len(s.journal("late")) == 1 })
			a.says(name+".echo", `{"n":1}`, `echo {"n":1}`)
			if len(s.journal("initialize")) != 1 {
				t.Errorf("it was initialized %d times", len(s.journal("initialize")))
			}
		})
	}
}

// A caller's cancel reaches the one call that it names, under the id that the server knows, past whatever waits.
func TestACancelReachesTheCallThatItNames(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"hang", "slow", "echo"}})
	p, _ := startEvil(t, providersConfig, s)
	_, a := p.session()
	a.says("echo", `{}`, `echo {}`)
	doomed := a.send(`"mine"`, `{"name":"hang","arguments":{"n":1}}`)
	kept := a.send(`101`, `{"name":"slow","arguments":{"ms":1500,"text":"kept"}}`)
	until(t, "both at the server", func() bool { return s.calls("hang") == 1 && s.calls("slow") == 1 })
	for _, id := range []string{`1`, `2`, `3`, `"101"`, `"nobody"`} { // numbers that the server may know, and what nobody has
		a.do(a.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
	}
	a.do(a.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}`))
	if result := doomed.wait(); result.refusal() != "outcome_unknown" {
		t.Errorf("the cancelled one: %s", result.raw)
	}
	until(t, "the cancel at the server", func() bool { return len(s.journal("stopped")) == 1 })
	if result := kept.wait(); result.text() != "done kept" {
		t.Errorf("its neighbour: %s", result.raw)
	}
	if n := len(s.journal("cancelled")); n != 1 {
		t.Errorf("the server was told of %d cancels: %v", n, s.journal("cancelled"))
	}
}

// While a server starts, a caller that gives up takes its call along; the handshake is never cancelled, and serves the next one.
func TestACancelNeverEndsAHandshake(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"hang", "echo"}, StartAfter: 2 * time.Second})
	p, _ := startEvil(t, providersConfig, s)
	_, a := p.session()
	call := a.send(`"mine"`, `{"name":"one.hang","arguments":{}}`)
	until(t, "its process", func() bool { return s.starts() == 1 })
	a.do(a.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}`))
	if result := call.wait(); !result.IsError {
		t.Errorf("%s", result.raw)
	}
	a.says("one.echo", `{}`, `echo {}`)
	if s.calls("hang") != 0 && len(s.journal("stopped")) != s.calls("hang") || s.starts() != 1 || len(s.journal("initialize")) != 1 {
		t.Errorf("journal: %v", s.journal(""))
	}
}

// Progress is asked for though the caller did not, and extends a call's time, up to a hard end.
func TestProgressExtendsACallUpToAHardEnd(t *testing.T) {
	t.Parallel()
	child := newEvil(t, evilScript{Name: "child", Offer: []string{"progress"}}).set("request_timeout_secs", 2)
	web := newEvilWeb(t, evilScript{Name: "web", Offer: []string{"progress"}}).set("request_timeout_secs", 2)
	_, a := startEvil(t, with(providersConfig, "mcp.call_max", `"8s"`, "mcp.tunnel_timeout", `"5s"`), child, web)
	var all sync.WaitGroup
	for _, name := range []string{"child", "web"} {
		all.Go(func() { a.says(name+".progress", `{"n":8,"ms":500}`, "token true") })
		all.Go(func() {
			got := a.ask(name+".progress", `{"n":60,"ms":500}`)
			if got.Result.refusal() != "outcome_unknown" || got.took < 6*time.Second || got.took > 25*time.Second {
				t.Errorf("%s without an end: %s after %v", name, got.raw, got.took)
			}
		})
	}
	all.Wait()
}

// Transport faults open the breaker, and nothing else does; while it is open nothing is asked; its probe goes to a new process.
func TestTheBreakerOpensForTransportFaultsAlone(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"rpcerr", "toolerr", "read_hang", "whoami"}}).set("request_timeout_secs", 3)
	good := newEvil(t, evilScript{Name: "good", Offer: []string{"whoami"}})
	_, a := startEvil(t, providersConfig, s, good)
	first := a.runs(s)
	for range 4 {
		a.ask("rpcerr", `{}`)
		a.ask("toolerr", `{}`)
	}
	a.runs(s)
	for range 3 {
		a.refuses("timeout", "read_hang", `{}`)
	}
	opened := time.Now()
	told := a.refuses("breaker_open", "one.whoami", `{}`).text()
	if !strings.Contains(told, "one") {
		t.Errorf("the refusal does not say whose breaker it is: %s", told)
	}
	for range 5 {
		if got := a.ask("one.read_hang", `{}`); got.Result.refusal() != "breaker_open" || got.took > 2900*time.Millisecond && got.took > time.Since(opened)/2 {
			t.Errorf("%s after %v", got.raw, got.took)
		}
	}
	if s.calls("read_hang") != 3 || s.calls("whoami") != 2 {
		t.Errorf("%d and %d calls reached the server", s.calls("read_hang"), s.calls("whoami"))
	}
	a.runs(good)
	// A minute later one call is let through, on a connection of its own, and its success closes the breaker.
	end := time.Now().Add(4 * patience) // a machine that is far too busy may need a second one
	for a.ask("one.whoami", `{}`).Result.IsError && time.Now().Before(end) {
		time.Sleep(500 * time.Millisecond)
	}
	t.Logf("it was closed %v after it opened", time.Since(opened).Round(100*time.Millisecond))
	if waited := time.Since(opened); waited < 55*time.Second {
		t.Errorf("the breaker was open for %v", waited)
	}
	if second := a.runs(s); second == first || s.starts() != 2 {
		t.Errorf("the probe went to the old process: %d, %d, started %d times", first, second, s.starts())
	}
}

// A host that is down is not dialled again and again, and the call of a user tries at once: when it is there, it answers.
func TestADeadHostIsLeftAloneUntilItIsUsed(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "down"})
	dials := atomic.Int32{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var dead atomic.Bool
	dead.Store(true)
	front := &http.Server{Handler: http.HandlerFunc(s.web.ServeHTTP), ReadHeaderTimeout: patience}
	go func() { _ = front.Serve(dropping{listener, &dead, &dials}) }()
	t.Cleanup(func() { _ = front.Close() })
	s.set("url", "http://"+listener.Addr().String()+"/mcp")
	_, a := startEvil(t, providersConfig, s)
	if why := a.search(`{}`).without("down"); why == "" {
		t.Error("nothing says that it is down")
	}
	before := dials.Load()
	quiet := time.Now()
	for time.Since(quiet) < 2*time.Second {
		a.search(`{}`)
	}
	if n := dials.Load() - before; n > 6 {
		t.Errorf("it was dialled %d times in two seconds of searches", n)
	}
	dead.Store(false)
	start := time.Now()
	until(t, "it answers", func() bool { return a.ask("down.echo", `{}`).Result.text() == "echo {}" })
	t.Logf("it answered %v after it was back", time.Since(start))
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it answered only %v after it was back", took)
	}
	if seen := a.search(`{}`); !seen.has("echo") || seen.without("down") != "" {
		t.Errorf("%+v", seen)
	}
}

// dropping hangs up on who dials, while it is dead.
type dropping struct {
	net.Listener
	dead  *atomic.Bool
	dials *atomic.Int32
}

func (d dropping) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		d.dials.Add(1)
		if !d.dead.Load() {
			return conn, nil
		}
		conn.Close()
	}
}

// A server that dies again and again is not started again and again.
func TestAServerThatAlwaysDiesIsStartedSeldom(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "dies", Exit: 9, Stderr: "not today"})
	_, a := startEvil(t, providersConfig, s)
	start := time.Now()
	for time.Since(start) < 3*time.Second {
		a.search(`{}`)
	}
	t.Logf("started %d times in %v of searches", s.starts(), time.Since(start).Round(time.Millisecond))
	if n := s.starts(); n > 8 {
		t.Errorf("it was started %d times in three seconds", n)
	}
}

// A server that is wanted by many at once while it starts is started once, also when it fails.
func TestAFailingStartIsSharedByWhoWaits(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "slow", FailIn: "initialize", StartAfter: 700 * time.Millisecond})
	_, a := startEvil(t, providersConfig, s)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if got := a.ask("slow.echo", `{}`); !got.Result.IsError {
				t.Errorf("%s", got.raw)
			}
		})
	}
	all.Wait()
	if n := s.starts(); n > 2 {
		t.Errorf("it was started %d times for twelve callers", n)
	}
}

// Calls of one tool run as many at a time as its entry says; the others wait in a queue with an end, and another tool does not.
func TestCallsOverTheirBoundWaitInAQueueWithAnEnd(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"slow", "echo"}}).set("max_concurrency", 2)
	_, a := startEvil(t, providersConfig, s)
	a.says("echo", `{}`, `echo {}`)
	start := time.Now()
	var calls []*inFlight
	for range 6 {
		calls = append(calls, a.later("slow", `{"ms":700,"text":"in turn"}`))
	}
	until(t, "the first two at the server", func() bool { return s.calls("slow") == 2 })
	a.says("echo", `{"n":1}`, `echo {"n":1}`)
	for _, call := range calls {
		if result := call.wait(); result.text() != "done in turn" {
			t.Errorf("%s", result.raw)
		}
	}
	if took := time.Since(start); took < 2*time.Second {
		t.Errorf("six calls of 0.7 s, two at a time, took %v", took)
	}
	calls = nil
	for range 80 { // more than wait
		calls = append(calls, a.later("slow", `{"ms":10,"text":"many"}`))
	}
	refused, done := 0, 0
	for _, call := range calls {
		switch result := call.wait(); {
		case result.text() == "done many":
			done++
		case result.refusal() == "overloaded":
			refused++
		default:
			t.Errorf("%s", result.raw)
		}
	}
	t.Logf("of 80 at once %d were done and %d refused", done, refused)
	if done < 40 {
		t.Errorf("only %d of 80 were done", done)
	}
}

// A server that nobody uses is disconnected, its process ends, and the next call wakes it; what it offers is still found meanwhile.
func TestAnIdleServerIsPutAwayAndWoken(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"whoami"}})
	file := encode(t, object{"idle_ttl_secs": 1, "mcpServers": object{"one": s.entry}})
	p := startPod(t, providersConfig, mcpText(t, file))
	a := anonymous(t, p)
	first := a.runs(s)
	until(t, "the end of the idle process", func() bool { return !alive(first) })
	if seen := a.search(`{}`); !seen.has("whoami") || seen.without("one") != "" || seen.Capabilities[0].Availability != "ready" {
		t.Errorf("%+v", seen)
	}
	if second := a.runs(s); second == first || s.starts() != 2 {
		t.Errorf("process %d, then %d, of %d", first, second, s.starts())
	}
}

// Over max_concurrent_servers the one that was used longest ago makes room.
func TestTheOldestIdleServerMakesRoom(t *testing.T) {
	t.Parallel()
	var servers []*evilServer
	entries := object{}
	for _, name := range []string{"a", "b", "c"} {
		s := newEvil(t, evilScript{Name: name, Offer: []string{"whoami", "slow"}})
		servers, entries[name] = append(servers, s), s.entry
	}
	p := startPod(t, providersConfig, mcpText(t, encode(t, object{"max_concurrent_servers": 2, "mcpServers": entries})))
	caller := anonymous(t, p)
	first := caller.runs(servers[0])
	second := caller.runs(servers[1])
	busy := caller.later("a.slow", `{"ms":4000,"text":"kept"}`)
	until(t, "the call at the server", func() bool { return servers[0].calls("slow") == 1 })
	caller.runs(servers[2])
	until(t, "the end of the second's process", func() bool { return !alive(second) })
	if !alive(first) {
		t.Error("a server with a call in flight was put away")
	}
	if result := busy.wait(); result.text() != "done kept" {
		t.Errorf("%s", result.raw)
	}
}
