package clientcheck

import (
	"context"
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

// answers bends one answer: to requests that fit, that member.
func answers(fits func(c *client, q asked) bool, member string) bend {
	return bend{serve: func(c *client, q asked) (string, bool) {
		if fits(c, q) {
			return member, true
		}
		return "", false
	}}
}

func inner(method string) func(*client, asked) bool {
	return func(_ *client, q asked) bool { return q.server != "" && q.in.Method == method }
}

func outerly(method string) func(*client, asked) bool {
	return func(_ *client, q asked) bool { return q.Method == method }
}

func calls(part string) func(*client, asked) bool {
	return func(_ *client, q asked) bool {
		return q.in.Method == mcp.MethodToolsCall && strings.Contains(string(q.in.Params), part)
	}
}

// says bends what goes out: each message with that in it becomes others.
func says(part string, others func(text string) []string) bend {
	return bend{out: func(_ *client, text string) []string {
		if strings.Contains(text, part) {
			return others(text)
		}
		return []string{text}
	}}
}

// besides says something once the session is open.
func besides(text string) bend { return bend{opened: func(c *client) { c.say(text) }} }

func replaced(old, new string) bend {
	return says(old, func(text string) []string { return []string{strings.Replace(text, old, new, 1)} })
}

func onNote(method string, do func(c *client, q asked)) bend {
	return bend{noted: func(c *client, q asked) {
		if q.Method == method || q.in.Method == method {
			do(c, q)
		}
	}}
}

func onDial(change func(*wire.Dial)) bend { return bend{dial: change} }

const goodTool = `{"name":"t","inputSchema":{"type":"object"}}`

// bent are clients that are broken in one way each, by the row that is about it.
var bent = []struct {
	row         string
	name        string
	bend        bend
	generations string // "" is A
	change      func(*Config)
	silent      bool // the row's answer never comes
	stops       bool // the client gets no further: the run is ended at the first failure
}{
	{row: rowUpgrade, name: "another path", bend: onDial(func(d *wire.Dial) { d.URL = strings.Replace(d.URL, "/acp", "/ws", 1) }), stops: true},
	{row: rowSubprotocol, name: "another subprotocol", bend: onDial(func(d *wire.Dial) { d.Protocols = []string{"mcp"} })},
	{row: rowKey, name: "no key", change: func(cfg *Config) { cfg.Key = "sesame" }, stops: true},
	{row: rowKey, name: "a wrong key in the subprotocol", bend: onDial(func(d *wire.Dial) { d.Key, d.ByProtocol = "wrong", true }), change: func(cfg *Config) { cfg.Key = "sesame" }, stops: true},
	{row: rowHost, name: "a rebound name", bend: onDial(func(d *wire.Dial) { d.Host = "evil.example:80" }), stops: true},

	{row: rowFraming, name: "no mask", bend: bend{opened: func(c *client) {
		_ = c.socket.Send(wire.Head{Fin: true, Opcode: wire.TextFrame, Length: 2}, []byte("{}"))
	}}},
	{row: rowFraming, name: "a close code that must not be sent", bend: bend{opened: func(c *client) { _ = c.socket.Frame(wire.CloseFrame, true, []byte{3, 238}) }}},
	{row: rowText, name: "a binary message", bend: bend{opened: func(c *client) { _ = c.socket.Frame(wire.BinaryFrame, true, []byte("{}")) }}},
	{row: rowText, name: "not UTF-8", bend: besides("{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{\"a\":\"\xff\"}}")},
	{row: rowJSON, name: "no JSON", bend: besides("hello")},
	{row: rowJSON, name: "a member twice", bend: besides(`{"jsonrpc":"2.0","method":"_x","method":"_y"}`)},
	{row: rowBatch, name: "a batch", bend: besides(`[{"jsonrpc":"2.0","method":"_x"}]`)},
	{row: rowVersion, name: "an answer without jsonrpc", bend: says(`"tools":[`, func(text string) []string { return []string{strings.Replace(text, `"jsonrpc":"2.0",`, "", 1)} })},
	{row: rowIDs, name: "an id with a fraction", bend: besides(`{"jsonrpc":"2.0","id":1.5,"method":"_x"}`)},
	{row: rowIDs, name: "the id null", bend: besides(`{"jsonrpc":"2.0","id":null,"method":"_x"}`)},
	{row: rowReuse, name: "an id again", bend: says(`"method":"session/new"`, func(text string) []string {
		return []string{text, strings.Replace(text, "session/new\",\"params", "_x\",\"params", 1)}
	})},
	{row: rowAnswers, name: "two answers", bend: says(`"tools":[`, func(text string) []string { return []string{text, text} })},
	{row: rowAnswers, name: "an answer to nothing", bend: besides(`{"jsonrpc":"2.0","id":4711,"result":{}}`)},
	{row: rowAnswers, name: "an error without an id", bend: besides(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)},
	{row: rowShape, name: "an error without a code", bend: answers(calls(nobody), `"error":{"message":"no"}`)},
	{row: rowShape, name: "result and error", bend: answers(calls(nobody), `"result":{},"error":{"code":-1,"message":"no"}`)},
	{row: rowSizes, name: "a large request", bend: besides(`{"jsonrpc":"2.0","id":"large","method":"_x","params":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`)},
	{row: rowSizes, name: "a message that never ends", bend: bend{opened: func(c *client) { _ = c.socket.Raw(wire.Header(wire.TextFrame, true, 1<<33)) }}},
	{row: rowOwn, name: "an update", bend: besides(`{"jsonrpc":"2.0","method":"session/update","params":{}}`)},
	{row: rowOwn, name: "a connect", bend: besides(`{"jsonrpc":"2.0","id":"own","method":"mcp/connect","params":{"acpId":"a"}}`)},
	{row: rowInbound, name: "a message of no connection", bend: besides(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"none","method":"notifications/tools/list_changed"}}`)},
	{row: rowInbound, name: "progress that nobody asked for", bend: bend{opened: func(c *client) {
		c.say(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"connection 1","method":"notifications/progress","params":{"progressToken":"x","progress":1}}}`)
	}}},
	{row: rowReads, name: "it stops to read", bend: bend{dial: func(d *wire.Dial) { d.ReceiveBuffer = 4 << 10 }, serve: func(c *client, q asked) (string, bool) {
		if !calls("padding")(c, q) || len(q.in.Params) > 1<<10 {
			return "", false
		}
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID.Raw(), c.serve(q)))
		time.Sleep(3 * time.Second)
		return "", true
	}}, change: func(cfg *Config) { cfg.large, cfg.sooner = 7<<20, map[string]time.Duration{rowReads: time.Second} }},

	{row: rowFirst, name: "it does not wait for initialize", bend: says(`"method":"initialize"`, func(text string) []string {
		return []string{text, `{"jsonrpc":"2.0","id":"early","method":"session/list","params":{}}`}
	})},
	{row: rowFirst, name: "something before initialize", bend: bend{start: func(c *client) { c.say(`{"jsonrpc":"2.0","id":"early","method":"session/list","params":{}}`) }}},
	{row: rowInitialize, name: "a version in quotes", bend: replaced(`"protocolVersion":1`, `"protocolVersion":"1"`), stops: true},
	{row: rowInitialize, name: "none", bend: says(`"method":"initialize"`, func(string) []string { return nil }), silent: true},
	{row: rowCaps, name: "capabilities that are none", bend: replaced(`"clientCapabilities":{}`, `"clientCapabilities":{"fs":true}`)},
	{row: rowCaps, name: "no name", bend: replaced(`"name":"good"`, `"title":"good"`)},
	{row: rowNew, name: "no cwd", bend: replaced(`"cwd":"/",`, ""), stops: true},
	{row: rowNew, name: "a path that is none of the pod's", bend: replaced(`"cwd":"/"`, `"cwd":"C:\\"`), stops: true},
	{row: rowServers, name: "a name with a space", bend: replaced(`"mcpServers":[`, `"mcpServers":[{"type":"acp","name":"my server","id":"x"},`)},
	{row: rowServers, name: "an id twice", bend: replaced(`"mcpServers":[`, `"mcpServers":[{"type":"acp","name":"other","id":"server-A"},`)},
	{row: rowServers, name: "a type that there is not", bend: replaced(`"mcpServers":[`, `"mcpServers":[{"type":"websocket","name":"x"},`)},
	{row: rowEarly, name: "an early tool without a schema", bend: replaced(`"id":"server-A"}`, `"id":"server-A","_meta":{"acpod.dev/tools":[{"name":"x"}]}}`)},
	{row: rowRequests, name: "another session", bend: besides(`{"jsonrpc":"2.0","id":"other","method":"session/close","params":{"sessionId":"sess_00000000-0000-4000-8000-000000000000"}}`)},
	{row: rowPrompt, name: "a prompt of nothing", bend: bend{opened: func(c *client) { c.request("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[]}`, c.session)) }}},

	{row: rowMeanwhile, name: "connect waits for session/new", bend: later(), silent: true},
	{row: rowConnect, name: "an empty connection id", bend: answers(outerly(acp.MethodMCPConnect), result(`{"connectionId":""}`))},
	{row: rowConnect, name: "a number", bend: answers(outerly(acp.MethodMCPConnect0), result(`{"connection_id":7}`)), generations: "0"},
	{row: rowDistinct, name: "one connection id", bend: bend{serve: func(c *client, q asked) (string, bool) {
		if q.Method != acp.MethodMCPConnect || c.member(q.Frame, "acpId") == nobody {
			return "", false
		}
		c.open["always"] = "server-A"
		return result(`{"connectionId":"always"}`), true
	}}},
	{row: rowDistinct, name: "one connection id for two servers", bend: bend{serve: func(c *client, q asked) (string, bool) {
		if q.Method != acp.MethodMCPConnect || c.session != "" {
			return "", false
		}
		c.open["the one"] = "server-A"
		return result(`{"connectionId":"the one"}`), true
	}}, generations: "AB"},
	{row: rowHandshake, name: "a version that nobody offered", bend: answers(inner(mcp.MethodInitialize), result(`{"protocolVersion":"1.0","capabilities":{}}`))},
	{row: rowInitialized, name: "it is answered", bend: onNote(mcp.MethodInitialized, func(c *client, _ asked) { c.say(`{"jsonrpc":"2.0","id":null,"result":{}}`) })},
	{row: rowPages, name: "a list without end", bend: answers(inner(mcp.MethodToolsList), result(`{"tools":[],"nextCursor":"again"}`))},
	{row: rowPages, name: "no array", bend: answers(inner(mcp.MethodToolsList), result(`{"tools":{}}`))},
	{row: rowTools, name: "a tool without a schema", bend: answers(inner(mcp.MethodToolsList), result(`{"tools":[`+goodTool+`,{"name":"x"}]}`))},
	{row: rowTools, name: "a name twice", bend: answers(inner(mcp.MethodToolsList), result(`{"tools":[`+goodTool+`,`+goodTool+`]}`))},
	{row: rowCall, name: "a listed tool that there is not", bend: answers(calls(`"selector":"#a"`), failure(jsonrpc.InvalidParams)), change: func(cfg *Config) {
		cfg.Tool, cfg.Arguments = "server-A.read", []byte(`{"selector":"#a"}`)
	}},
	{row: rowCall, name: "no answer", bend: answers(calls("client-check-progress"), ""), silent: true},
	{row: rowContent, name: "no content", bend: answers(calls("client-check-progress"), result(`{"structuredContent":{}}`))},
	{row: rowContent, name: "an image that is none", bend: answers(calls("client-check-progress"), result(`{"content":[{"type":"image","data":"?","mimeType":"image/png"}]}`))},
	{row: rowNoTool, name: "it does what it cannot", bend: answers(func(_ *client, q asked) bool { return calls(nobody)(nil, q) }, result(`{"content":[]}`))},
	{row: rowWrong, name: "it takes anything", bend: answers(calls(`server-A.read","arguments":{}`), result(`{"content":[]}`))},
	{row: rowNoMethod, name: "another error", bend: answers(inner(noMethod), failure(jsonrpc.InvalidParams))},
	{row: rowNoNote, name: "it is answered", bend: onNote("notifications/client-check/there_is_none", func(c *client, _ asked) { c.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`) })},
	{row: rowMembers, name: "it takes nothing unknown", bend: answers(func(_ *client, q asked) bool { return strings.Contains(string(q.in.Params), "x-client-check") }, failure(jsonrpc.InvalidParams))},
	{row: rowMixed, name: "answers change places", bend: bend{mix: true}},
	{row: rowCancel, name: "it answers and says that it was cancelled", bend: onNote(acp.MethodCancelRequest, func(c *client, q asked) {
		if o, _ := jsonrpc.ParseObject(q.Params); !strings.Contains(string(get(o, "requestId")), "1099511627776") {
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, get(o, "requestId"), failure(jsonrpc.Cancelled)))
		}
	})},
	{row: rowNoServer, name: "it connects anything", bend: answers(func(c *client, q asked) bool { return c.member(q.Frame, "acpId") == nobody }, result(`{"connectionId":"for nobody"}`))},
	{row: rowNoTarget, name: "it serves any connection", bend: bend{serve: func(c *client, q asked) (string, bool) {
		if q.in.Target != nobody {
			return "", false
		}
		q.server = "server-A"
		return c.mcp(q), true
	}}},
	{row: rowDisconnect, name: "an error", bend: answers(outerly(acp.MethodMCPDisconnect), failure(jsonrpc.MethodNotFound))},
	{row: rowDisconnect, name: "generation 0 answers", bend: onNote(acp.MethodMCPDisconnect0, func(c *client, _ asked) { c.say(`{"jsonrpc":"2.0","id":null,"result":{}}`) }), generations: "0"},
	{row: rowEnded, name: "it goes on serving", bend: answers(outerly(acp.MethodMCPDisconnect), result("{}"))},
	{row: rowOther, name: "all connections end", bend: bend{serve: func(c *client, q asked) (string, bool) {
		if q.Method != acp.MethodMCPDisconnect {
			return "", false
		}
		clear(c.open)
		return result("{}"), true
	}}},

	{row: rowUnknown, name: "silence", bend: answers(outerly(unknownRequest), ""), silent: true},
	{row: rowUndeclared, name: "it reads what it said that it cannot", bend: answers(outerly(acp.MethodReadTextFile), result(`{"content":"root"}`))},
	{row: rowUpdates, name: "it dies of a kind that it does not know", bend: onNote(acp.MethodSessionUpdate, func(c *client, q asked) {
		if strings.Contains(string(q.Params), nobodyKind) {
			c.socket.Reset()
		}
	})},
	{row: rowPodNotes, name: "they are answered", bend: onNote("_acpod/client-check/there_is_none", func(c *client, _ asked) { c.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`) })},
	{row: rowPermission, name: "an option that was not offered", bend: answers(outerly(acp.MethodPermission), result(string(acp.SelectedOutcome("allow"))))},
	{row: rowPermission, name: "a bare option", bend: answers(outerly(acp.MethodPermission), result(`{"optionId":"client-check-allow"}`))},

	{row: rowPing, name: "no pong", bend: bend{
		noted: func(c *client, q asked) { c.socket.Mute(q.Method == "_acpod/client-check/there_is_none") },
		serve: func(c *client, q asked) (string, bool) {
			if calls("padding")(c, q) {
				c.socket.Mute(false)
			}
			return "", false
		},
	}, silent: true},
	{row: rowLarge, name: "it closes", bend: bend{serve: func(c *client, q asked) (string, bool) {
		if len(q.in.Params) > 8<<10 {
			_ = c.socket.Frame(wire.CloseFrame, true, []byte{3, 241})
		}
		return "", false
	}}},
	{row: rowFragments, name: "it is lost", bend: answers(func(_ *client, q asked) bool { return calls("padding")(nil, q) && len(q.in.Params) < 1<<10 }, ""), silent: true},

	{row: rowEcho, name: "it just goes", bend: onNote("_acpod/draining", func(c *client, _ asked) { c.socket.Mute(true) })},
	{row: rowStorm, name: "it does not wait", bend: bend{pause: func(int) time.Duration { return 0 }}, change: func(cfg *Config) { cfg.outage = time.Minute }, stops: true},
	{row: rowSecret, name: "another secret each time", bend: bend{hello: func(c *client) string {
		return fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":{},"_meta":{"acpod.dev/client":"%s %d"}}`, c.secret, c.next)
	}}},
	{row: rowResume, name: "another session", bend: bend{method: func(*client, bool) string { return "session/new" }}},
	{row: rowServed, name: "without its servers", bend: bend{params: func(c *client, method string) string {
		if method == "session/new" {
			return ""
		}
		return fmt.Sprintf(`{"cwd":"/","sessionId":%q}`, c.session)
	}}},
}

const nobodyKind = "client-check/there_is_none"

// later holds the answer to connect until session/new is answered.
func later() bend {
	held := ""
	return bend{
		serve: func(c *client, q asked) (string, bool) {
			if q.Method == acp.MethodMCPConnect && c.session == "" {
				held = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID.Raw(), c.serve(q))
				return "", true
			}
			return "", false
		},
		opened: func(c *client) {
			if held != "" {
				c.say(held)
				held = ""
			}
		},
	}
}

// Each client that is broken in one way is named by the row that is about it, and by no other.
func TestABrokenClientIsNamedByItsRow(t *testing.T) {
	t.Parallel()
	for _, one := range bent {
		t.Run(one.row+"/"+one.name, func(t *testing.T) {
			t.Parallel()
			cfg := quick()
			if one.change != nil {
				one.change(&cfg)
			}
			if one.silent {
				cfg.sooner = map[string]time.Duration{one.row: 500 * time.Millisecond}
			}
			if one.row == rowFirst {
				cfg.hold = time.Second
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if one.stops {
				cfg.Progress = func(_ string, status tally.Status, _ string) {
					if status == tally.Fail {
						stop()
					}
				}
			}
			generations := one.generations
			if generations == "" {
				generations = "A"
			}
			r, err := check(ctx, t, cfg, &client{generations: generations, bend: one.bend})
			if err != nil {
				t.Fatal(err)
			}
			if got := of(r, tally.Fail); !slices.Equal(got, []string{one.row}) {
				t.Errorf("it failed %q\n%s", got, explain(r))
			}
			if later := []string{rowEcho, rowSecret, rowResume, rowServed}; slices.Contains(later, one.row) && !slices.Contains(of(r, tally.Pass), rowBackLost) {
				t.Errorf("the run did not go on\n%s", explain(r))
			}
		})
	}
}

// Every row that can fail has a client that fails it.
func TestEveryRowCanFail(t *testing.T) {
	never := []string{rowBack1012, rowBack1013, rowBackLost} // a client need not come again
	for _, r := range rows {
		broken := false
		for _, one := range bent {
			broken = broken || one.row == r.name
		}
		if broken == slices.Contains(never, r.name) {
			t.Errorf("%q is failed by no client", r.name)
		}
	}
}

// With a key, in either way.
func TestAKeyIsTakenInEitherWay(t *testing.T) {
	t.Parallel()
	for name, dial := range map[string]func(*wire.Dial){
		"header":      func(d *wire.Dial) { d.Key = "sesame" },
		"subprotocol": func(d *wire.Dial) { d.Key, d.ByProtocol = "sesame", true },
		"both":        func(d *wire.Dial) { d.Key, d.Header = "sesame", http.Header{"Origin": {"https://anywhere.example"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := quick()
			cfg.Key = "sesame"
			r, err := check(t.Context(), t, cfg, &client{generations: "A", bend: onDial(dial)})
			if err != nil || !r.OK() || !slices.Contains(of(r, tally.Pass), rowKey) {
				t.Errorf("%v\n%s", err, explain(r))
			}
		})
	}
}
