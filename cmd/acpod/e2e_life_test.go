package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheTreeShowsAllOfItAndComesToRest(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	session := e.open(server)
	e.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
	root := p.tree()
	kinds := map[string]int{}
	root.each(func(n node) { kinds[n.Kind]++ })
	for _, kind := range []string{"connection", "session", "desk", "agent", "tunnel"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s is shown; kinds: %v", kind, kinds)
		}
	}
	tag := regexp.MustCompile(`/sess-[0-9a-f]{8}$`)
	found := false
	root.each(func(n node) {
		found = found || tag.MatchString(n.Path)
		if strings.Contains(n.Path, session[5:]) {
			t.Errorf("%s holds a raw session id", n.Path)
		}
	})
	if !found || root.Pod.TokensLive != 1 || root.Pod.Agents != 1 || root.Pod.Connections != 1 || root.Pod.Sessions != 1 {
		t.Errorf("pod: %+v", *root.Pod)
	}
	owed := map[string]bool{}
	root.each(func(n node) {
		for _, o := range n.Owes {
			owed[strings.Fields(o.Name)[0]] = true
		}
	})
	if len(owed) < 3 { // a token, a process group, an MCP connection
		t.Errorf("owed: %v", owed)
	}
	metrics := string(p.get("http://" + p.Debug + "/metrics"))
	if !strings.Contains(metrics, "acpod_") || strings.Contains(metrics, session) {
		t.Errorf("metrics:\n%.2000s", metrics)
	}
	e.call("session/close", object{"sessionId": session})
	e.hangUp()
	p.rest()
	if left := p.processes(); len(left) > 1 { // the guardian stays
		t.Errorf("processes %v are left", left)
	}
}

func TestSessionsWhoseClientsLeftComeToRestByThemselves(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.session_ttl", `"1s"`))
	for range 3 {
		e := dial(t, p)
		e.says(e.open(newServer("katashiro", genA, "katashiro.click")), "/call katashiro.click {}", "katashiro.click {}\n")
		e.hangUp()
	}
	p.rest()
	if left := p.processes(); len(left) > 1 {
		t.Errorf("processes %v are left", left)
	}
}

func TestAKilledPodLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	session := e.open()
	e.prompt(session, "/fork")
	e.sendPrompt(session, "/hang")
	if len(p.processes()) < 3 { // guardian, agent, grandchild
		t.Fatalf("only %v run", p.processes())
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	// The contract gives 5 s; a loaded machine gets what patience allows, and the test says what is left.
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := p.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("processes %v outlived the pod", left)
		}
	}
}

func TestAStoppedPodLeavesNoProcessAndTellsItsClients(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "pod.drain_timeout", `"1s"`, "agent.stop_grace", `"300ms"`))
	e := dial(t, p)
	session := e.open(newServer("katashiro", genA, "katashiro.click"))
	e.prompt(session, "/fork")
	e.sendPrompt(session, "/sleep 1h")
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	e.await("the word that the pod drains", func() bool {
		for _, f := range e.frames {
			if f.Method == "_acpod/draining" && strings.Contains(f.raw, `"deadline_ms":`) {
				return true
			}
		}
		return false
	})
	other := e.newID()
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, other))
	if code := e.closeCode(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
	<-p.ended
	if p.err != nil {
		t.Errorf("ended with %v", p.err)
	}
	if left := p.processes(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(filepath.Join(p.home, "ready.json")); err == nil {
		t.Error("the ready file is left")
	}
}

func (e *extension) newID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	return fmt.Sprint(e.next)
}

// A client that lost its socket finds its session again, with what was said meanwhile, once and in order.
func TestALostClientFindsItsSessionAgain(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	secret := object{"acpod.dev/client": "a secret made by this client"}
	first := dial(t, p)
	first.hello(secret)
	session := first.openMore(newServer("katashiro", genA, "katashiro.click"))
	first.sendPrompt(session, "one\n/sleep 1s\ntwo\nthree")
	first.await("the first word", func() bool { return first.heard(session) == "echo: one\n" })
	first.hangUp()

	thief := dial(t, p)
	thief.hello(object{"acpod.dev/client": "a secret of somebody else"})
	thief.refused(-32602, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
	if ids := thief.sessions(); len(ids) != 0 {
		t.Errorf("a stranger lists %v", ids)
	}

	second := dial(t, p)
	second.hello(secret)
	server := newServer("katashiro", genA, "katashiro.click")
	result := second.call("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": second.declare(server)})
	var resumed struct {
		Meta struct {
			Session struct {
				State, Agent  string
				MissedUpdates int             `json:"missed_updates"`
				MissedBytes   int             `json:"missed_bytes"`
				LastTurn      json.RawMessage `json:"last_turn"`
			} `json:"acpod.dev/session"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &resumed); err != nil || resumed.Meta.Session.Agent != "alive" || resumed.Meta.Session.MissedUpdates != 0 {
		t.Errorf("resumed: %v %s", err, result)
	}
	second.await("the rest and the end of the turn", func() bool {
		for _, f := range second.frames {
			if f.Method == "_acpod/turn_ended" && strings.Contains(f.raw, "end_turn") {
				return true
			}
		}
		return strings.Contains(string(resumed.Meta.Session.LastTurn), "end_turn") && second.heard(session) == "echo: two\necho: three\n"
	})
	second.mu.Lock()
	heard := second.heard(session)
	second.mu.Unlock()
	if heard != "echo: two\necho: three\n" {
		t.Errorf("after the resume came %q", heard)
	}
	second.ready(session, "katashiro")
	second.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
}

// heard joins the agent's text so far; locked by the caller.
func (e *extension) heard(session string) string {
	var text strings.Builder
	for _, f := range e.frames {
		text.WriteString(chunk(f, session))
	}
	return text.String()
}

// What peers choose stays one line and harmless, wherever it is shown.
func TestHostileTextStaysTextEverywhere(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	hostile := "<script>alert(1)</script>\n\x1b[31mred\u202e\x00 level=ERROR msg=forged"
	e.call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": hostile, "version": hostile, "title": hostile}})
	server := newServer("katashiro", genA, "katashiro.click")
	server.tools[0]["title"], server.tools[0]["description"] = hostile, hostile
	server.tools = append(server.tools, object{"name": hostile, "inputSchema": object{}})
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) {
		return nil, &rpcError{Code: -32603, Message: hostile}, false
	}
	bad := newServer("bad\nname", genA, "x")
	session := e.newSession(server, bad)
	e.ready(session, "katashiro")
	e.prompt(session, "/call katashiro.click {}\n/search\n/stderr 100")
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":%q}`, "evil\nmethod"))
	e.answer("9")
	tree := string(p.get("http://" + p.Debug + "/debug/tree"))
	for where, text := range map[string]string{"log": p.log.String(), "tree": tree, "metrics": string(p.get("http://" + p.Debug + "/metrics"))} {
		if strings.ContainsAny(text, "\x1b\x00\u202e") {
			t.Errorf("the %s holds control characters of a peer", where)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "level=ERROR msg=forged") || strings.HasPrefix(line, "\x1b") {
				t.Errorf("the %s was broken into a line of its own: %q", where, line)
			}
		}
	}
	if strings.Contains(p.log.String(), session) || strings.Contains(tree, session) {
		t.Error("a raw session id stands in the log or the tree")
	}
	response, err := http.Get("http://" + p.Debug + "/debug/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if policy := response.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the debug page's policy is %q", policy)
	}
}
