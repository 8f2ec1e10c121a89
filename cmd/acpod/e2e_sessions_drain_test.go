package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// While a pod drains a turn may end, and its answer is delivered before the socket is closed; nothing new begins.
func TestADrainDeliversTheAnswerOfATurnThatEnds(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "pod.drain_timeout", `"10m"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	session := e.open(server)
	other := e.openMore()
	id := e.sendPrompt(session, "/sleep 2s\n/call katashiro.click {}\nlast words")
	p.turn(session, "running", true)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	e.await("the word that the pod drains", func() bool {
		for _, f := range e.frames {
			if f.Method == "_acpod/draining" {
				return true
			}
		}
		return false
	})
	refused := map[string]string{
		"a prompt":                     e.sendPrompt(other, "new"),
		"a prompt while its turn runs": e.sendPrompt(session, "new"),
		"a session":                    e.send("session/new", object{"cwd": "/", "mcpServers": []any{}}),
	}
	for what, request := range refused {
		f := e.answer(request)
		if f.Error == nil || f.Error.Code != -32000 || f.Error.Data["scope"] != "draining" {
			t.Errorf("%s: %s", what, f.raw)
		}
	}
	answer := e.answer(id)
	e.mu.Lock()
	heard := e.heard(session)
	e.mu.Unlock()
	if stopReason(answer) != "end_turn" || heard != "katashiro.click {}\necho: last words\n" {
		t.Errorf("the turn said %q and was answered %s", heard, answer.raw)
	}
	if code := e.closeCode(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
	if ended := server.ended(); len(ended) != 1 {
		t.Errorf("%d disconnects came before the close", len(ended))
	}
	awaitEnd(t, p)
}

// An agent that ignores everything does not keep the pod: its turn is cut and answered, its group is killed, the exit is 0.
func TestADrainEndsAnAgentThatIgnoresIt(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "pod.drain_timeout", `"500ms"`, "agent.stop_grace", `"300ms"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	session := e.open(server)
	e.prompt(session, "/fork")
	id := e.sendPrompt(session, "before\n/hang")
	e.await("its last word", func() bool { return strings.HasSuffix(e.heard(session), "echo: before\n") })
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if f := e.answer(id); f.Error == nil || f.Error.Code != -32000 || f.Error.Data["scope"] != "draining" { // as the session's last_turn has it
		t.Errorf("a turn that was cut was answered %s", f.raw)
	}
	if code := e.closeCode(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
	if ended := server.ended(); len(ended) != 1 {
		t.Errorf("%d disconnects came before the close", len(ended))
	}
	awaitEnd(t, p)
	if left := p.processes(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

// awaitEnd wants the pod to end by itself with exit status 0.
func awaitEnd(t *testing.T, p *pod) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the pod did not end:\n%s", tail(p.log.String(), 12000))
	}
	if p.err != nil {
		t.Errorf("the pod ended with %v", p.err)
	}
}

// A pod that is killed while agents start, run, hang and end leaves none of them.
func TestAPodKilledAtAnyMomentLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		to   func(p *pod, e *extension)
	}{
		{"while agents start", func(p *pod, e *extension) {
			for range 4 {
				e.send("session/new", object{"cwd": "/", "mcpServers": []any{}})
			}
			p.await("a process", func() bool { return len(p.processes()) > 1 })
		}},
		{"while agents run, hang and have left children", func(p *pod, e *extension) {
			for _, text := range []string{"/fork\n/hang", "/fork\n/sleep 1h", "/fork"} {
				session := e.openMore()
				e.sendPrompt(session, text)
			}
			p.await("three agents, three children, the guardian", func() bool { return len(p.processes()) >= 7 })
		}},
		{"while agents are ended", func(p *pod, e *extension) {
			session := e.openMore()
			e.sendPrompt(session, "/fork\n/hang")
			p.await("the child", func() bool { return len(p.processes()) >= 3 })
			e.call("session/close", object{"sessionId": session})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, baseConfig)
			e := dial(t, p)
			e.hello()
			row.to(p, e)
			if err := p.command.Process.Signal(os.Kill); err != nil {
				t.Fatal(err)
			}
			<-p.ended
			for end := time.Now().Add(patience); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("processes %v outlived the pod", p.processes())
				}
			}
		})
	}
}
