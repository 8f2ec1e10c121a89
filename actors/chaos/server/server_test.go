package server

import (
	"encoding/json/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lxzan/gws"
	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// bench is a server and the pod's side of the socket on which it is declared.
type bench struct {
	t      *testing.T
	book   *invariant.Book
	calls  *ledger.Calls
	server *Server
	lags   bool // what the pod sends comes late
	pod    *gws.Conn
	heard  chan string
}

type ear struct {
	gws.BuiltinEventHandler
	opened chan *gws.Conn
	heard  chan string
}

func (e *ear) OnOpen(c *gws.Conn) { e.opened <- c }
func (e *ear) OnMessage(_ *gws.Conn, m *gws.Message) {
	e.heard <- m.Data.String()
	_ = m.Close()
}

func newBench(t *testing.T, generation Generation, behaviour Behaviour) *bench {
	t.Helper()
	e := &ear{opened: make(chan *gws.Conn, 1), heard: make(chan string, 64)}
	upgrader := gws.NewUpgrader(e, &gws.ServerOption{})
	var loops sync.WaitGroup
	loops.Add(1)
	httpServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if socket, err := upgrader.Upgrade(w, r); err == nil {
			loops.Go(socket.ReadLoop)
		}
	}))
	socket, err := wire.Open(t.Context(), wire.Dial{URL: "ws" + strings.TrimPrefix(httpServer.URL, "http") + "/"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, book: invariant.NewBook(nil), heard: e.heard}
	b.calls = ledger.NewCalls(b.book)
	b.server = &Server{Session: 3, ID: "srv-1", Generation: generation, Calls: b.calls, Book: b.book, Behaviour: behaviour}
	p := peer.New(socket, peer.Options{Name: "socket", Book: b.book, Serve: func(p *peer.Peer, f jsonrpc.Frame) {
		if IsCancel(f.Method) {
			b.server.Cancel(p, f.Params, b.lags)
		} else if id, mine := Target(f); mine && id == "srv-1" {
			b.server.Serve(p, f)
		}
	}})
	b.pod = <-e.opened
	t.Cleanup(func() {
		p.Reset()
		p.Wait()
		httpServer.Close()
		loops.Done()
		loops.Wait()
	})
	return b
}

// ask sends a request of the pod's and gives the answer.
func (b *bench) ask(id int, method string, params []byte) string {
	b.t.Helper()
	b.send(jsonrpc.AppendRequest(nil, jsonrpc.IntID(int64(id)), method, params))
	return b.next()
}

func (b *bench) send(frame []byte) {
	b.t.Helper()
	if err := b.pod.WriteMessage(gws.OpcodeText, frame); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) next() string {
	b.t.Helper()
	select {
	case got := <-b.heard:
		return got
	case <-time.After(patience):
		b.t.Fatal("nothing came")
		return ""
	}
}

// The codec is the pod's way to speak a generation; the server must understand it.
func TestAServerSpeaksItsGeneration(t *testing.T) {
	for generation, codec := range map[Generation]acp.Codec{Gen0: acp.Gen0, GenA: acp.GenA, GenB: acp.GenB, GenC: acp.GenC} {
		t.Run(string(generation), func(t *testing.T) {
			b := newBench(t, generation, Behaviour{})
			id, target := "srv-1", "srv-1"
			if generation == Gen0 {
				id = "acp:srv-1"
			}
			if method, params, ok := codec.Connect(acp.Declared{ID: id}); ok {
				f, _ := jsonrpc.Scan([]byte(b.ask(1, method, params)))
				connected, err := codec.ParseConnected(f.Result)
				if err != nil {
					t.Fatal(err)
				}
				target = connected
			} else if f, _ := jsonrpc.Scan([]byte(b.ask(1, "mcp/connect", []byte(`{"serverId":"srv-1"}`)))); f.Error == nil {
				t.Error("generation C knows mcp/connect")
			}
			inner := func(id int, method, params string) []byte {
				t.Helper()
				outer, raw := codec.Message(target, "r", method, []byte(params))
				f, _ := jsonrpc.Scan([]byte(b.ask(id, outer, raw)))
				result, rpcErr := codec.Unwrap(f.Result)
				if rpcErr != nil || f.Error != nil {
					t.Fatalf("%s: %v %s", method, rpcErr, f.Error)
				}
				return result
			}
			var list struct{ Tools []struct{ Name string } }
			if err := json.Unmarshal(inner(2, "tools/list", "{}"), &list, json.MatchCaseInsensitiveNames(true)); err != nil || len(list.Tools) != 5 {
				t.Errorf("the list is %+v (%v)", list, err)
			}
			arguments := `{"n":9,"s":"x"}`
			b.calls.Begin(ledger.Call{Number: 9, Session: 3, Sum: ledger.Sum([]byte(arguments))})
			var result struct {
				Meta struct{ Chaos ledger.Signature } `json:"_meta"`
			}
			raw := inner(3, "tools/call", `{"name":"katashiro.click","arguments":`+arguments+`}`)
			if err := json.Unmarshal(raw, &result, json.MatchCaseInsensitiveNames(true)); err != nil || result.Meta.Chaos.Number != 9 || result.Meta.Chaos.Session != 3 {
				t.Errorf("the result is %s (%v)", raw, err)
			}
			if method, params, request, ok := codec.Disconnect(target); ok && request {
				b.ask(4, method, params)
			} else if ok {
				b.send(jsonrpc.AppendNotification(nil, method, params))
				b.ask(4, "mcp/connect", []byte(`{"acpId":"srv-1"}`)) // what was sent before is handled
			}
			if broken := b.book.Broken(); len(broken) != 0 {
				t.Errorf("broken are %v: %+v", broken, b.book.Verdicts())
			}
			if generation != GenC {
				for _, v := range b.book.Verdicts() {
					if v.Name == invariant.DisconnectedOnce && v.Exercised == 0 {
						t.Error("the disconnect was not entered")
					}
				}
			}
		})
	}
}

func call(n string) []byte {
	return []byte(`{"connectionId":"srv-1#1","method":"tools/call","params":{"name":"katashiro.click","arguments":{"n":` + n + `}}}`)
}

func TestAServerAnswersAsItIsToldTo(t *testing.T) {
	arguments := []byte(`{"n":1}`)
	for _, test := range []struct {
		name string
		deed Deed
		want []string // parts of the answers, in order
	}{
		{"plainly", Deed{}, []string{`"call":1,"session":3`}},
		{"twice", Deed{Twice: true}, []string{`"call":1`, "too much"}},
		{"with an error", Deed{Error: &jsonrpc.Error{Code: -32099, Message: "a\nb"}}, []string{`"code":-32099`}},
		{"late", Deed{After: 20 * time.Millisecond}, []string{`"call":1`}},
		{"with more", Deed{Pad: 5000}, []string{strings.Repeat("r", 5000)}},
		{"that it failed", Deed{IsError: true}, []string{`"isError":true`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, GenA, Behaviour{Execute: func(int) Deed { return test.deed }})
			b.calls.Begin(ledger.Call{Number: 1, Session: 3, Sum: ledger.Sum(arguments)})
			b.send(jsonrpc.AppendRequest(nil, jsonrpc.IntID(1), "mcp/message", call("1")))
			for _, part := range test.want {
				if got := b.next(); !strings.Contains(got, part) {
					t.Errorf("the answer is %.300s, want %.100s in it", got, part)
				}
			}
		})
	}
}

func TestACallThatIsNeverAnsweredHasToBeTakenBack(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		b := newBench(t, GenA, Behaviour{Execute: func(int) Deed { return Deed{Never: true} }})
		b.calls.Begin(ledger.Call{Number: 1, Session: 3, Sum: ledger.Sum([]byte(`{"n":1}`))})
		b.send(jsonrpc.AppendRequest(nil, jsonrpc.IntID(5), "mcp/message", call("1")))
		if cancelled {
			b.send(jsonrpc.AppendNotification(nil, "$/cancel_request", []byte(`{"requestId":5}`)))
		}
		b.ask(6, "mcp/connect", []byte(`{"acpId":"srv-1"}`)) // what was sent before is handled
		b.server.Overdue(time.Now().Add(time.Second), time.Minute)
		if broken := b.book.Broken(); len(broken) != 0 {
			t.Errorf("before it is overdue broken are %v", broken)
		}
		b.server.Overdue(time.Now().Add(2*time.Minute), time.Minute)
		broken := b.book.Broken()
		if cancelled && len(broken) != 0 || !cancelled && (len(broken) != 1 || broken[0] != invariant.CancelReaches) {
			t.Errorf("cancelled %v: broken are %v", cancelled, broken)
		}
	}
}

func TestACallThatNobodyMadeBreaksThePromise(t *testing.T) {
	b := newBench(t, GenA, Behaviour{})
	b.ask(1, "mcp/message", []byte(`{"connectionId":"srv-1#1","method":"tools/call","params":{"name":"katashiro.click","arguments":{}}}`))
	if broken := b.book.Broken(); len(broken) != 1 || broken[0] != invariant.ExecutedOnce {
		t.Errorf("broken are %v", broken)
	}
}

func TestADoomedCallLingersUntilItIsTakenBackOrSpared(t *testing.T) {
	params := []byte(`{"connectionId":"srv-1#1","method":"tools/call","params":{"name":"katashiro.click","arguments":{"n":1},"_meta":{"progressToken":9}}}`)
	for _, spared := range []bool{true, false} {
		b := newBench(t, GenA, Behaviour{})
		b.calls.Begin(ledger.Call{Number: 1, Session: 3, Sum: ledger.Sum([]byte(`{"n":1}`)), Doomed: true})
		b.send(jsonrpc.AppendRequest(nil, jsonrpc.IntID(5), "mcp/message", params))
		for range 2 {
			if got := b.next(); !strings.Contains(got, `"method":"notifications/progress","params":{"progressToken":9,`) || !strings.Contains(got, `"connectionId":"srv-1#1"`) {
				t.Fatalf("it says %.300s", got)
			}
		}
		if !b.calls.Begun(1) {
			t.Error("it was not entered as executed")
		}
		if spared {
			b.calls.Spare(1)
			for end := time.Now().Add(patience); b.holds() > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			}
		}
		b.server.Overdue(time.Now().Add(2*time.Minute), time.Minute)
		broken := b.book.Broken()
		if spared && len(broken) != 0 || !spared && (len(broken) != 1 || broken[0] != invariant.CancelReaches) {
			t.Errorf("spared %v: broken are %v", spared, broken)
		}
	}
}

func (b *bench) holds() int {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	return len(b.server.held)
}

func TestACallWhoseCallerIsGoneHasToBeTakenBackSoon(t *testing.T) {
	for _, test := range []struct {
		name                 string
		leaves, orphan, lags bool
		later                time.Duration
		breaks               bool
	}{
		{"long after its request was closed", true, false, false, TakenBack + time.Second, true},
		{"soon after its request was closed", true, false, false, TakenBack / 2, false},
		{"one that may run on", true, true, false, TakenBack + time.Second, false},
		{"one that somebody waits for", false, false, false, TakenBack + time.Second, false},
		{"on a link that lags", true, false, true, TakenBack + time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, GenA, Behaviour{Execute: func(int) Deed { return Deed{Never: true} }})
			b.lags = test.lags
			b.calls.Begin(ledger.Call{Number: 1, Session: 3, Sum: ledger.Sum([]byte(`{"n":1}`)), ReadOnly: true})
			b.send(jsonrpc.AppendRequest(nil, jsonrpc.IntID(5), "mcp/message", call("1")))
			b.ask(6, "mcp/connect", []byte(`{"acpId":"srv-1"}`)) // what was sent before is handled
			if test.leaves {
				b.calls.Leave(1, time.Now().Add(-test.later), test.orphan)
			}
			b.server.mu.Lock()
			for k, h := range b.server.held {
				h.since = h.since.Add(-time.Hour)
				b.server.held[k] = h
			}
			b.server.mu.Unlock()
			b.send(jsonrpc.AppendNotification(nil, "$/cancel_request", []byte(`{"requestId":5}`)))
			b.ask(7, "mcp/connect", []byte(`{"acpId":"srv-1"}`))
			broken := b.book.Broken()
			if test.breaks != (len(broken) == 1 && broken[0] == invariant.CancelReaches) || !test.breaks && len(broken) != 0 {
				t.Errorf("broken are %v", broken)
			}
		})
	}
}
