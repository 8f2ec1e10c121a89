package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// pages makes a server answer tools/list page by page: next tells the elements and the cursor behind a cursor.
func pages(s *fakeServer, next func(cursor string) (elements, after string)) {
	s.answer = func(l *fakeLink, m said) bool {
		if m.method != "tools/list" {
			return false
		}
		o, _ := jsonrpc.ParseObject([]byte(m.params))
		cursor, _ := o.Text("cursor")
		elements, after := next(cursor)
		result := `{"tools":[` + elements + `]`
		if after != "" {
			result += `,"nextCursor":"` + after + `"`
		}
		l.reply(m, result+"}")
		return true
	}
}

func TestAllPagesAreListed(t *testing.T) {
	s := newFakeServer()
	pages(s, func(cursor string) (string, string) {
		n := 0
		_, _ = fmt.Sscan(cursor, &n)
		if n == 9 {
			return `{"name":"last","inputSchema":{}}`, ""
		}
		return fmt.Sprintf(`{"name":"t%d","inputSchema":{}}`, n), fmt.Sprint(n + 1)
	})
	play(t, with(s), func(w *world) {
		if o := w.discover(); !o.ended || o.err != nil {
			t.Fatalf("%+v", o)
		}
		if n := len(w.tools().List.All()); n != 10 || w.tools().Reason != "" || w.node("shop").Attrs["tools"] != 10 {
			t.Errorf("%d tools, %q", n, w.tools().Reason)
		}
	})
}

func TestAListThatDoesNotEndIsCutAndSaysSo(t *testing.T) {
	for _, c := range []struct {
		name   string
		next   func(string) (string, string)
		tools  int
		reason string
		scope  string
	}{
		{"a cursor that comes again", func(c string) (string, string) { return `{"name":"t` + c + `","inputSchema":{}}`, "again" }, 2, "repeats a cursor", "tool_cursor"},
		{"a hundred pages", func(c string) (string, string) { return `{"name":"t` + c + `","inputSchema":{}}`, c + "x" }, 100, "after 100 pages", "tool_pages"},
		{"ten thousand tools", func(c string) (string, string) {
			var b strings.Builder
			for i := range 3000 {
				fmt.Fprintf(&b, `,{"name":"t%s%d","inputSchema":{}}`, c, i)
			}
			return b.String()[1:], c + "x"
		}, 10_000, "after 10000 tools", "tools"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFakeServer()
			pages(s, c.next)
			play(t, with(s), func(w *world) {
				w.discover()
				if n := len(w.tools().List.All()); n != c.tools || !strings.Contains(w.tools().Reason, c.reason) || w.refused(c.scope) != 1 {
					t.Errorf("%d tools, %q, %v", n, w.tools().Reason, w.node("shop").Refused)
				}
				if w.state() != capability.Ready {
					t.Error(w.state())
				}
			})
		})
	}
}

func TestOneOddToolHidesNoneOfItsSiblings(t *testing.T) {
	for element, want := range map[string]struct {
		schema, reason string
	}{
		`{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`: {`{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		`{"name":"x","inputSchema":{}}`:                                                    {`{"type":"object"}`, ""},
		`{"name":"x"}`:                                                                     {`{"type":"object"}`, ""},
		`{"name":"x","inputSchema":null}`:                                                  {`{"type":"object"}`, ""},
		`{"name":"x","inputSchema":true}`:                                                  {`{"type":"object"}`, ""},
		`{"name":"x","inputSchema":{"type":"object","required":null}}`:                     {`{"type":"object"}`, ""},
		`{"name":"x","inputSchema":{"required":null,"properties":null}}`:                   {`{"type":"object"}`, ""},
		`{"name":"x","inputSchema":{"anyOf":[{"type":"object"}], "x" : 1}}`:                {`{"anyOf":[{"type":"object"}], "x" : 1}`, ""},
		`{"name":"x","inputSchema":{"type":["object","null"]}}`:                            {`{"type":["object","null"]}`, ""},
		`{"name":"x","inputSchema":"any"}`:                                                 {"", "inputSchema must be an object"},
		`{"name":"x","inputSchema":false}`:                                                 {"", "inputSchema must be an object"},
		`{"name":"x","inputSchema":{},"inputSchema":{}}`:                                   {"", "stands twice"},
		`{"name":7,"inputSchema":{}}`:                                                      {"", "name must be a string"},
		`{"inputSchema":{}}`:                                                               {"", "one without a name"},
		`[]`:                                                                               {"", "is no object"},
		`{"name":"a\tb","inputSchema":{}}`:                                                 {"", "printable characters"},
		`{"name":"x","inputSchema":{},"execution":{"taskSupport":"required"}}`:             {"", "can only be called as a task"},
		`{"name":"x","inputSchema":{},"execution":{"taskSupport":"optional"}}`:             {`{"type":"object"}`, ""},
		`{"name":"x","inputSchema":{"description":"` + strings.Repeat("x", 70<<10) + `"}}`: {"", "limits.tool_schema_bytes"},
		`{"name":"x","description":"` + strings.Repeat("x", 140<<10) + `"}`:                {"", "limits.tool_schema_bytes"},
	} {
		s := newFakeServer()
		s.tools = `{"name":"before","inputSchema":{"type":"object"}},` + element + `,{"name":"after","inputSchema":{"type":"object"}}`
		play(t, with(s), func(w *world) {
			w.discover()
			list := w.tools().List
			all := list.All()
			if len(all) < 2 || all[0].Name != "before" || all[len(all)-1].Name != "after" {
				t.Fatalf("%.80s: %d tools", element, len(all))
			}
			x, ok := list.Tool("x")
			switch {
			case want.reason != "":
				if ok || !strings.Contains(w.tools().Reason, want.reason) || !strings.Contains(w.tools().Reason, "1 of its tools") {
					t.Errorf("%.80s: listed %v, %q", element, ok, w.tools().Reason)
				}
			case !ok || string(x.InputSchema) != want.schema || string(x.Raw) != element || w.tools().Reason != "":
				t.Errorf("%.80s: %v %+v, %q", element, ok, x, w.tools().Reason)
			}
		})
	}
}

func TestEachToolThatIsLeftOutIsNamedWithItsReasonUpToABound(t *testing.T) {
	s := newFakeServer()
	s.tools = `{"name":7},{"name":"a","inputSchema":7},{"name":"ok"},{"name":"t","execution":{"taskSupport":"required"}},[],{"name":"b","inputSchema":7},{"name":"c","inputSchema":7}`
	play(t, with(s), func(w *world) {
		w.discover()
		want := `5 of its tools are left out (one without a name: name must be a string; "a": inputSchema must be an object; one without a name: is no object; "b": inputSchema must be an object; …); ` +
			`1 of its tools are left out ("t": can only be called as a task)`
		if now := w.tools(); now.Reason != want || len(now.List.All()) != 1 {
			t.Errorf("%d tools, %s", len(now.List.All()), now.Reason)
		}
	})
}

func TestAStormOfChangesIsCoalescedAndAnUnchangedListPublishesNothing(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s), func(w *world) {
		w.discover()
		before := w.tools()
		for range 200 {
			s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		w.pass(10 * time.Second)
		if n := len(s.heard("tools/list")); n != 2 || w.tools() != before {
			t.Errorf("%d lists, published anew: %v", n, w.tools() != before)
		}
		s.set(func() { s.tools += `,{"name":"sell","inputSchema":{}}` })
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.pass(time.Second)
		if n := len(w.tools().List.All()); n != 2 {
			t.Errorf("%d tools a second later", n)
		}
	})
}

func TestAServerThatSaysAfterEachListThatItHasChangedIsAskedSeldom(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = func(l *fakeLink, m said) bool {
		if m.method == "tools/list" {
			l.usual(m)
			l.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			return true
		}
		return ok(l, m)
	}
	play(t, with(s), func(w *world) {
		w.discover()
		before := w.tools()
		w.pass(time.Minute)
		if n := len(s.heard("tools/list")); n < 50 || n > 90 || w.tools() != before {
			t.Errorf("%d lists in a minute", n)
		}
		if o := w.call("buy"); o.err != nil {
			t.Error(o.err)
		}
	})
}

func TestWhatChangedWhileTheServerCouldTellNobodyIsSeen(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s, func(*mcpjson.Server) {}), func(w *world) {
		w.discover()
		s.set(func() { s.tools += `,{"name":"sell"}` })
		w.pass(time.Hour)
		s.last().to.(link.Listener).Missed()
		w.pass(time.Second)
		if n := len(w.tools().List.All()); n != 2 {
			t.Errorf("%d tools", n)
		}
	})
}

func TestAChangeDuringARefreshIsSeen(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s), func(w *world) {
		w.discover()
		s.set(func() { s.silent["tools/list"] = true })
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.pass(time.Second)
		lists := s.heard("tools/list")
		if len(lists) != 2 {
			t.Fatalf("%d lists", len(lists))
		}
		for range 50 {
			s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.last().reply(lists[1], `{"tools":[{"name":"buy","inputSchema":{"type":"object"}}]}`)
		s.set(func() { s.silent, s.tools = map[string]bool{}, `{"name":"new"}` })
		w.pass(time.Second)
		if _, ok := w.tools().List.Tool("new"); !ok || len(s.heard("tools/list")) != 3 {
			t.Errorf("%d lists", len(s.heard("tools/list")))
		}
	})
}

func TestARefreshThatFailsLeavesTheListBefore(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s), func(w *world) {
		w.discover()
		before := w.tools()
		s.set(func() { s.tools = `}` })
		s.answer = func(l *fakeLink, m said) bool {
			if m.method == "tools/list" {
				l.reply(m, `{"tools":7}`)
			}
			return m.method == "tools/list"
		}
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.pass(time.Second)
		if w.tools() != before || w.refused("list") != 1 {
			t.Errorf("%v, %d", w.tools() != before, w.refused("list"))
		}
	})
}

func TestAtRestNothingIsChargedAndASmallListIsStillShown(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 100 << 10} {
		s := newFakeServer()
		for i := range 5 {
			s.tools += fmt.Sprintf(`,{"name":"t%d","description":%q,"inputSchema":{}}`, i, strings.Repeat("x", size))
		}
		s.tools = s.tools[1:]
		s.answer = ok
		cfg := with(s)
		cfg.Set.IdleTTL = time.Minute
		play(t, cfg, func(w *world) {
			w.call("t1")
			if used := w.node("shop").Account.Used; used < int64(5*size) {
				t.Errorf("%s: a list of %d bytes is charged with %d", name, 5*size, used)
			}
			before := w.tools().List
			w.pass(2 * time.Minute)
			if used := w.k.Account().Used(); used != 0 || w.state() != capability.Idle {
				t.Errorf("%s: %d bytes are charged, %v", name, used, w.state())
			}
			if shown := w.tools().List != nil; shown != (size < 1000) {
				t.Errorf("%s: shown %v", name, shown)
			}
			w.call("t1")
			if same := w.tools().List == before; same != (size < 1000) || w.node("shop").Account.Used < int64(5*size) {
				t.Errorf("%s: the same list %v, %d bytes", name, same, w.node("shop").Account.Used)
			}
		})
	}
}

func TestAServerWithoutToolsSaysSo(t *testing.T) {
	s := newFakeServer()
	s.answer = func(l *fakeLink, m said) bool {
		if m.method == "initialize" {
			l.reply(m, `{"protocolVersion":"2025-11-25","capabilities":{}}`)
		}
		return m.method == "initialize"
	}
	play(t, with(s, func(e *mcpjson.Server) { e.LogLevel = "debug" }), func(w *world) {
		w.discover()
		if len(w.tools().List.All()) != 0 || w.tools().Reason != "the server offers no tools" || w.state() != capability.Ready {
			t.Errorf("%+v", w.tools())
		}
		if len(s.heard("logging/setLevel")) != 0 {
			t.Error("it was asked for a log that it does not have")
		}
	})
}

func TestAChangedListThatCouldNotBeHadIsAskedForAgain(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s), func(w *world) {
		w.discover()
		s.set(func() { s.tools = `{"name":"new"}` })
		s.answer = func(l *fakeLink, m said) bool {
			if m.method == "tools/list" {
				l.reply(m, `{"tools":7}`)
			}
			return m.method == "tools/list"
		}
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.pass(5 * time.Second) // it is asked twice
		s.answer = ok
		w.pass(3 * time.Second)
		if _, ok := w.tools().List.Tool("new"); !ok || w.refused("list") != 2 {
			t.Errorf("it lists %d tools, and failed to %d times", len(w.tools().List.All()), w.refused("list"))
		}
		lists := len(s.heard("tools/list"))
		w.pass(time.Hour)
		if again := len(s.heard("tools/list")); again != lists {
			t.Errorf("it was asked %d times more", again-lists)
		}
	})
}

func TestANewChangeDoesNotWaitForTheNextAttemptAtAListThatFailed(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s), func(w *world) {
		w.discover()
		s.answer = func(l *fakeLink, m said) bool {
			if m.method == "tools/list" {
				l.reply(m, `{"tools":7}`)
			}
			return m.method == "tools/list"
		}
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.pass(40 * time.Second)
		s.set(func() { s.tools = `{"name":"new"}` })
		s.answer = ok
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.pass(time.Second)
		if _, ok := w.tools().List.Tool("new"); !ok {
			t.Errorf("a second later it lists %d tools", len(w.tools().List.All()))
		}
	})
}
