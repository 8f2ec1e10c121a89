package caller

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// facade answers each POST as a test says and executes what it is asked for in the ledger.
type facade struct {
	calls  *ledger.Calls
	answer func(w http.ResponseWriter, id string, s ledger.Signature)
	mu     sync.Mutex
	seen   []string
}

func (f *facade) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	frame, _ := jsonrpc.Scan(body)
	f.mu.Lock()
	f.seen = append(f.seen, frame.Method)
	f.mu.Unlock()
	if frame.Kind != jsonrpc.Request {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	o, _ := jsonrpc.ParseObject(frame.Params)
	raw, _ := o.Get("arguments")
	o, _ = jsonrpc.ParseObject(raw)
	arguments, _ := o.Get("arguments")
	o, _ = jsonrpc.ParseObject(arguments)
	number, _ := o.Get("n")
	n, _ := jsonrpc.Int(number)
	f.answer(w, string(frame.ID.Raw()), f.calls.Execute(int(n), 5, arguments))
}

func signed(s ledger.Signature) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":"x"}],"isError":false,"_meta":{"chaos":{"call":%d,"session":%d,"sum":%d,"execution":%d}}}`, s.Number, s.Session, s.Sum, s.Execution)
}

func callers(t *testing.T, faults string, answer func(http.ResponseWriter, string, ledger.Signature)) (*Callers, *facade, *invariant.Book) {
	t.Helper()
	set, err := fault.Parse(faults)
	if err != nil {
		t.Fatal(err)
	}
	book := invariant.NewBook(nil)
	f := &facade{calls: ledger.NewCalls(book), answer: answer}
	server := httptest.NewServer(f)
	c := New(Options{
		Dice: fault.NewDice(1), Faults: set, Book: book, Calls: f.calls, Tally: ledger.NewTally(), Tools: []Tool{{Name: "katashiro.click"}}, Rate: 200,
		Pick:  func(func(int) int) (Target, bool) { return Target{Session: 5, URL: server.URL, Token: "t"}, true },
		Bound: 10 * time.Second, Deadline: 9 * time.Second, Request: 1 << 20, Result: 4096, Patient: 10 * time.Millisecond, Open: 100,
	})
	t.Cleanup(func() { c.Idle(); server.Close() })
	return c, f, book
}

func TestAnAnswerIsReadForWhatItIs(t *testing.T) {
	rpc := func(id, rest string) string { return `{"jsonrpc":"2.0","id":` + id + `,` + rest + `}` }
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, string, ledger.Signature)
		ends   string
		breaks invariant.Name
	}{
		{"a result", func(w http.ResponseWriter, id string, s ledger.Signature) {
			fmt.Fprint(w, rpc(id, `"result":`+signed(s)))
		}, "result", ""},
		{"a result in a stream", func(w http.ResponseWriter, id string, s ledger.Signature) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: %s\n\n", rpc(id, `"result":`+signed(s)))
		}, "result", ""},
		{"two results in a stream", func(w http.ResponseWriter, id string, s ledger.Signature) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", rpc(id, `"result":`+signed(s)), rpc(id, `"result":`+signed(s)))
		}, "result", invariant.AnsweredOnce},
		{"another's answer", func(w http.ResponseWriter, _ string, s ledger.Signature) {
			fmt.Fprint(w, rpc("99", `"result":`+signed(s)))
		}, "rpc_error", invariant.AnsweredOnce},
		{"another's result", func(w http.ResponseWriter, id string, s ledger.Signature) {
			s.Session++
			fmt.Fprint(w, rpc(id, `"result":`+signed(s)))
		}, "result", invariant.OutcomeTrue},
		{"a result over its bound", func(w http.ResponseWriter, id string, s ledger.Signature) {
			fmt.Fprint(w, rpc(id, `"result":`+strings.Replace(signed(s), `"x"`, `"`+strings.Repeat("x", 5000)+`"`, 1)))
		}, "result", invariant.Told},
		{"a refusal", func(w http.ResponseWriter, id string, _ ledger.Signature) {
			fmt.Fprint(w, rpc(id, `"result":{"content":[{"type":"text","text":"?"}],"isError":true,"_meta":{"acpod.dev/refusal":"outcome_unknown"}}`))
		}, "outcome_unknown", ""},
		{"a refusal that is not true", func(w http.ResponseWriter, id string, _ ledger.Signature) {
			fmt.Fprint(w, rpc(id, `"result":{"content":[{"type":"text","text":"?"}],"isError":true,"_meta":{"acpod.dev/refusal":"timeout"}}`))
		}, "timeout", invariant.OutcomeTrue},
		{"a refusal in a word of nobody's", func(w http.ResponseWriter, id string, _ ledger.Signature) {
			fmt.Fprint(w, rpc(id, `"result":{"content":[{"type":"text","text":"?"}],"isError":true,"_meta":{"acpod.dev/refusal":"sorry"}}`))
		}, "sorry", invariant.Told},
		{"an error", func(w http.ResponseWriter, id string, _ ledger.Signature) {
			fmt.Fprint(w, rpc(id, `"error":{"code":-32603,"message":"no"}`))
		}, "rpc_error", ""},
		{"a status", func(w http.ResponseWriter, _ string, _ ledger.Signature) { w.WriteHeader(503) }, "http_refused", ""},
		{"nonsense", func(w http.ResponseWriter, _ string, _ ledger.Signature) { fmt.Fprint(w, `{"jsonrpc":`) }, "rpc_error", invariant.AnsweredOnce},
		{"a cut connection", func(http.ResponseWriter, string, ledger.Signature) { panic(http.ErrAbortHandler) }, "connection_cut", invariant.AnsweredOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, f, book := callers(t, "none", test.answer)
			c.call(1, time.Now())
			f.calls.Close()
			if ends := c.o.Tally.Ends(); ends[test.ends] != 1 {
				t.Errorf("it ended as %v, want %s", ends, test.ends)
			}
			broken := book.Broken()
			if test.breaks == "" && len(broken) != 0 || test.breaks != "" && (len(broken) != 1 || broken[0] != test.breaks) {
				t.Errorf("broken are %v, want %q: %+v", broken, test.breaks, book.Verdicts())
			}
		})
	}
}

func TestCallsAreMadeAtTheirRateAndAllEnd(t *testing.T) {
	c, f, book := callers(t, "none", func(w http.ResponseWriter, id string, s ledger.Signature) {
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":`+id+`,"result":`+signed(s)+`}`)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c.Run(ctx)
	f.calls.Close()
	l := c.o.Tally.Latency()
	if l.N < 100 || l.N > 300 || len(book.Broken()) != 0 || c.Open() != 0 || c.Bytes() == 0 {
		t.Errorf("%d calls in a second at 200 a second; broken are %v; %d are open", l.N, book.Broken(), c.Open())
	}
}

func TestAnAbortedCallIsRepeatedUnderItsKeyAndNotCountedAsLost(t *testing.T) {
	c, f, book := callers(t, "abort:1", func(w http.ResponseWriter, id string, s ledger.Signature) {
		if s.Execution == 1 {
			time.Sleep(300 * time.Millisecond)
		}
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":`+id+`,"result":`+signed(s)+`}`) // a repeat is executed again: a facade without keys
	})
	for number := range 12 {
		c.call(number, time.Now())
	}
	f.calls.Close()
	ends := c.o.Tally.Ends()
	if ends["aborted"] == 0 || ends["connection_cut"] != 0 || ends["again_result"] == 0 {
		t.Errorf("the calls ended as %v", ends)
	}
	if broken := book.Broken(); len(broken) != 1 || broken[0] != invariant.ExecutedOnce {
		t.Errorf("a facade that executes a repeat again broke %v", broken)
	}
}

func TestAClosedRequestOfACallThatEndsAtOnceIsNoted(t *testing.T) {
	for _, tool := range []Tool{{Name: "katashiro.read_page", ReadOnly: true}, {Name: "katashiro.click"}} {
		c, f, _ := callers(t, "abort:1", func(http.ResponseWriter, string, ledger.Signature) { time.Sleep(300 * time.Millisecond) })
		c.o.Tools = []Tool{tool}
		for number := range 12 {
			p := c.plan(number, Target{}, c.o.Dice.Of("call", 0, number))
			c.call(number, time.Now())
			if left := !f.calls.Left(number).IsZero(); left != (tool.ReadOnly || p.modern && p.key == "") {
				t.Errorf("the request of call %d is closed (it only reads: %v; modern: %v); that ends it at once: %v", number, tool.ReadOnly, p.modern, left)
			}
			if p.doomed && tool.ReadOnly && !f.calls.Begun(number) {
				t.Errorf("the doomed call %d was left before it was executed", number)
			}
		}
	}
}

func TestATokenThatShouldBeDeadAndIsNotIsNamed(t *testing.T) {
	for word, bad := range map[string]bool{"unknown": false, "detached": true} {
		c, _, _ := callers(t, "none", func(w http.ResponseWriter, id string, _ ledger.Signature) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"?"}],"isError":true,"_meta":{"acpod.dev/refusal":"`+word+`"}}}`)
		})
		target, _ := c.o.Pick(nil)
		if why := c.Revoked(t.Context(), target.URL, "dead"); (why != "") != bad {
			t.Errorf("a call with a dead token was refused as %s: %q", word, why)
		}
	}
}

func TestAConnectionMayEndForARequestThatIsNotThereAndForNoOther(t *testing.T) {
	second := time.Second
	for _, test := range []struct {
		name    string
		reused  bool
		dialled time.Duration // before the request got the connection
		write   error
		unsaid  bool // nothing is known of the writing
		within  time.Duration
		late    bool
	}{
		{"written at once", false, 0, nil, false, second * 8, false},
		{"written at once, on a connection that served others long", true, time.Hour, nil, false, second * 8, false},
		{"the connection had waited too long for its first request", false, 10 * second, nil, false, second * 8, true},
		{"written too slowly", true, 0, nil, false, 0, true},
		{"half of it was written", false, 0, io.ErrShortWrite, false, second * 8, true},
		{"nothing was written", false, 0, nil, true, second * 8, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s sending
			trace := httptrace.ContextClientTrace(s.trace(t.Context()))
			trace.GotConn(httptrace.GotConnInfo{Conn: &born{at: time.Now().Add(-test.dialled)}, Reused: test.reused})
			if !test.unsaid {
				trace.WroteRequest(httptrace.WroteRequestInfo{Err: test.write})
			}
			if late := s.late(test.within); late != test.late {
				t.Errorf("late is %v", late)
			}
		})
	}
}

func TestACallThatLastsIsNotCutBecauseItLasts(t *testing.T) {
	const deadline = 3 * time.Second // to write a small request on any machine
	c, f, book := callers(t, "none", func(http.ResponseWriter, string, ledger.Signature) {
		<-time.After(deadline + 100*time.Millisecond)
		panic(http.ErrAbortHandler)
	})
	c.o.Deadline = deadline
	c.call(1, time.Now())
	f.calls.Close()
	if broken := book.Broken(); len(broken) != 1 || broken[0] != invariant.AnsweredOnce {
		t.Errorf("it ended as %v and broke %v", c.o.Tally.Ends(), broken)
	}
}
