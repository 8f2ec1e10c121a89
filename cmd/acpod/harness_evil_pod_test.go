package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// providersConfig is a pod whose sessions have no agent and whose children get little time to end.
var providersConfig = with(noAgent, "agent.stop_grace", `"1s"`)

// mcpJSON writes an mcp.json of these servers and has a pod read it.
func mcpJSON(t testing.TB, servers ...*evilServer) setting {
	t.Helper()
	entries := object{}
	for _, server := range servers {
		entries[server.script.Name] = server.entry
	}
	return mcpText(t, encode(t, object{"mcpServers": entries}))
}

// mcpText has a pod read an mcp.json that is written by hand.
func mcpText(t testing.TB, text string) setting {
	t.Helper()
	file := mcpFile(t, text)
	return func(c *exec.Cmd) { c.Args = append(c.Args, "--mcp-config", file) }
}

func mcpFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// startEvil starts a pod with these servers and gives an anonymous caller of its facade.
func startEvil(t testing.TB, config string, servers ...*evilServer) (*pod, agentClient) {
	t.Helper()
	p := startPod(t, config, mcpJSON(t, servers...))
	return p, anonymous(t, p)
}

// session opens one without an agent and gives its caller.
func (p *pod) session() (*extension, agentClient) {
	p.t.Helper()
	e := dial(p.t, p)
	e.hello()
	return e, e.facadeOf(e.newSession())
}

// provider is a server's node in the tree.
func (p *pod) provider(name string) node {
	p.t.Helper()
	found, ok := p.tree().find("providers/" + name)
	if !ok {
		p.t.Fatalf("the tree has no provider %s", name)
	}
	return found
}

// answer is a JSON-RPC answer to tools/call, whatever it is.
type answer struct {
	Result toolResult
	Error  *rpcError
	raw    string
	took   time.Duration
}

// ask executes a capability and takes any answer.
func (a agentClient) ask(name, arguments string) answer {
	a.t.Helper()
	start := time.Now()
	_, body := a.do(a.request(context.Background(), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":%q,"arguments":%s}}}`, name, arguments)))
	got := answer{raw: string(body), took: time.Since(start)}
	if err := json.Unmarshal(body, &got); err != nil {
		a.t.Errorf("%s: %v in %.300s", name, err, body)
	}
	return got
}

// says wants a call to give one text.
func (a agentClient) says(name, arguments, want string) {
	a.t.Helper()
	if got := a.ask(name, arguments); got.Result.IsError || got.Error != nil || got.Result.text() != want {
		a.t.Errorf("%s %.200s: %.500s, want %.300q", name, arguments, got.raw, want)
	}
}

// refuses wants a call to be refused with that word.
func (a agentClient) refuses(word, name, arguments string) toolResult {
	a.t.Helper()
	got := a.ask(name, arguments)
	if got.Result.refusal() != word {
		a.t.Errorf("%s %.200s: %.500s, want the refusal %s", name, arguments, got.raw, word)
	}
	return got.Result
}

// later makes a call whose answer is waited for later.
func (a agentClient) later(name, arguments string) *inFlight {
	a.t.Helper()
	return a.send("8", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

// has tells whether a search of everything shows that name.
func (s searchAnswer) has(name string) bool { _, ok := s.get(name); return ok }

func (s searchAnswer) get(name string) (found, bool) {
	for _, one := range s.Capabilities {
		if one.Name == name {
			return one, true
		}
	}
	return found{}, false
}

// without says why a provider offers nothing, or "".
func (s searchAnswer) without(provider string) string {
	for _, one := range s.Unavailable {
		if one.Provider == provider {
			return one.Error
		}
	}
	return ""
}

// everything is a search without a query, all pages of it.
func (a agentClient) everything() searchAnswer {
	a.t.Helper()
	all := a.search(`{"limit":100}`)
	for cursor := all.NextCursor; cursor != ""; {
		next := a.search(fmt.Sprintf(`{"limit":100,"cursor":%q}`, cursor))
		all.Capabilities = append(all.Capabilities, next.Capabilities...)
		cursor = next.NextCursor
	}
	return all
}

// until polls for a condition outside this process; the pod may be of any kind.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// noneOf wants that no text holds a secret.
func noneOf(t testing.TB, where, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds %q: %.2000s", where, secret, text)
		}
	}
}

// statusOf sends a request to the facade and gives the status.
func (a agentClient) statusOf(method string, header http.Header, body string) *http.Response {
	a.t.Helper()
	request, err := http.NewRequest(method, a.url, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		request.Host = host
	}
	response, _ := a.do(request)
	return response
}

// introduce sends initialize as a client with those capabilities, and asks for log records of every level.
func (a agentClient) introduce(capabilities string) agentClient {
	a.t.Helper()
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"evil's caller","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`,
	} {
		if response, text := a.do(a.request(context.Background(), body)); response.StatusCode != http.StatusOK || strings.Contains(string(text), `"error"`) {
			a.t.Fatalf("%s: %d %s", body, response.StatusCode, text)
		}
	}
	return a
}

// streamed makes a call whose answer may come as events, gives what came beside the answer, and answers what is asked with reply.
func (a agentClient) streamed(name, arguments, token string, reply func(frame) string) (beside []frame, got answer) {
	a.t.Helper()
	request := a.request(context.Background(), fmt.Sprintf(`{"jsonrpc":"2.0","id":"the call","method":"tools/call","params":{"_meta":{"progressToken":%s},"name":"execute_capability","arguments":{"name":%q,"arguments":%s}}}`, token, name, arguments))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Error(err)
		return nil, answer{}
	}
	defer response.Body.Close()
	for text := range messages(response) {
		var f frame
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			a.t.Errorf("%v in %.300s", err, text)
			return beside, got
		}
		f.raw = text
		switch {
		case f.Method == "":
			got.raw = text
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				a.t.Errorf("%v in %.300s", err, text)
			}
			continue
		case f.ID != nil && reply != nil:
			answered, body := a.do(a.request(context.Background(), answerOf(f, reply(f))))
			if answered.StatusCode != http.StatusAccepted {
				a.t.Errorf("an answer to %s: %d %s", f.raw, answered.StatusCode, body)
			}
		}
		beside = append(beside, f)
	}
	return beside, got
}

// messages are those of a response, of either kind.
func messages(response *http.Response) iter.Seq[string] {
	return func(yield func(string) bool) {
		reader := bufio.NewReader(response.Body)
		if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			text, _ := io.ReadAll(reader)
			yield(string(text))
			return
		}
		var data []string
		for {
			line, err := reader.ReadString('\n')
			line = strings.TrimRight(line, "\r\n")
			if text, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(text, " "))
			}
			if line == "" && len(data) > 0 {
				if !yield(strings.Join(data, "\n")) {
					return
				}
				data = nil
			}
			if err != nil {
				return
			}
		}
	}
}
