package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// agentClient is an MCP client of the facade, as an agent is one: plain HTTP, one POST a message, a bearer or none.
type agentClient struct {
	t     testing.TB
	url   string
	token string // "" is the anonymous caller
}

// facadeOf reads the facade's address and token that a session without an agent gets (driver "none").
func (e *extension) facadeOf(session string) agentClient {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range slices.Backward(e.frames) {
		var result struct {
			Meta struct {
				Facade struct{ URL, Token string } `json:"acpod.dev/facade"`
			} `json:"_meta"`
		}
		if f.Method == "" && strings.Contains(f.raw, session) && json.Unmarshal(f.Result, &result) == nil && result.Meta.Facade.Token != "" {
			return agentClient{e.t, result.Meta.Facade.URL, result.Meta.Facade.Token}
		}
	}
	e.t.Fatalf("the session was given no facade:\n%s", e.lastFrames(5))
	return agentClient{}
}

// anonymous is a caller without a bearer.
func anonymous(t testing.TB, p *pod) agentClient {
	return agentClient{t, "http://" + p.Facade + "/mcp", ""}
}

// request builds a POST with what every sound client sends.
func (a agentClient) request(ctx context.Context, body string) *http.Request {
	a.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	return request
}

// do sends a request and reads the whole answer.
func (a agentClient) do(request *http.Request) (*http.Response, []byte) {
	a.t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response, body
}

// toolResult is the result of tools/call.
type toolResult struct {
	Content []struct{ Type, Text, Data, MimeType string }
	IsError bool
	Meta    map[string]any `json:"_meta"`
	raw     string
}

func (r toolResult) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// refusal is the contract's word for why a call was not made, or "".
func (r toolResult) refusal() string {
	word, _ := r.Meta["acpod.dev/refusal"].(string)
	if word != "" && (!r.IsError || len(r.Content) != 1) {
		return word + " (but not an error result of one block)"
	}
	return word
}

// tool calls one of the facade's tools with arguments written as JSON.
func (a agentClient) tool(name, arguments string) toolResult {
	a.t.Helper()
	return a.toolContext(context.Background(), name, arguments)
}

func (a agentClient) toolContext(ctx context.Context, name, arguments string) toolResult {
	a.t.Helper()
	response, body := a.do(a.request(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)))
	var answer struct {
		Result toolResult
		Error  *rpcError
	}
	if err := json.Unmarshal(body, &answer); err != nil || response.StatusCode != http.StatusOK || answer.Error != nil {
		a.t.Fatalf("%s: %d %v %.500s", name, response.StatusCode, err, body)
	}
	answer.Result.raw = string(body)
	return answer.Result
}

// execute calls a capability.
func (a agentClient) execute(name, arguments string) toolResult {
	a.t.Helper()
	if arguments == "" {
		return a.tool("execute_capability", fmt.Sprintf(`{"name":%q}`, name))
	}
	return a.tool("execute_capability", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

// found is one entry of a search.
type found struct {
	Name, Description, Provider, Risk, Availability string
	InputSchema                                     json.RawMessage `json:"input_schema"`
}

type searchAnswer struct {
	Capabilities []found
	Unavailable  []struct{ Provider, Error string }
	Pending      []any
	NextCursor   string `json:"next_cursor"`
	Total        int
}

// search runs search_capabilities with arguments written as JSON.
func (a agentClient) search(arguments string) searchAnswer {
	a.t.Helper()
	result := a.tool("search_capabilities", arguments)
	var answer searchAnswer
	decoder := json.NewDecoder(bytes.NewReader([]byte(result.text())))
	if err := decoder.Decode(&answer); err != nil || result.IsError || len(result.Content) != 1 {
		a.t.Fatalf("search %s: %v in %.500s", arguments, err, result.raw)
	}
	return answer
}

// names are the capabilities that a caller sees, in name order.
func (a agentClient) names() []string {
	a.t.Helper()
	names := []string{}
	for _, one := range a.search(`{"limit":100}`).Capabilities {
		names = append(names, one.Name)
	}
	return names
}
