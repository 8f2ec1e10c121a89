package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ends waits for the end of a pod and gives its exit code.
func (p *pod) ends() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Signal(syscall.SIGQUIT)
		<-p.ended
		p.t.Fatalf("the pod did not end:\n%s", tail(p.log.String(), 20000))
	}
	return p.command.ProcessState.ExitCode()
}

// leavesNothing wants every process of the pod gone, and its ready file.
func (p *pod) leavesNothing() {
	p.t.Helper()
	for end := time.Now().Add(patience); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("processes %v outlived the pod", p.processes())
		}
	}
	if _, err := os.Stat(filepath.Join(p.home, "ready.json")); err == nil {
		p.t.Error("the ready file is left")
	}
}

func (p *pod) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// Whenever the signal comes, the pod ends with 0 and leaves nothing: turns that are cut and processes that have to be killed are no failure.
func TestASignalAtAnyMomentEndsThePodWithZero(t *testing.T) {
	t.Parallel()
	quick := with(baseConfig, "pod.drain_timeout", `"500ms"`, "agent.stop_grace", `"300ms"`)
	for name, row := range map[string]struct {
		config string
		before func(*testing.T, *pod)
	}{
		"idle":         {quick, func(*testing.T, *pod) {}},
		"with clients": {quick, func(t *testing.T, p *pod) { dial(t, p); dial(t, p).hello() }},
		"during a turn": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			session := e.open(newServer("katashiro", genA, "katashiro.click"))
			e.prompt(session, "/fork")
			e.sendPrompt(session, "one\n/sleep 1h")
			e.await("the turn", func() bool { return e.heard(session) != "" })
		}},
		"during a flood": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			session := e.open()
			e.sendPrompt(session, "/flood 100000")
			e.await("the flood", func() bool { return e.heard(session) != "" })
		}},
		"during a tool call that is never answered": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }
			e.sendPrompt(e.open(server), "/call katashiro.click {}")
			e.await("the call", func() bool { return server.callCount() == 1 })
		}},
		"with an open question": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			e.other = func(frame) (any, *rpcError, bool) { return nil, nil, false }
			session := e.open()
			e.sendPrompt(session, "/ask")
			e.await("the question", func() bool {
				return len(e.frames) > 0 && strings.Contains(e.lastFrames(5), "session/request_permission")
			})
		}},
		"with an agent that ignores TERM": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			session := e.open()
			e.prompt(session, "/fork")
			e.sendPrompt(session, "/stderr 10\n/hang")
			p.turn(session, "running", true)
		}},
		"during a session/new that hangs": {scripted(t, quick, "is silent at session/new", ""), func(t *testing.T, p *pod) {
			e := dial(t, p)
			e.hello()
			e.send("session/new", object{"cwd": "/", "mcpServers": []any{}})
			p.await("the agent", func() bool { _, ok := p.tree().find("/agent"); return ok })
		}},
		"while the agent is learned, which hangs": {scripted(t, quick, "is silent", ""), func(*testing.T, *pod) {}},
		"while an agent that heeds nothing is learned": {with(quick, "agent.stop_grace", `"3s"`, "agent.command", `["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]`), func(_ *testing.T, p *pod) {
			p.await("the agent", func() bool { return len(p.processes()) > 1 })
		}},
		"with a server that is connecting": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			server.handshake = func(string, json.RawMessage) (any, *rpcError, bool, bool) { return nil, nil, true, true }
			e.hello()
			e.newSession(server)
		}},
		"with a session whose client left": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			e.open()
			e.hangUp()
		}},
		"with a client that never reads": {quick, func(t *testing.T, p *pod) {
			e := dial(t, p)
			session := e.open()
			e.mu.Lock() // whoever delivers frames waits from now on
			t.Cleanup(e.mu.Unlock)
			e.next++
			e.write(`{"jsonrpc":"2.0","id":99,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"/flood 50000"}]}}`)
			p.turn(session, "running", true)
		}},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			if sig == syscall.SIGINT && name != "idle" && name != "during a turn" {
				continue
			}
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				p := startPod(t, row.config)
				row.before(t, p)
				p.signal(sig)
				if code := p.ends(); code != 0 {
					t.Errorf("exit code %d:\n%s", code, tail(p.log.String(), 8000))
				}
				if !strings.Contains(p.log.String(), "msg=stopped") || strings.Contains(p.log.String(), "level=ERROR") {
					t.Errorf("the log says\n%s", tail(p.log.String(), 8000))
				}
				p.leavesNothing()
			})
		}
	}
}

// The end of its terminal drains a pod like any other end.
func TestTheEndOfItsTerminalDrainsAPod(t *testing.T) {
	t.Parallel()
	heard := make(chan os.Signal, 1) // so that the pod does not begin with it ignored, however these tests were started
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	p := startPod(t, baseConfig)
	p.signal(syscall.SIGHUP)
	if code := p.ends(); code != 0 || !strings.Contains(p.log.String(), "msg=stopped") {
		t.Errorf("exit code %d:\n%s", code, tail(p.log.String(), 8000))
	}
	p.leavesNothing()
}

// Before it is ready a pod can be told to stop as well. The moments are those that a machine makes: right after the start and a little later.
func TestASignalDuringTheStartEndsThePodWithZero(t *testing.T) {
	t.Parallel()
	for pause := time.Duration(0); pause < 60*time.Millisecond; pause += 5 * time.Millisecond {
		p := launch(t, baseConfig)
		time.Sleep(pause) // it is about the moment
		p.signal(syscall.SIGTERM)
		<-p.ended
		state := p.command.ProcessState.Sys().(syscall.WaitStatus)
		// A process that has not come to its first line yet is ended by the system.
		if early := state.Signaled() && state.Signal() == syscall.SIGTERM && p.log.String() == ""; !early && p.command.ProcessState.ExitCode() != 0 {
			t.Errorf("after %v: %v\n%s", pause, p.command.ProcessState, p.log)
		}
		p.leavesNothing()
	}
}

// While it drains: a new prompt and a new session are refused with the contract's word, and a turn that ends in time is not cut.
func TestADrainLetsTurnsEndAndTakesNothingNew(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "pod.drain_timeout", `"50s"`))
	e := dial(t, p)
	e.other = func(frame) (any, *rpcError, bool) { return nil, nil, false } // the question waits for us
	session := e.open()
	idle := e.openMore()
	turn := e.sendPrompt(session, "/ask")
	var question frame
	e.await("the question", func() bool {
		for _, f := range e.frames {
			if f.Method == "session/request_permission" {
				question = f
			}
		}
		return question.ID != nil
	})
	p.signal(syscall.SIGTERM)
	e.await("the word", func() bool { return strings.Contains(e.lastFrames(20), `"_acpod/draining"`) })
	for _, f := range e.received("_acpod/draining") {
		var params struct {
			DeadlineMS *float64 `json:"deadline_ms"`
		}
		if err := json.Unmarshal(f.Params, &params); err != nil || params.DeadlineMS == nil || *params.DeadlineMS <= 0 || *params.DeadlineMS > 50000 {
			t.Errorf("%s", f.raw)
		}
	}
	late, opened := e.sendPrompt(idle, "hello"), e.send("session/new", object{"cwd": "/", "mcpServers": []any{}})
	for method, f := range map[string]frame{"session/prompt": e.answer(late), "session/new": e.answer(opened)} {
		if f.Error == nil || f.Error.Code != -32000 || f.Error.Data["scope"] != "draining" {
			t.Errorf("%s while draining: %s", method, f.raw)
		}
	}
	e.write(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`)
	if f := e.answer(turn); stopReason(f) != "end_turn" {
		t.Errorf("the turn was cut: %s", f.raw)
	}
	if code := e.closeCode(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	p.leavesNothing()
}
