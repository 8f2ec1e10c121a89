package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Many calls, many sessions and a first rush of callers: a configured server is one process, started when it is used.
func TestAConfiguredServerIsOneProcessHoweverManyUseIt(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"whoami"}, StartAfter: 300 * time.Millisecond})
	p, a := startEvil(t, providersConfig, s)
	if s.starts() != 0 {
		t.Error("it ran before anybody used it")
	}
	callers := []agentClient{a}
	for range 4 {
		_, session := p.session()
		callers = append(callers, session)
	}
	if s.starts() != 0 {
		t.Error("it ran because sessions were opened")
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { callers[i%len(callers)].runs(s) })
	}
	all.Wait()
	for _, caller := range callers {
		for range 6 {
			caller.runs(s)
		}
	}
	if s.starts() != 1 || len(s.journal("initialize")) != 1 {
		t.Errorf("it was started %d times and initialized %d times", s.starts(), len(s.journal("initialize")))
	}
}

// runs wants the server to be called by its whole name and to answer by its newest process, which it gives.
func (a agentClient) runs(s *evilServer) int {
	a.t.Helper()
	name := s.script.Name + ".whoami"
	got := a.ask(name, `{}`)
	if want := fmt.Sprintf("%s %d", s.script.Name, s.pid()); got.Result.text() != want || got.Result.IsError {
		a.t.Errorf("%s: %.500s, want %q", name, got.raw, want)
	}
	return s.pid()
}

// A child that dies in a call: its callers know at once, with its last words and without its secrets; the next call starts another.
func TestACallWhoseServerDiesFailsAtOnceWithItsLastWords(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	for _, row := range []struct {
		tool, how string
	}{
		{"exit", "code 7"},
		{"kill", "signal 9"},
	} {
		t.Run(row.tool, func(t *testing.T) {
			t.Parallel()
			s := newEvil(t, evilScript{Name: "frail", Offer: []string{"exit", "kill", "read_hang", "hang", "whoami"}})
			p, a := startEvil(t, providersConfig, s)
			first := a.runs(s)
			reads, writes := a.later("read_hang", `{}`), a.later("hang", `{}`)
			until(t, "both calls at the server", func() bool { return s.calls("read_hang") == 1 && s.calls("hang") == 1 })

			got := a.ask(row.tool, fmt.Sprintf(`{"n":7,"text":"panic: out of luck, token=%s"}`, secret))
			died := time.Now()
			if got.Result.refusal() != "outcome_unknown" || !strings.Contains(got.Result.text(), row.how) || !strings.Contains(got.Result.text(), "out of luck") {
				t.Errorf("the call that killed it: %s", got.raw)
			}
			noneOf(t, "the answer", got.raw, secret)
			read, written := reads.wait(), writes.wait()
			t.Logf("the call that killed it was answered after %v, its neighbours %v later", got.took, time.Since(died))
			if took := got.took + time.Since(died); took > 2*time.Second {
				t.Errorf("calls in flight failed %v after the child's death", took)
			}
			if read.refusal() != "detached" {
				t.Errorf("the neighbour that only reads: %s", read.raw)
			}
			if written.refusal() != "outcome_unknown" {
				t.Errorf("the neighbour that writes: %s", written.raw)
			}

			wake := time.Now()
			second := a.runs(s)
			t.Logf("the next call was answered after %v", time.Since(wake))
			if first == second || s.starts() != 2 || s.calls("hang") != 1 || s.calls("read_hang") != 1 || s.calls(row.tool) != 1 {
				t.Errorf("it was started %d times; calls %v", s.starts(), s.journal("call"))
			}
			if state := p.provider("frail").State; state != "running" {
				t.Errorf("its node is %s", state)
			}
			noneOf(t, "the pod's log", p.log.String(), secret)
		})
	}
}

// A server that stops reading its stdin holds up nobody but those who call it, and not for ever.
func TestAServerThatStopsReadingFailsItsCallsInTime(t *testing.T) {
	t.Parallel()
	deaf := newEvil(t, evilScript{Name: "deaf", Offer: []string{"deaf", "read_echo"}}).set("request_timeout_secs", 2)
	good := newEvil(t, evilScript{Name: "good", Offer: []string{"whoami"}})
	_, a := startEvil(t, providersConfig, deaf, good)
	a.says("deaf", `{}`, "deaf now")
	var calls []*inFlight
	for range 6 { // far more than a pipe holds
		calls = append(calls, a.later("read_echo", fmt.Sprintf(`{"text":%q}`, strings.Repeat("e", 256<<10))))
	}
	for range 20 {
		a.runs(good)
	}
	for _, call := range calls {
		if result := call.wait(); !result.IsError {
			t.Errorf("it answered: %.300s", result.raw)
		}
	}
}

// Junk on stdout, before and amid answers, is skipped and counted; nobody sees any of it.
func TestJunkOnStdoutIsSkippedAndCounted(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "noisy", Offer: []string{"junk", "notutf8", "twice", "wrong"}, Banner: true})
	p, a := startEvil(t, providersConfig, s)
	for range 3 {
		a.says("junk", `{}`, "clean")
	}
	a.says("wrong", `{}`, "right")
	a.says("twice", `{}`, "first")
	a.says("wrong", `{}`, "right")
	if got := a.ask("notutf8", `{}`); got.Result.IsError || !strings.HasPrefix(got.Result.text(), "caf\ufffd") || !strings.HasSuffix(got.Result.text(), " end") {
		t.Errorf("bytes that are not UTF-8: %q", got.raw)
	}
	if s.starts() != 1 {
		t.Errorf("it was started %d times", s.starts())
	}
	var junk int64
	p.await("the count of the junk", func() bool {
		junk = 0
		for _, n := range p.provider("noisy").Refused {
			junk += n
		}
		return junk >= 4*8
	})
	t.Logf("counted: %v", p.provider("noisy").Refused)
	noneOf(t, "the log", p.log.String(), "\x1b[32m", "\x00")
}

// What a server writes to stderr is bounded, has no secrets in it when it is shown, and holds nothing up.
func TestAFloodOnStderrHoldsNothingUpAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-0123456789"
	s := newEvil(t, evilScript{Name: "loud", Offer: []string{"stderr", "exit"}, Stderr: "Authorization: Bearer " + secret})
	p, a := startEvil(t, providersConfig, s)
	for range 4 {
		a.says("stderr", fmt.Sprintf(`{"n":20000,"text":"api_key=%s \u001b[31mred\u0000 %s"}`, secret, strings.Repeat("z", 100)), "written")
	}
	got := a.ask("exit", `{"n":1,"text":"the last words"}`)
	if got.Result.refusal() != "outcome_unknown" || !strings.Contains(got.Result.text(), "the last words") {
		t.Errorf("%.500s", got.raw)
	}
	if len(got.raw) > 8<<10 {
		t.Errorf("the error has %d bytes of stderr", len(got.raw))
	}
	noneOf(t, "the answer", got.raw, secret, "\x1b", `\u001b`)
	log := p.log.String()
	noneOf(t, "the log", log, secret, "\x1b", "\x00")
	if len(log) > 4<<20 {
		t.Errorf("80,000 lines of stderr made %d bytes of log", len(log))
	}
}

// Whatever way a start fails, the child is gone, the reason is told, and the others answer.
func TestAServerThatCannotStartIsToldOfAndLeavesNothing(t *testing.T) {
	t.Parallel()
	lockFile := filepath.Join(t.TempDir(), "lock")
	bad := []struct {
		server *evilServer
		why    string // that has to stand in the reason
	}{
		{newEvil(t, evilScript{Name: "missing"}).set("command", "no-such-program-anywhere"), "no-such-program-anywhere"},
		{newEvil(t, evilScript{Name: "exits", Exit: 3, Stderr: "cannot open the database"}), "cannot open the database"},
		{newEvil(t, evilScript{Name: "nolist", FailIn: "tools/list", IgnoreEOF: true, IgnoreTerm: true}), "out of order"},
		{newEvil(t, evilScript{Name: "noinit", FailIn: "initialize", IgnoreEOF: true, IgnoreTerm: true}), "out of order"},
		{newEvil(t, evilScript{Name: "hanginit", HangIn: "initialize"}).set("request_timeout_secs", 1), ""},
		{newEvil(t, evilScript{Name: "hanglist", HangIn: "tools/list"}).set("request_timeout_secs", 1), ""},
		{newEvil(t, evilScript{Name: "unset"}).set("env", object{evilVariable: "1", "KEY": "${env:ACPOD_NOT_SET_ANYWHERE}"}), "ACPOD_NOT_SET_ANYWHERE"},
	}
	good := newEvil(t, evilScript{Name: "good", Lock: lockFile})
	servers := []*evilServer{good}
	for _, row := range bad {
		servers = append(servers, row.server)
	}
	p, a := startEvil(t, providersConfig, servers...)
	var seen searchAnswer
	p.await("the end of what was pending", func() bool { seen = a.search(`{}`); return len(seen.Pending) == 0 })
	if !seen.has("echo") || seen.Total != 1 {
		t.Errorf("the good one is not alone: %+v", seen)
	}
	for _, row := range bad {
		why := seen.without(row.server.script.Name)
		if why == "" || !strings.Contains(why, row.why) {
			t.Errorf("%s is told of as %q, which does not say %q", row.server.script.Name, why, row.why)
		}
		if got := a.ask(row.server.script.Name+".echo", `{}`); !got.Result.IsError || len(row.server.journal("call")) != 0 {
			t.Errorf("%s was called: %s", row.server.script.Name, got.raw)
		}
	}
	if len(bad[6].server.journal("start")) != 0 {
		t.Error("a server whose variable is not set was started")
	}
	p.await("the end of the children that failed", func() bool {
		for _, row := range bad {
			for _, start := range row.server.journal("start") {
				if alive(start.pid) {
					return false
				}
			}
		}
		return true
	})
	a.says("good.echo", `{"n":1}`, `echo {"n":1}`)
}

// alive tells whether a process is there and is no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	return !strings.HasPrefix(after, "Z")
}

// stubborn is a server as npx starts one, which ends neither with its stdin nor by TERM, and has children like itself.
func stubborn(t *testing.T, script evilScript) *evilServer {
	t.Helper()
	script.Name, script.Offer, script.IgnoreTerm, script.IgnoreEOF, script.Children = "stubborn", []string{"whoami", "hang"}, true, true, 2
	return newEvil(t, script).wrapped()
}

// A TERM to an idle pod leaves none of a server's processes after stop_grace + 2 s, however stubborn.
func TestStubbornServersAreGoneSoonAfterATermOfThePod(t *testing.T) {
	t.Parallel()
	s := stubborn(t, evilScript{})
	p, a := startEvil(t, providersConfig, s)
	a.runs(s)
	until(t, "its children", func() bool { return len(s.journal("sleeper")) == 2 })
	if n := len(p.processes()); n < 6 { // two shells, it, its two children, the guardian
		t.Fatalf("only %d processes run: the test shows nothing", n)
	}
	p.signal(syscall.SIGTERM)
	start := time.Now()
	p.gone(t, start, 3*time.Second) // a stop_grace of 1 s
	<-p.ended
	if p.err != nil {
		t.Errorf("the pod ended with %v", p.err)
	}
}

// A kill -9 of the pod leaves none after 5 s, while a call runs, too.
func TestStubbornServersAreGoneSoonAfterAKillOfThePod(t *testing.T) {
	t.Parallel()
	s := stubborn(t, evilScript{})
	p, a := startEvil(t, providersConfig, s)
	a.runs(s)
	a.later("hang", `{}`)
	until(t, "its children and a call", func() bool { return len(s.journal("sleeper")) == 2 && s.calls("hang") == 1 })
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	p.gone(t, time.Now(), 5*time.Second)
}

// gone waits until no process of the pod lives. What the contract gives is logged beside what it took, and twice that is a failure: the
// machine that runs these tests is slow.
func (p *pod) gone(t *testing.T, since time.Time, within time.Duration) {
	t.Helper()
	until(t, "the end of all processes", func() bool { return len(p.processes()) == 0 })
	took := time.Since(since)
	t.Logf("all was gone after %v; the contract gives %v", took.Round(10*time.Millisecond), within)
	if took > 2*within {
		t.Errorf("processes lived for %v; the contract gives %v", took, within)
	}
}

// The next pod with the same state ends what a killed one left before it starts a server: the old one's lock is free.
func TestAServersLockIsFreeForTheNextPod(t *testing.T) {
	t.Parallel()
	s := stubborn(t, evilScript{Lock: filepath.Join(t.TempDir(), "lock")})
	p, a := startEvil(t, with(providersConfig, "state.dir", `"../state"`), s)
	first := a.runs(s)
	guardian := 0
	p.await("the guardian", func() bool { guardian = p.guardian(); return guardian != 0 })
	p.signal(syscall.SIGSTOP) // so that it cannot replace its guardian
	if err := syscall.Kill(guardian, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	_, a = startEvil(t, with(providersConfig, "state.dir", `"`+filepath.Join(p.home, "state")+`"`), s)
	if second := a.runs(s); second == first || alive(first) {
		t.Errorf("the old one, %d, lives beside %d", first, second)
	}
}

// After its death a server with a lock is started again only when every process of its former group is gone.
func TestTheOldProcessIsGoneBeforeTheNextStarts(t *testing.T) {
	t.Parallel()
	s := stubborn(t, evilScript{})
	p, a := startEvil(t, providersConfig, s)
	a.runs(s)
	until(t, "its children", func() bool { return len(s.journal("sleeper")) == 2 })
	old := s.journal("sleeper")
	s.kill() // its shells end a moment later, its children hold its pipes
	until(t, "another process that answers", func() bool { a.ask("stubborn.whoami", `{}`); return s.starts() == 2 })
	a.runs(s)
	for _, sleeper := range old {
		if alive(sleeper.pid) {
			t.Errorf("%d of the former group lives beside the new one", sleeper.pid)
		}
	}
	if n := len(p.processes()); n > 6 {
		t.Errorf("%d processes of a pod with one server", n)
	}
}

// A child has an environment of its own, and no more than that.
func TestAServersEnvironmentIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"whoami"}}).set("env", object{evilVariable: "1", "GIVEN": "${env:ACPOD_TEST_GIVEN:-by default}", "USER": "explicit"})
	p := startPod(t, providersConfig, mcpJSON(t, s), func(c *exec.Cmd) { c.Env = append(c.Env, "ACPOD_TEST_SECRET=leaks", "TERM=dumb") })
	a := anonymous(t, p)
	a.runs(s)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.pid()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		got[name] = value
	}
	want := map[string]string{"HOME": p.home, "PATH": os.Getenv("PATH"), "TERM": "dumb", "USER": "explicit", "GIVEN": "by default", evilVariable: "1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("its environment is %v, want %v", got, want)
	}
}
