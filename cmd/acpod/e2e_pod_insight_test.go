package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// shape checks one node of /debug/tree, as it stands in the JSON, against the contract: every name, every type.
func shape(t *testing.T, n map[string]any, path string) {
	t.Helper()
	number := func(m map[string]any, at string, names ...string) {
		for _, name := range names {
			if v, ok := m[name].(float64); !ok || v < 0 || v != float64(int64(v)) {
				t.Errorf("%s: %s%s is %v", path, at, name, m[name])
			}
		}
	}
	known := []string{"account", "attrs", "children", "doing", "gen", "hidden", "kind", "owes", "path", "pod", "queue", "refused", "restarts", "since_ms", "state"}
	for name := range n {
		if !slices.Contains(known, name) {
			t.Errorf("%s: member %s", path, name)
		}
	}
	number(n, "", "gen", "since_ms", "restarts")
	if n["path"] != path || n["kind"] == "" || !slices.Contains([]any{"starting", "running", "stopping", "abandoned"}, n["state"]) {
		t.Errorf("%s: path %v, kind %v, state %v", path, n["path"], n["kind"], n["state"])
	}
	queue, ok := n["queue"].(map[string]any)
	if !ok || len(queue) != 3 {
		t.Errorf("%s: queue %v", path, n["queue"])
	}
	number(queue, "queue.", "n", "bytes", "oldest_ms")
	account, ok := n["account"].(map[string]any)
	if !ok {
		t.Errorf("%s: account %v", path, n["account"])
	}
	number(account, "account.", "used", "limit")
	if doing, there := n["doing"]; there {
		d, ok := doing.(map[string]any)
		if kind, _ := d["type"].(string); !ok || len(d) != 2 || kind == "" {
			t.Errorf("%s: doing %v", path, doing)
		}
		number(d, "doing.", "for_ms")
	}
	owes, ok := n["owes"].([]any)
	if !ok {
		t.Errorf("%s: owes %v", path, n["owes"])
	}
	for _, one := range owes {
		o, ok := one.(map[string]any)
		if name, _ := o["name"].(string); !ok || len(o) != 2 || name == "" {
			t.Errorf("%s: owes %v", path, one)
		}
		number(o, "owes.", "for_ms")
	}
	refused, ok := n["refused"].(map[string]any)
	if !ok {
		t.Errorf("%s: refused %v", path, n["refused"])
	}
	number(refused, "refused.", slices.Collect(maps.Keys(refused))...)
	if attrs, there := n["attrs"]; there {
		a, ok := attrs.(map[string]any)
		if !ok || len(a) == 0 {
			t.Errorf("%s: attrs %v", path, attrs)
		}
		for name, v := range a {
			if text, ok := v.(string); ok && (utf8.RuneCountInString(text) > 64 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })) {
				t.Errorf("%s: attribute %s is %q", path, name, text)
			}
		}
	}
	children, ok := n["children"].([]any)
	if !ok {
		t.Errorf("%s: children %v", path, n["children"])
	}
	for _, one := range children {
		child, ok := one.(map[string]any)
		name, _ := child["path"].(string)
		if !ok || !strings.HasPrefix(name, path+"/") || strings.Contains(name[len(path)+1:], "/") {
			t.Errorf("%s has the child %q", path, name)
			continue
		}
		shape(t, child, name)
	}
}

func (p *pod) json(path string) map[string]any {
	p.t.Helper()
	var v map[string]any
	if err := json.Unmarshal(p.get("http://"+p.Debug+path), &v); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	return v
}

func TestTheTreeHasItsDocumentedShapeAndNames(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	long := "\x1b[31m" + strings.Repeat("é", 100) + "\n<b>"
	e.call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": long, "version": long}})
	session := e.openMore(newServer("katashiro", genA, "katashiro.click"), newServer("other", genB, "x"))
	e.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
	held := newServer("katashiro", genA, "katashiro.click")
	held.run = func(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }
	e.sendPrompt(e.openMore(held), "/call katashiro.click {}")
	e.await("the call", func() bool { return held.callCount() == 1 })

	root := p.json("/debug/tree")
	shape(t, root, "pod")
	figures, _ := root["pod"].(map[string]any)
	want := []string{"agents", "agents_processes", "agents_rss_bytes", "bytes_limit", "bytes_used", "calls_in_flight", "connections", "open_fds", "orphans", "providers", "providers_processes", "providers_ready", "providers_rss_bytes", "schemas_bytes", "schemas_kept", "sessions", "tokens_live", "worst_case_bytes"}
	if got := slices.Sorted(maps.Keys(figures)); !slices.Equal(got, want) {
		t.Errorf("pod: %v, want %v", got, want)
	}
	for name, n := range map[string]float64{"agents": 2, "connections": 1, "sessions": 2, "tokens_live": 2, "calls_in_flight": 1, "bytes_limit": 1 << 30} {
		if figures[name] != n {
			t.Errorf("pod.%s is %v, want %v", name, figures[name], n)
		}
	}
	var paths []string
	p.tree().each(func(n node) { paths = append(paths, n.Path) })
	tree := strings.Join(paths, "\n")
	for _, pattern := range []string{`pod/gateway/conn-[1-9]\d*`, `pod/sessions/` + treeName(session), `pod/sessions/` + treeName(session) + `/desk`, `pod/sessions/` + treeName(session) + `/agent`,
		`pod/sessions/` + treeName(session) + `/tunnel-[1-9]\d*`, `pod/facade`, `pod/audit`, `pod/debug`} {
		if !regexp.MustCompile(`(?m)^` + pattern + `$`).MatchString(tree) {
			t.Errorf("no node %s in\n%s", pattern, tree)
		}
	}

	// Narrowed by depth, by kind, by path.
	shallow := p.json("/debug/tree?depth=1")
	shape(t, shallow, "pod")
	for _, one := range shallow["children"].([]any) {
		if len(one.(map[string]any)["children"].([]any)) != 0 {
			t.Errorf("depth=1 shows what is below %v", one)
		}
	}
	if len(p.json("/debug/tree?depth=0")["children"].([]any)) != 0 {
		t.Error("depth=0 shows children")
	}
	kinds := map[string]int{}
	var count func(n map[string]any)
	count = func(n map[string]any) {
		children := n["children"].([]any)
		if len(children) == 0 {
			kinds[n["kind"].(string)]++
		}
		for _, child := range children {
			count(child.(map[string]any))
		}
	}
	count(p.json("/debug/tree?kind=tunnel"))
	if len(kinds) != 1 || kinds["tunnel"] != 3 {
		t.Errorf("kind=tunnel shows the leaves %v", kinds)
	}
	one := p.json("/debug/tree/pod/sessions/" + treeName(session))
	shape(t, one, "pod/sessions/"+treeName(session))
	if _, there := one["pod"]; there {
		t.Error("a node that is not the root has the pod's figures")
	}
	if status, header, body := fetch(t, "GET", "http://"+p.Debug+"/debug/tree/pod/gateway/conn-99", nil); status != 404 || !json.Valid([]byte(body)) || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		t.Errorf("a path of nobody: %d %s", status, body)
	}
}

// The stream tells starts and ends as they happen, as server-sent events with ids to come back with.
func TestTheEventsOfThePodAreAStream(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	listen := func(after string) *bufio.Scanner {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		request, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.Debug+"/debug/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if after != "" {
			request.Header.Set("Last-Event-ID", after)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "text/event-stream" {
			t.Fatalf("%d %q", response.StatusCode, kind)
		}
		return bufio.NewScanner(response.Body)
	}
	// until reads events up to the one of that name about that path, and gives its id and data.
	until := func(in *bufio.Scanner, name, path string) (id, data string) {
		t.Helper()
		event := ""
		for in.Scan() {
			line := in.Text()
			switch {
			case strings.HasPrefix(line, "id: "):
				id = line[4:]
			case strings.HasPrefix(line, "event: "):
				event = line[7:]
			case strings.HasPrefix(line, "data: "):
				data = line[6:]
			case line == "" && data != "":
				var e struct{ Path string }
				if err := json.Unmarshal([]byte(data), &e); err != nil || !strings.Contains(data, `"id":`+id+`,`) {
					t.Errorf("event %s: %v in %s", id, err, data)
				}
				if event == name && e.Path == path {
					return id, data
				}
				event, data = "", ""
			}
		}
		t.Fatalf("no %s of %s: %v", name, path, in.Err())
		return "", ""
	}
	stream := listen("")
	until(stream, "start", "pod/public")
	e := dial(t, p)
	session := e.open()
	at := "pod/sessions/" + treeName(session)
	started, data := until(stream, "start", at)
	if !strings.Contains(data, `"kind":"session"`) {
		t.Error(data)
	}
	e.call("session/close", object{"sessionId": session})
	if _, data = until(stream, "exit", at); !strings.Contains(data, `"crashed":false`) || !strings.Contains(data, `"cause":"`) {
		t.Error(data)
	}
	again := listen(started) // who comes back gets what it missed, and nothing twice
	id, _ := until(again, "exit", at)
	if len(id) < len(started) || len(id) == len(started) && id <= started {
		t.Errorf("event %s came after %s", id, started)
	}
	for n := range 40 { // streams are few: one more is refused, not served slowly
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.Debug+"/debug/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "" {
			return
		}
		if response.StatusCode != 200 || n == 39 {
			t.Fatalf("stream %d: %d", n, response.StatusCode)
		}
	}
}

// Nothing that is a secret, a payload, a header or a session's id stands where an operator looks, at the lowest level of the log.
func TestNothingSecretIsShownAnywhere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "facade.key")
	if err := os.WriteFile(file, []byte("canary-facade-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := with(baseConfig, "acp.auth_key", `"canary-acp-key"`, "acp.trace", "true", "debug.auth_key", `"${env:CANARY_DEBUG}"`,
		"mcp.auth_key_file", `"`+file+`"`, "mcp.anonymous", "false", "agent.env", `{CANARY = "canary-env-value"}`, "agent.forward_meta", `["x"]`, "agent.session_ttl", `"1s"`) +
		"[[acp.keys]]\nname = \"laptop\"\nkey = \"canary-laptop-key\"\n"
	p := startPod(t, config, arguments("--log-level", "debug"), func(c *exec.Cmd) {
		c.Env = append(c.Env, "CANARY_DEBUG=canary-debug-key", "CANARY_OTHER=canary-other-env")
	})
	bearer := http.Header{"Authorization": {"Bearer canary-acp-key"}, "X-Canary": {"canary-header"}, "Cookie": {"c=canary-cookie"}, "User-Agent": {"canary-agent"}}
	e := dial(t, p, dialling{header: bearer, url: "ws://" + p.Public + "/acp?token=canary-query"})
	other := dial(t, p, dialling{protocols: []string{"acp.v1", "openab.bearer.canary-laptop-key"}})
	other.hello()
	wrong := dial(t, p, dialling{protocols: []string{"acp.v1", "openab.bearer.canary-wrong-key"}})
	wrong.closeCode()
	_, _, _ = tryDial(t, p, dialling{header: http.Header{"Authorization": {"Bearer canary-wrong-bearer"}}})
	e.hello(object{"acpod.dev/client": "canary-client-secret-of-16", "x": "canary-meta"})
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(_ string, arguments json.RawMessage) (any, *rpcError, bool) {
		if strings.Contains(string(arguments), "fail") {
			return nil, &rpcError{Code: -32603, Message: "canary-error-message", Data: object{"x": "canary-error-data"}}, false
		}
		return textResult("canary-result"), nil, false
	}
	session := e.openMore(server)
	var sizes strings.Builder
	shown := func() {
		for _, path := range []string{"/debug/tree", "/metrics", "/debug/", "/debug/page.js", "/debug/pprof/goroutine?debug=2", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline", "/debug/pprof/heap?debug=1", "/debug/pprof/"} {
			_, _, body := fetch(t, "GET", "http://"+p.Debug+path, http.Header{"Authorization": {"Bearer canary-debug-key"}})
			fmt.Fprintf(&sizes, "%s %d; ", path, len(body))
			p.harmless(path, body, session)
		}
	}
	e.says(session, "canary-prompt", "echo: canary-prompt\n")
	e.says(session, `/call katashiro.click {"text":"canary-arguments"}`, "canary-result\n")
	e.prompt(session, `/call katashiro.click {"fail":"canary-arguments"}`)
	e.prompt(session, "/search canary-search")
	shown()
	caller := p.callerWithKey(session, "canary-debug-key")
	caller.tool("execute_capability", `{"name":"katashiro.click","arguments":{"x":"canary-arguments"},"idempotency_key":"canary-idempotency"}`)
	caller.tool("execute_capability", `{"name":"katashiro.click","arguments":["canary-arguments"]}`)
	for _, token := range []string{"canary-wrong-token", "canary-facade-key"} {
		request := anonymous(t, p).request(t.Context(), `{"jsonrpc":"2.0","id":"canary-id","method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"x.y","arguments":{"x":"canary-arguments"}}}}`)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("X-Canary", "canary-header")
		caller.do(request)
	}
	// What is wrong is where a careless message would quote it.
	for _, text := range []string{`{"jsonrpc":"2.0","id":"canary-id","method":"session/prompt","params":{"sessionId":"` + session + `","prompt":"canary-prompt"}}`,
		`{"jsonrpc":"2.0","id":"canary-id-2","method":"session/prompt","params":{"sessionId":"` + session[:40] + `","prompt":[]}}`, `canary-not-json`, `["canary-batch"]`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"canary-twice"}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"canary-session"}}`, `{"jsonrpc":"2.0","id":"canary-id","result":"canary-result"}`} {
		e.write(text)
	}
	e.prompt(session, "/garbage\ncanary-prompt")
	other.refused(-32602, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
	shown()
	token := caller.token
	e.sendPrompt(session, "/crash")
	e.hangUp()
	other.hangUp()
	p.await("rest", func() bool {
		_, _, body := fetch(t, "GET", "http://"+p.Debug+"/debug/tree", http.Header{"Authorization": {"Bearer canary-debug-key"}})
		var root node
		return json.Unmarshal([]byte(body), &root) == nil && root.unrest() == ""
	})
	shown()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.Debug+"/debug/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer canary-debug-key")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	for events.Scan() { // up to the end of the session
		p.harmless("/debug/events", events.Text(), session)
		if strings.Contains(events.Text(), `"path":"pod/sessions/`+treeName(session)+`"`) && strings.Contains(events.Text(), `"cause"`) {
			break
		}
	}
	p.signal(15)
	p.ends()
	p.harmless("log", p.log.String(), session)
	if strings.Contains(p.log.String(), token) {
		t.Error("the token of the session stands in the log")
	}
	if n := strings.Count(p.log.String(), "level=DEBUG"); n < 20 {
		t.Errorf("only %d lines at debug level: the test has seen nothing (%s)", n, sizes.String())
	}
}

// harmless wants no canary and no raw session id in what is shown.
func (p *pod) harmless(where, text, session string) {
	p.t.Helper()
	for line := range strings.Lines(text) {
		for _, secret := range []string{"canary-", session, session[5:]} {
			// A folder of the test is named after nothing secret; a user agent and a client's name may be shown.
			if strings.Contains(strings.ReplaceAll(line, "canary-agent", ""), secret) {
				p.t.Errorf("%s shows %s: %.300s", where, secret, line)
			}
		}
	}
}

// callerWithKey is callerOf for a pod whose debug listener asks for a key.
func (p *pod) callerWithKey(session, key string) agentClient {
	p.t.Helper()
	_, _, body := fetch(p.t, "GET", "http://"+p.Debug+"/debug/tree", http.Header{"Authorization": {"Bearer " + key}})
	var root node
	if err := json.Unmarshal([]byte(body), &root); err != nil {
		p.t.Fatal(err)
	}
	agent, _ := root.find(treeName(session) + "/agent")
	pid, _ := agent.Attrs["pid"].(float64)
	for _, entry := range environ(p.t, int(pid)) {
		if token, ok := strings.CutPrefix(entry, "OPENAB_SESSION_TOKEN="); ok {
			return agentClient{p.t, "http://" + p.Facade + "/mcp", token}
		}
	}
	p.t.Fatal("the agent has no token")
	return agentClient{}
}
