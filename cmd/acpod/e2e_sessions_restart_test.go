package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// after is a setting that gives a pod the folders of another that has ended.
func after(p *pod) setting {
	return func(command *exec.Cmd) {
		command.Dir = p.command.Dir
		command.Env = append([]string{"HOME=" + p.home}, command.Env[1:]...)
	}
}

// kill ends the pod without a chance to write anything.
func (p *pod) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.awaitEnd()
}

// opens sends a request that opens a session by another and gives what was streamed of that session before its answer.
func (e *extension) opens(method, session string) (streamed string, answer frame) {
	e.t.Helper()
	e.mu.Lock()
	from := len(e.frames)
	e.mu.Unlock()
	id := e.send(method, object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
	answer = e.answer(id)
	return e.streamed(session, from, id), answer
}

// A pod is killed: what it had said is true of the next one. Its clients find their sessions, and nobody else's; each conversation is brought
// back by its agent, shown on demand, copied and deleted; what the agent has forgotten is said to be fresh.
func TestSessionsOutliveThePod(t *testing.T) {
	t.Parallel()
	mine, theirs := object{"acpod.dev/client": "the secret of one client"}, object{"acpod.dev/client": "the secret of another"}
	first := startPod(t, with(baseConfig, "agent.stop_grace", `"300ms"`))
	one, two := dial(t, first), dial(t, first)
	one.hello(mine)
	two.hello(theirs)
	kept, lost, closed := one.openMore(newServer("katashiro", genA, "katashiro.click")), one.openMore(), one.openMore()
	foreign := two.openMore()
	one.says(kept, "remember", "echo: remember\n")
	one.says(lost, "forget", "echo: forget\n")
	one.call("session/close", object{"sessionId": closed})

	// An agent that dies takes nothing along.
	if _, answer := one.prompt(kept, "/crash"); answer.Error == nil {
		t.Errorf("the turn of a crash: %s", answer.raw)
	}
	one.says(kept, "still there", "echo: still there\n")
	told := one.received("_acpod/agent") // once for each agent: the prompt that was fatal to one may have been given to a second
	if len(told) == 0 || slices.ContainsFunc(told, func(f frame) bool { return !strings.Contains(f.raw, `"restored"`) }) {
		t.Errorf("told %+v", told)
	}

	first.kill()
	records := filepath.Join(first.home, ".local", "state", "acpod", "sessions")
	found, err := filepath.Glob(filepath.Join(records, "*.json"))
	if err != nil || len(found) != 3 {
		t.Errorf("%d records, %v", len(found), err)
	}
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(path, strings.TrimPrefix(kept, "sess_")) {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}

	p := startPod(t, with(baseConfig, "agent.stop_grace", `"300ms"`), after(first))
	if tree := p.tree(); tree.Pod.Sessions != 0 || tree.Pod.Agents != 0 {
		t.Errorf("a record opened something by itself: %+v", *tree.Pod)
	}
	e, stranger := dial(t, p), dial(t, p)
	e.hello(mine)
	stranger.hello(theirs)
	if ids := e.sessions(); !slices.Equal(ids, []string{lost, kept}) {
		t.Errorf("its client lists %v, not %v", ids, []string{lost, kept})
	}
	if ids := stranger.sessions(); !slices.Equal(ids, []string{foreign}) {
		t.Errorf("another client lists %v", ids)
	}
	for _, method := range []string{"session/resume", "session/load", "session/fork", "session/delete"} {
		stranger.refused(-32602, method, object{"sessionId": kept, "cwd": "/", "mcpServers": []any{}})
	}
	e.refused(-32602, "session/resume", object{"sessionId": closed, "cwd": "/", "mcpServers": []any{}})

	if got := e.resume(kept); got.Agent != "restored" || got.State != "idle" || got.LastTurn == nil { // the end of a turn is written after it was told: the last one may be missing
		t.Errorf("resumed: %+v", got)
	}
	if refusal := p.callerOf(kept).execute("katashiro.click", `{}`).refusal(); refusal != "detached" {
		t.Errorf("a tool of a server that is not back: %q", refusal)
	}
	streamed, answer := e.opens("session/load", kept)
	if streamed != "echo: remember\necho: still there\n" || answer.Error != nil {
		t.Errorf("loaded: %q, %s", streamed, answer.raw)
	}
	streamed, answer = e.opens("session/fork", kept)
	var copied struct{ SessionID string }
	if err := json.Unmarshal(answer.Result, &copied); err != nil || streamed != "" || copied.SessionID == kept {
		t.Fatalf("forked: %q, %s", streamed, answer.raw)
	}
	e.says(copied.SessionID, "of my own", "echo: of my own\n")
	if streamed, _ = e.opens("session/load", copied.SessionID); streamed != "echo: remember\necho: still there\necho: of my own\n" {
		t.Errorf("the copy has %q", streamed)
	}
	if streamed, _ = e.opens("session/load", kept); strings.Contains(streamed, "of my own") {
		t.Errorf("the original has %q", streamed)
	}

	for _, session := range []string{copied.SessionID, lost} { // one that lives, and one that sleeps
		e.call("session/delete", object{"sessionId": session})
		e.refused(-32602, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
	}
	if ids := e.sessions(); !slices.Equal(ids, []string{kept}) {
		t.Errorf("after the deletions its client lists %v", ids)
	}
	transcripts := filepath.Join(first.home, ".local", "state", "acpod-demo")
	left, err := os.ReadDir(transcripts)
	if err != nil || len(left) != 3 { // of kept, of foreign, and of the one that was closed
		t.Errorf("%d transcripts are left, %v", len(left), err)
	}

	e.hangUp()
	stranger.hangUp()
	p.stop()
	if err := os.RemoveAll(transcripts); err != nil {
		t.Fatal(err)
	}
	last := startPod(t, with(baseConfig, "agent.stop_grace", `"300ms"`), after(first))
	e = dial(t, last)
	e.hello(mine)
	if got := e.resume(kept); got.Agent != "fresh" {
		t.Errorf("resumed by an agent that has forgotten: %+v", got)
	}
	e.says(kept, "anew", "echo: anew\n")
	e.hangUp()
}
