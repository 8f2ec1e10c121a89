package provider

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestRequestsOfAServerAreAnsweredAtOnce(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(dir, "a folder%")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := newFakeServer("buy")
	cfg := with(s)
	cfg.Roots = []string{filepath.Join(dir, "link"), real, filepath.Join(dir, "gone")}
	play(t, cfg, func(w *world) {
		w.discover()
		for request, want := range map[string]string{
			`"id":"a","method":"ping"`:                                                           `{"jsonrpc":"2.0","id":"a","result":{}}`,
			`"id":2,"method":"roots/list","params":{}`:                                           `{"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file://` + dir + `/a%20folder%25","name":"a folder%"},{"uri":"file://` + dir + `/gone","name":"gone"}]}}`,
			`"id":3,"method":"sampling/createMessage","params":{}`:                               `-32601`,
			`"id":4,"method":"no/such/method"`:                                                   `-32601`,
			`"id":5,"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}`: `{"action":"decline"}`,
			`"id":null,"method":"ping"`:                                                          `{"jsonrpc":"2.0","id":null,"result":{}}`,
		} {
			before := len(s.heard(""))
			s.last().say(`{"jsonrpc":"2.0",` + request + `}`)
			w.pass(0)
			answers := s.heard("")
			if len(answers) != before+1 {
				t.Fatalf("%s: %d answers", request, len(answers)-before)
			}
			a := answers[before]
			whole := string(jsonrpc.AppendResult(nil, a.id, []byte(a.result)))
			if !strings.Contains(whole, want) && !strings.Contains(a.failed, want) {
				t.Errorf("%s: %s %s", request, whole, a.failed)
			}
		}
	})
}

func TestAnElicitationGoesToTheOneSessionThatItCanBeAboutAndToNobodyElse(t *testing.T) {
	const form = `{"message":"sure?","requestedSchema":{"type":"object"}}`
	of := func(owner string, asks bool, got *[]capability.Elicitation) func(*capability.Call) {
		return func(c *capability.Call) {
			c.Owner = owner
			if asks {
				c.Elicit = func(e capability.Elicitation) { *got = append(*got, e) }
			}
		}
	}
	type who struct {
		owner string
		asks  bool
	}
	for name, c := range map[string]struct {
		calls   []who
		gone    []string // owners whose call was cancelled just now
		later   time.Duration
		about   int // 1: on the answer stream of the first call
		params  string
		reaches bool
	}{
		"one call":                 {calls: []who{{"#1", true}}, params: form, reaches: true},
		"two calls of one session": {calls: []who{{"#1", true}, {"#1", true}}, params: form, reaches: true},
		"a call that can be asked and one that cannot": {calls: []who{{"#1", false}, {"#1", true}}, params: form, reaches: true},
		"two sessions":                           {calls: []who{{"#1", true}, {"#2", true}}, params: form},
		"two sessions, and it names the call":    {calls: []who{{"#1", true}, {"#2", true}}, about: 1, params: form, reaches: true},
		"a call of a session that has just gone": {calls: []who{{"#1", true}}, gone: []string{"#2"}, params: form},
		"one that went a while ago":              {calls: []who{{"#1", true}}, gone: []string{"#2"}, later: 59*time.Second + time.Second - time.Millisecond, params: form},
		"one of the same session has just gone":  {calls: []who{{"#1", true}}, gone: []string{"#1"}, params: form, reaches: true},
		"anonymous":                              {calls: []who{{"-", true}}, params: form},
		"anonymous, and it names the call":       {calls: []who{{"-", true}}, about: 1, params: form},
		"a caller who cannot be asked":           {calls: []who{{"#1", false}}, params: form},
		"no call":                                {params: form},
		"an address":                             {calls: []who{{"#1", true}}, params: `{"mode":"url","url":"https://bank.example/pay","message":"?","elicitationId":"1"}`, reaches: true},
		"an address that is not https":           {calls: []who{{"#1", true}}, params: `{"mode":"url","url":"http://bank.example/pay","message":"?"}`},
		"an address that runs something":         {calls: []who{{"#1", true}}, params: `{"mode":"url","url":"javascript:alert(1)","message":"?"}`},
		"an address without a host":              {calls: []who{{"#1", true}}, params: `{"mode":"url","url":"https:///x","message":"?"}`},
		"two addresses":                          {calls: []who{{"#1", true}}, params: `{"mode":"url","url":"https://a.example","url":"http://b.example"}`},
		"another mode":                           {calls: []who{{"#1", true}}, params: `{"mode":"voice","message":"?"}`},
		"no params":                              {calls: []who{{"#1", true}}, params: `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer("buy")
			s.silent["tools/call"] = true
			play(t, with(s), func(w *world) {
				var got []capability.Elicitation
				w.discover()
				for _, owner := range c.gone {
					w.cancel(w.call("buy", of(owner, true, &got)))
				}
				w.pass(c.later)
				var open []*outcome
				for _, x := range c.calls {
					open = append(open, w.call("buy", of(x.owner, x.asks, &got)))
				}
				var about jsonrpc.ID
				if c.about > 0 {
					about = s.heard("tools/call")[0].id
				}
				s.last().sayAbout(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":`+c.params+`}`, about)
				w.pass(0)
				if !c.reaches {
					if a := s.heard(""); len(got) != 0 || len(a) != 1 || a[0].result != `{"action":"decline"}` {
						t.Fatalf("%d were asked, answered %+v", len(got), a)
					}
					return
				}
				if len(got) != 1 || got[0].Provider != "shop" || string(got[0].Params) != c.params || len(s.heard("")) != 0 {
					t.Fatalf("%+v, %+v", got, s.heard(""))
				}
				got[0].Answer([]byte(`{"action":"accept","content":{"n":1}}`), nil)
				got[0].Answer([]byte(`{"action":"accept","content":{"n":2}}`), nil)
				w.pass(0)
				if a := s.heard(""); len(a) != 1 || string(a[0].id.Raw()) != `"q"` || a[0].result != `{"action":"accept","content":{"n":1}}` {
					t.Errorf("%+v", a)
				}
				for _, o := range open {
					w.cancel(o)
				}
			})
		})
	}
}

func TestAQuestionEndsWithItsCallAndNotMoreThanAFewAreOpen(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		var got []capability.Elicitation
		o := w.call("buy", func(c *capability.Call) { c.Elicit = func(e capability.Elicitation) { got = append(got, e) } })
		for i := range maxAsked + 1 {
			s.last().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"?"}}`, i))
		}
		w.pass(0)
		if a := s.heard(""); len(got) != maxAsked || len(a) != 1 || a[0].result != `{"action":"decline"}` {
			t.Fatalf("%d questions, %+v", len(got), a)
		}
		w.pass(10 * time.Minute) // a user may take longer than a server
		if o.ended {
			t.Fatalf("%+v", o)
		}
		got[0].Answer(nil, &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: "what?"})
		got[1].Answer([]byte(`"no object"`), nil)
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		w.pass(0)
		w.cancel(o)
		answers := s.heard("")
		if len(answers) != maxAsked || !answers[1].has("what?") && !answers[2].has("what?") {
			t.Fatalf("%d answers: %+v", len(answers), answers)
		}
		for _, a := range answers[3:] {
			if a.result != `{"action":"cancel"}` {
				t.Errorf("%+v", a)
			}
		}
		got[5].Answer([]byte(`{"action":"accept"}`), nil) // too late
		w.pass(0)
		if len(s.heard("")) != maxAsked {
			t.Errorf("%+v", s.heard(""))
		}
	})
}

func TestALogRecordReachesTheOneCallAndItsPayloadIsNeverLogged(t *testing.T) {
	var log bytes.Buffer
	s := newFakeServer("buy", "slow")
	s.silent["tools/call"] = true
	cfg := with(s)
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	play(t, cfg, func(w *world) {
		var a, b []string
		one := w.call("buy", func(c *capability.Call) { c.Log = func(p []byte) { a = append(a, string(p)) } })
		say := func(about jsonrpc.ID) {
			s.last().sayAbout(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"the password is swordfish"}}`, about)
			w.pass(0)
		}
		say(jsonrpc.ID{})
		if len(a) != 1 || !strings.Contains(a[0], "swordfish") {
			t.Fatalf("%q", a)
		}
		two := w.call("slow", func(c *capability.Call) { c.Log = func(p []byte) { b = append(b, string(p)) } })
		say(jsonrpc.ID{})
		if len(a) != 1 || len(b) != 0 {
			t.Errorf("whose it is cannot be told: %q %q", a, b)
		}
		say(s.heard("tools/call")[1].id)
		if len(a) != 1 || len(b) != 1 {
			t.Errorf("it names its call: %q %q", a, b)
		}
		for range 100 {
			say(jsonrpc.ID{})
		}
		text, refused := log.String(), w.refused("log_records")
		if strings.Contains(text, "swordfish") || !strings.Contains(text, "level=warning") || !strings.Contains(text, "bytes=54") || refused < 80 {
			t.Errorf("%d of them were not logged: %.600s", refused, text)
		}
		w.cancel(one)
		w.cancel(two)
	})
}

func TestAServerWithALogIsToldTheLevel(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s, func(e *mcpjson.Server) { e.LogLevel = "debug" }), func(w *world) {
		w.discover()
		if got := s.heard("logging/setLevel"); len(got) != 1 || got[0].params != `{"level":"debug"}` {
			t.Errorf("%+v", got)
		}
	})
}

func TestAServerThatDoesNotAnswerAPingIsConnectedAnew(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	play(t, with(s, func(e *mcpjson.Server) { e.PingInterval, e.PingTimeout = 30*time.Second, 2*time.Second }), func(w *world) {
		w.discover()
		w.pass(95 * time.Second)
		if n := len(s.heard("ping")); n != 3 || s.dials() != 1 {
			t.Fatalf("%d pings, %d connections", n, s.dials())
		}
		s.set(func() { s.silent["tools/call"], s.answer = true, nil })
		slow := w.call("buy")
		w.pass(59 * time.Second)
		if n := len(s.heard("ping")); n != 3 {
			t.Errorf("it was asked while it was at work: %d", n)
		}
		w.cancel(slow)
		s.set(func() { s.silent["ping"] = true })
		w.pass(20 * time.Second)
		if s.first().ctx.Err() == nil || s.dials() != 2 || w.state() != capability.Ready {
			t.Errorf("%d connections, %v", s.dials(), w.state())
		}
	})
}
