package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// written is a call of a write that takes a while.
func written(name, key string) string {
	call := fmt.Sprintf(`{"name":"one.slow","arguments":{"ms":3000,"text":%q}`, name)
	if key != "" {
		call += fmt.Sprintf(`,"idempotency_key":%q`, key)
	}
	return call + "}"
}

// A client that closes its connection one second into a three-second write and repeats it at once gets its result, and the server ran it
// once: with a token, with and without a key, and without a token with one.
func TestAWriteWhoseCallerWentAwayAndCameBackRunsOnce(t *testing.T) {
	t.Parallel()
	child := newEvil(t, evilScript{Name: "one", Offer: []string{"slow", "echo"}})
	p, nobody := startEvil(t, providersConfig, child)
	_, session := p.session()
	nobody.says("one.echo", `{}`, `echo {}`)
	for _, row := range []struct {
		name, key string
		caller    agentClient
		times     int
	}{
		{"a token", "", session, 1},
		{"a token and a key", "k1", session, 1},
		{"no token and a key", "k1", nobody, 1}, // the same key: another owner's
		{"no token and no key", "", nobody, 2},  // nobody knows that it is the same caller
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ran := func(event string) (n int) {
				for _, note := range child.journal(event) {
					if strings.Contains(note.about, `"text":"`+row.name+`"`) {
						n++
					}
				}
				return n
			}
			first := row.caller.send("8", written(row.name, row.key))
			until(t, "the write at the server", func() bool { return ran("call") == 1 })
			time.Sleep(time.Second)
			first.hangUp()
			result := row.caller.again(written(row.name, row.key))
			if result.text() != "done "+row.name {
				t.Errorf("the repeat: %s", result.raw)
			}
			until(t, "the end of what runs", func() bool { return ran("done") == ran("call") })
			if ran("call") != row.times {
				t.Errorf("it ran %d times, want %d", ran("call"), row.times)
			}
			if row.key != "" { // a later repeat has the result as well, and other arguments are not that call
				if result := row.caller.again(written(row.name, row.key)); result.text() != "done "+row.name || ran("call") != 1 {
					t.Errorf("a later repeat: %s", result.raw)
				}
				if result := row.caller.again(strings.Replace(written(row.name, row.key), "3000", "1", 1)); result.refusal() != "bad_arguments" || ran("call") != 1 {
					t.Errorf("other arguments under the key: %s", result.raw)
				}
			}
		})
	}
}

// again repeats a call as a client does that lost its connection: with the id of a session that it believes in.
func (a agentClient) again(arguments string) toolResult {
	a.t.Helper()
	request := a.request(context.Background(), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_capability","arguments":`+arguments+`}}`)
	request.Header.Set("Mcp-Session-Id", "of another life")
	response, body := a.do(request)
	if response.StatusCode != http.StatusOK {
		a.t.Errorf("%d %s", response.StatusCode, body)
	}
	var answered answer
	if err := json.Unmarshal(body, &answered); err != nil {
		a.t.Errorf("%v in %s", err, body)
	}
	answered.Result.raw = string(body)
	return answered.Result
}

// With a key, a pod that dies in the call is no reason to run it twice: its successor says that nobody knows the outcome.
func TestAKeyedWriteIsNotRepeatedByTheNextPod(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"slow"}})
	config := with(providersConfig, "state.dir", `"`+t.TempDir()+`"`)
	p, a := startEvil(t, config, s)
	a.send("8", written("open", "k-open"))
	until(t, "the write at the server", func() bool { return s.calls("slow") == 1 })
	if result := a.again(strings.Replace(written("ended", "k-ended"), "3000", "1", 1)); result.text() != "done ended" {
		t.Errorf("%s", result.raw)
	}
	time.Sleep(time.Second)
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	_, a = startEvil(t, config, s)
	if result := a.again(written("open", "k-open")); result.refusal() != "outcome_unknown" {
		t.Errorf("the call that was open: %s", result.raw)
	}
	if result := a.again(strings.Replace(written("ended", "k-ended"), "3000", "1", 1)); result.refusal() != "outcome_unknown" && result.text() != "done ended" {
		t.Errorf("the call that had ended: %s", result.raw)
	}
	if s.calls("slow") != 2 {
		t.Errorf("two writes ran %d times", s.calls("slow"))
	}
	a.says("one.slow", `{"ms":1,"text":"another"}`, "done another")
}

// `acpod mcp` is a caller like the others: the same filter, the same checks, the same refusals, and nothing is left of it.
func TestTheCommandLineCallsThroughTheSamePipeline(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"echo", "toolerr", "send", "read_echo"}}).set("tool_filter", object{"exclude": []string{"send"}})
	file := mcpFile(t, encode(t, object{"mcpServers": object{"one": s.entry}}))
	for _, row := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"call", "one.echo", `{"n":1}`}, 0, `echo {\"n\":1}`},
		{[]string{"call", "echo"}, 0, `echo {}`},
		{[]string{"call", "one.toolerr", `{"text":"why"}`}, 1, "no: why"},
		{[]string{"call", "one.send", `{}`}, 1, "unknown"},
		{[]string{"call", "one.echo", `{"a":1,"a":2}`}, 1, ""},
		{[]string{"search", "echo", "--json"}, 0, `"one"`},
		{[]string{"list", "--json"}, 0, `"one"`},
	} {
		code, out, failure := run(t, nil, append(append([]string{"mcp"}, row.arguments...), "--mcp-config", file)...)
		if code != row.code || !strings.Contains(out+failure, row.says) {
			t.Errorf("%v: exit %d, want %d with %q: %s %s", row.arguments, code, row.code, row.says, out, failure)
		}
	}
	if s.calls("send") != 0 || s.calls("echo") != 2 {
		t.Errorf("calls: %v", s.journal("call"))
	}
	until(t, "the end of all processes", func() bool {
		for _, start := range s.journal("start") {
			if alive(start.pid) {
				return false
			}
		}
		return true
	})
}

// The facade alone serves the same servers, opens neither /acp nor the debug listener, and leaves nothing behind.
func TestTheFacadeAloneServesTheSame(t *testing.T) {
	t.Parallel()
	s := stubborn(t, evilScript{})
	file := mcpFile(t, encode(t, object{"mcpServers": object{"stubborn": s.entry}}))
	p := startPod(t, baseConfig, func(c *exec.Cmd) {
		c.Args = []string{c.Args[0], "facade", "--listen", "127.0.0.1:0", "--mcp-config", file, "--ready-file", c.Args[5]}
	})
	if p.Public != "" || p.Debug != "" {
		t.Errorf("it listens on %q and %q, too", p.Public, p.Debug)
	}
	anonymous(t, p).runs(s)
	p.stop()
	if left := p.processes(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}
