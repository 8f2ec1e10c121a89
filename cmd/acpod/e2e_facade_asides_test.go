package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// beside makes a stateless call and gives what came before its answer.
func (a agentClient) beside(name, arguments, capabilities, meta, more string) (beside []string, got answer) {
	a.t.Helper()
	params := fmt.Sprintf(`{"name":"execute_capability","arguments":{"name":%q,"arguments":%s}%s}`, name, arguments, more)
	response, body := a.do(a.stateless("tools/call", params, capabilities, meta))
	texts := []string{string(body)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		texts = nil
		for line := range strings.SplitSeq(string(body), "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				texts = append(texts, data)
			}
		}
	}
	beside, got.raw = texts[:len(texts)-1], texts[len(texts)-1]
	if err := json.Unmarshal([]byte(got.raw), &got); err != nil {
		a.t.Errorf("%s: %v in %.300s", name, err, body)
	}
	return beside, got
}

// In the stateless version each call says what it wants beside its result, and what it says holds for it alone.
func TestAStatelessCallSaysWhatItWantsBesideItsResult(t *testing.T) {
	t.Parallel()
	p := startPod(t, providersConfig, mcpJSON(t, newEvil(t, evilScript{Name: "child", Offer: []string{"log", "progress"}})))
	_, agent := p.session()
	const level = `,"io.modelcontextprotocol/logLevel":`
	for _, row := range []struct {
		name, tool, arguments, capabilities, meta string
		want                                      []string
	}{
		{"nothing", "log", `{"n":2,"text":"t"}`, `{}`, "", nil},
		{"all records", "log", `{"n":2,"text":"t"}`, `{}`, level + `"debug"`, []string{`{"level":"warning","logger":"evil","data":"t 0"}`, `{"level":"warning","logger":"evil","data":"t 1"}`}},
		{"errors", "log", `{"n":2,"text":"t"}`, `{}`, level + `"error"`, nil},
		{"a level that is none", "log", `{"n":2,"text":"t"}`, `{}`, level + `"loud"`, nil},
		{"progress alone", "log", `{"n":2,"text":"t"}`, `{}`, `,"progressToken":1`, nil},
		{"progress alone, of one that can be asked", "log", `{"n":2,"text":"t"}`, `{"elicitation":{}}`, `,"progressToken":1`, nil},
		{"progress under a number", "progress", `{"n":1}`, `{}`, `,"progressToken":9007199254740993`, []string{`{"progressToken":9007199254740993,"progress":1,"total":1,"message":"step 1"}`}},
		{"progress under a text", "progress", `{"n":1}`, `{"elicitation":{}}`, `,"progressToken":"9"`, []string{`{"progressToken":"9","progress":1,"total":1,"message":"step 1"}`}},
		{"records alone", "progress", `{"n":1}`, `{}`, level + `"debug"`, nil},
	} {
		beside, got := agent.beside("child."+row.tool, row.arguments, row.capabilities, row.meta, "")
		if got.Result.IsError || !strings.Contains(got.raw, `"resultType":"complete"`) || len(beside) != len(row.want) {
			t.Errorf("%s: %v %s", row.name, beside, got.raw)
			continue
		}
		for i, want := range row.want {
			if !strings.HasSuffix(beside[i], `"params":`+want+`}`) {
				t.Errorf("%s: %s, not %s", row.name, beside[i], want)
			}
		}
	}
}

// What a server asks its user is the result of a stateless request: the repeat that brings the answer joins the call, which ran once.
func TestAQuestionIsTheResultOfAStatelessCallAndItsAnswerJoinsIt(t *testing.T) {
	t.Parallel()
	child := newEvil(t, evilScript{Name: "child", Offer: []string{"ask"}})
	p := startPod(t, providersConfig, mcpJSON(t, child))
	_, agent := p.session()
	_, other := p.session()
	const can = `{"elicitation":{"form":{}}}`
	question := `{"method":"elicitation/create","params":{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}`
	ask := func(a agentClient, capabilities, more string) (state string, got answer) {
		t.Helper()
		_, got = a.beside("child.ask", question, capabilities, "", more)
		var result struct {
			Result struct {
				ResultType    string
				InputRequests map[string]struct {
					Method string
					Params struct{ Message string }
				}
				RequestState string
			}
		}
		if err := json.Unmarshal([]byte(got.raw), &result); err != nil {
			t.Fatal(err)
		}
		if r := result.Result; r.ResultType == "input_required" {
			if one := r.InputRequests["answer"]; len(r.InputRequests) != 1 || one.Method != "elicitation/create" || one.Params.Message != "child asks: Your name?" {
				t.Errorf("%s", got.raw)
			}
			return r.RequestState, got
		}
		return "", got
	}
	reply := func(state, body string) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"answer":%s}`, state, body)
	}
	state, got := ask(agent, can, "")
	if state == "" {
		t.Fatalf("nothing was asked: %s", got.raw)
	}
	const ada = `{"action":"accept","content":{"n":"Ada"}}`
	for name, c := range map[string]struct {
		who   agentClient
		state string
	}{"another session": {other, state}, "nobody": {anonymous(t, p), state}, "a state that is none": {agent, state + "x"}} {
		if _, got := ask(c.who, can, reply(c.state, ada)); got.Error == nil || got.Error.Code != -32602 {
			t.Errorf("%s joined the call: %s", name, got.raw)
		}
	}
	if state, got = ask(agent, can, reply(state, `{"name":"Ada"}`)); state == "" {
		t.Errorf("what is no answer is not asked for again: %s", got.raw)
	}
	if _, got := ask(agent, can, reply(state, ada)); !strings.Contains(got.Result.text(), `"Ada"`) {
		t.Errorf("the server got %s", got.raw)
	}
	if _, got := ask(agent, can, reply(state, ada)); got.Error == nil {
		t.Errorf("a state was of use twice: %s", got.raw)
	}
	if n := child.calls("ask"); n != 1 {
		t.Errorf("the server was called %d times for one call", n)
	}
	if _, got := ask(agent, `{}`, ""); !strings.Contains(got.Result.text(), `"decline"`) {
		t.Errorf("who has not said that it can be asked was asked: %s", got.raw)
	}
	if _, got := ask(anonymous(t, p), can, ""); !strings.Contains(got.Result.text(), `"decline"`) {
		t.Errorf("somebody without a session was asked: %s", got.raw)
	}
}
