package clientcheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// bye is a close frame of a client that leaves.
func bye(c *client) { _ = c.socket.Frame(wire.CloseFrame, true, []byte{3, 232}) }

// gone is a client that stays away once it was there.
func gone(*client) { time.Sleep(2 * time.Second) }

// may are clients that do what they may: no row fails. Some rows are then skipped, for a reason that has that in it.
var may = []struct {
	name        string
	bend        bend
	generations string
	change      func(*Config)
	skipped     map[string]string
	ended       bool // the client left before the check was over
}{
	{name: "no secret, and another session each time", bend: bend{
		hello:  func(*client) string { return `{"protocolVersion":1}` },
		method: func(*client, bool) string { return "session/new" },
	}, skipped: map[string]string{rowSecret: "it gave none", rowResume: "opened another session", rowServed: noReturn}},
	{name: "no secret, and its session", bend: bend{hello: func(*client) string { return `{"protocolVersion":1}` }}, skipped: map[string]string{rowSecret: "it gave none"}},
	{name: "a version of tomorrow", bend: replaced(`"protocolVersion":1`, `"protocolVersion":2`)},
	{name: "no servers", bend: bend{params: func(c *client, method string) string {
		if method == "session/new" {
			return `{"cwd":"/","mcpServers":[]}`
		}
		return fmt.Sprintf(`{"cwd":"/","sessionId":%q,"mcpServers":[]}`, c.session)
	}}, skipped: map[string]string{rowPages: noServer, rowConnect: noTarget}},
	{name: "it withdraws its servers", bend: bend{params: func(c *client, method string) string {
		if method == "session/new" {
			return ""
		}
		return fmt.Sprintf(`{"cwd":"/","sessionId":%q,"mcpServers":[]}`, c.session)
	}}, skipped: map[string]string{rowServed: "withdrew"}},
	{name: "servers in initialize", bend: bend{
		hello: func(c *client) string {
			return fmt.Sprintf(`{"protocolVersion":1,"mcpServers":%s,"_meta":{"acpod.dev/client":%q}}`, c.declared(), c.secret)
		},
		params: func(_ *client, method string) string {
			if method == "session/new" {
				return `{"cwd":"/"}`
			}
			return ""
		},
	}},
	{name: "a session of another day", bend: bend{method: func(*client, bool) string { return "session/resume" }, params: func(c *client, method string) string {
		if method == "session/resume" && c.session == "" {
			return `{"cwd":"/","sessionId":"sess_00000000-0000-4000-8000-000000000000"}`
		}
		return ""
	}}},
	{name: "one connection at a time", bend: bend{serve: func(c *client, q asked) (string, bool) {
		return failure(jsonrpc.Internal), q.Method == acp.MethodMCPConnect && len(c.open) > 0
	}}, skipped: map[string]string{rowDistinct: "one connection to a server at a time", rowOther: noTarget}},
	{name: "nobody chooses", bend: answers(outerly(acp.MethodPermission), ""), change: func(cfg *Config) { cfg.Step = 5 * time.Second }, skipped: map[string]string{rowPermission: "nobody chose"}},
	{name: "a cancelled call without an answer", bend: answers(func(_ *client, q asked) bool {
		return q.in.Method == mcp.MethodToolsCall && strings.Contains(string(q.in.Params), `.read`) && !strings.Contains(string(q.in.Params), "client-check-progress") && strings.Contains(string(q.in.Params), "selector")
	}, "")},
	{name: "its tool refuses what was made up", bend: answers(calls("client-check-progress"), failure(jsonrpc.InvalidParams)), skipped: map[string]string{rowCall: "invented"}},
	{name: "all of its tools change something", bend: replaced(`"readOnlyHint":true`, `"readOnlyHint":false`), skipped: map[string]string{rowCall: "--tool", rowWrong: "--tool"}},
	{name: "a tool that is not there", change: func(cfg *Config) { cfg.Tool = "no.such" }, skipped: map[string]string{rowCall: "not listed"}},
	{name: "it has everything", bend: replaced(`"clientCapabilities":{}`, `"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{}}}`), skipped: map[string]string{rowUndeclared: "declares everything"}},
	{name: "it says much", bend: bend{opened: func(c *client) {
		c.request("session/list", "{}")
		c.request("_client/heartbeat", "{}")
		c.request("initialize", `{"protocolVersion":1}`)
		c.say(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`)
		for id := range c.open {
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":%q,"method":"notifications/tools/list_changed"}}`, id))
		}
		_ = c.socket.Frame(wire.PingFrame, true, []byte("client"))
		_ = c.socket.Frame(wire.PongFrame, true, nil)
	}}},
	{name: "ids as they like", bend: says(`"result":`, func(text string) []string {
		id, rest, _ := strings.Cut(strings.TrimPrefix(text, `{"jsonrpc":"2.0","id":`), ",")
		return []string{`{"jsonrpc":"2.0","id":"` + id + `",` + rest}
	})},
	{name: "its messages are in pieces", bend: bend{out: func(c *client, text string) []string {
		_ = c.socket.Frame(wire.TextFrame, false, []byte(text[:len(text)/2]))
		_ = c.socket.Frame(wire.PingFrame, true, nil)
		_ = c.socket.Frame(wire.Continuation, true, []byte(text[len(text)/2:]))
		return nil
	}}},
	{name: "no subprotocol, and from a page", bend: onDial(func(d *wire.Dial) { d.Protocols, d.Origin = []string{}, "chrome-extension://abc" })},
	{name: "another socket beside", bend: bend{opened: func(c *client) {
		_, err := wire.Open(context.Background(), wire.Dial{URL: c.url, Timeout: 10 * time.Second})
		if refused, ok := errors.AsType[*wire.Refused](err); !ok || refused.Status != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" {
			c.socket.Reset() // which fails rows
		}
	}}},
	{name: "two sessions", bend: bend{opened: func(c *client) {
		if c.second == "" {
			c.second = "?" // whatever it is
			c.request("session/new", `{"cwd":"/","mcpServers":[]}`)
		}
	}, method: func(c *client, again bool) string {
		if again { // it takes both up
			c.next++
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"second %d","method":"session/resume","params":{"cwd":"/","sessionId":%q,"mcpServers":[]}}`, c.next, c.second))
			return "session/resume"
		}
		return "session/new"
	}}, skipped: map[string]string{rowServed: "withdrew"}},
	{name: "it closes its session when it loses the pod", bend: bend{noted: func(c *client, q asked) {
		if q.Method == "_acpod/draining" || q.Method == "_acpod/client-check/there_is_none" {
			c.request("session/close", fmt.Sprintf(`{"sessionId":%q}`, c.session))
			c.session = ""
		}
	}}, skipped: map[string]string{rowKey: "no key"}},
	{name: "it stays away", bend: bend{pause: func(int) time.Duration { return time.Hour }}, change: func(cfg *Config) { cfg.sooner = map[string]time.Duration{rowBack1012: 300 * time.Millisecond} },
		skipped: map[string]string{rowBack1012: "did not come again", rowBack1013: noReturn, rowResume: noReturn}},
	{name: "it leaves", bend: onNote(acp.MethodSessionUpdate, func(c *client, _ asked) { bye(c); gone(c) }), skipped: map[string]string{rowUpdates: "the client closed with 1000", rowPing: "the client closed with 1000"}, ended: true},
}

func TestWhatAClientMayDoIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, one := range may {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			cfg := quick()
			if one.change != nil {
				one.change(&cfg)
			}
			generations := one.generations
			if generations == "" {
				generations = "A"
			}
			r, err := check(t.Context(), t, cfg, &client{generations: generations, bend: one.bend})
			if err != nil || !r.OK() || (r.Ended != "") != one.ended {
				t.Fatalf("%v, ended %q\n%s", err, r.Ended, explain(r))
			}
			usual := []string{rowKey, rowEarly, rowRequests, rowPrompt, rowInbound}
			for _, row := range r.Rows {
				want, some := one.skipped[row.Name]
				if some && (row.Status != tally.Skipped || !strings.Contains(row.Reason, want)) {
					t.Errorf("%q is %s: %s", row.Name, row.Status, row.Reason)
				}
				if len(one.skipped) == 0 && row.Status == tally.Skipped && !slices.Contains(usual, row.Name) {
					t.Errorf("%q is skipped: %s", row.Name, row.Reason)
				}
			}
		})
	}
}
