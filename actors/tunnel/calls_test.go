package tunnel

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

func accountFor(t testing.TB) *kernel.Account {
	t.Helper()
	return kernel.New(kernel.Options{}).Account()
}

func TestACallEndsAtItsDeadlineAndItsClientIsTold(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		begun := time.Now()
		ticket := l.call(capability.Call{Tool: "x", Arguments: []byte(`{}`)})
		q := l.request("mcp/message", "")
		if frames := l.deadline(q, 170*time.Second); len(frames) != 2 {
			t.Errorf("told by %q", frames)
		}
		if a := l.ended(ticket); !errors.Is(a.Err, capability.ErrTimeout) || time.Since(begun) != 170*time.Second {
			t.Errorf("got %v after %v", a.Err, time.Since(begun))
		}
		l.answer(q, `{"content":["late"]}`)
		l.state(Ready)
	})
}

// deadline sleeps until just before and to the end of a call.
func (l *lab) deadline(q *kernel.Question, d time.Duration) []string {
	l.t.Helper()
	time.Sleep(d - time.Second)
	l.quiet()
	time.Sleep(time.Second)
	return l.cancelled(q)
}

func TestProgressExtendsItsOwnCallUpToTheLimit(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		var seen []string
		ticket := l.call(capability.Call{Tool: "x", Arguments: []byte(`{}`), Deadline: time.Now().Add(100 * time.Second), Limit: time.Now().Add(250 * time.Second),
			Progress: func(p []byte) { seen = append(seen, string(p)) }})
		begun := time.Now()
		q := l.request("mcp/message", "")
		if sent := string(l.out(q).Params); !strings.Contains(sent, `"_meta":{"progressToken":3}`) {
			t.Fatalf("sent %s", sent)
		}
		progress := func(token string) {
			l.inbound(acp.Inbound{Method: "notifications/progress", Params: []byte(`{"progressToken":` + token + `,"progress":1}`)})
		}
		time.Sleep(90 * time.Second)
		progress(`3`)
		time.Sleep(90 * time.Second)
		progress(`"3"`) // some clients turn the number into a text
		progress(`99`)  // of nobody
		progress(`null`)
		time.Sleep(69 * time.Second)
		l.quiet()
		time.Sleep(time.Second)
		l.cancelled(q)
		if a := l.ended(ticket); !errors.Is(a.Err, capability.ErrTimeout) || time.Since(begun) != 250*time.Second {
			t.Errorf("got %v after %v", a.Err, time.Since(begun))
		}
		if len(seen) != 2 || l.refused("progress") != 2 {
			t.Errorf("seen %q, %d refused", seen, l.refused("progress"))
		}
	})
}

func TestInGenerationCProgressNeedsItsRequestsID(t *testing.T) {
	run(t, acp.Declared{Name: "katashiro", ID: "srv-1", Form: acp.FormServerID}, Limits{}, func(l *lab) {
		l.fault(l.request("mcp/connect", ""), -32601, "unknown")
		l.answer(l.request("mcp/message", ""), `{"result":`+oneTool+`}`)
		l.state(Ready)
		n := 0
		ticket := l.call(capability.Call{Tool: "x", Arguments: []byte(`{}`), Progress: func([]byte) { n++ }})
		q := l.request("mcp/message", "")
		id := l.out(q).RequestID
		if id != "acpod-3-2" {
			t.Fatalf("the request id is %q", id)
		}
		in := acp.Inbound{Target: "srv-1", Stateless: true, Method: "notifications/progress", Params: []byte(`{"progressToken":2,"progress":1}`)}
		in.RequestID = "acpod-9-2"
		l.inbound(in)
		in.RequestID = id
		l.inbound(in)
		if n != 1 {
			t.Errorf("%d were taken", n)
		}
		l.answer(q, `{"result":{"content":[]}}`)
		l.ended(ticket)
	})
}

func TestCallsThatWereNotSentSaySo(t *testing.T) {
	notSent := func(t *testing.T, what string, a kernel.Answer, want error) {
		t.Helper()
		var unsent *capability.NotSent
		if !errors.As(a.Err, &unsent) || want != nil && !errors.Is(a.Err, want) {
			t.Errorf("%s: got %v", what, a.Err)
		}
	}
	run(t, declaredA, Limits{}, func(l *lab) {
		notSent(t, "while it connects", l.ended(l.call(capability.Call{Tool: "x"})), capability.ErrDetached)
		l.ready(oneTool)
		notSent(t, "after its deadline", l.ended(l.call(capability.Call{Tool: "x", Deadline: time.Now(), Limit: time.Now()})), capability.ErrTimeout)
		l.mu.Lock()
		l.refuse = &kernel.Overloaded{Scope: "outbound_bytes"}
		l.mu.Unlock()
		a := l.ended(l.call(capability.Call{Tool: "x", Arguments: []byte(`{}`)}))
		var full *kernel.Overloaded
		notSent(t, "no room", a, nil)
		if !errors.As(a.Err, &full) {
			t.Errorf("no room: %v", a.Err)
		}
		l.mu.Lock()
		l.refuse = ErrGone
		l.mu.Unlock()
		notSent(t, "a socket that is gone", l.ended(l.call(capability.Call{Tool: "x"})), capability.ErrDetached)
	})
	run(t, declaredA, Limits{Calls: 1}, func(l *lab) {
		l.ready(oneTool)
		first := l.call(capability.Call{Tool: "x"})
		q := l.request("mcp/message", "")
		notSent(t, "too many", l.ended(l.call(capability.Call{Tool: "x"})), nil)
		l.answer(q, `{}`)
		l.ended(first)
	})
	run(t, acp.Declared{Name: "katashiro", ID: "srv-1", Form: acp.FormServerID}, Limits{}, func(l *lab) {
		l.fault(l.request("mcp/connect", ""), -32601, "unknown")
		l.answer(l.request("mcp/message", ""), `{"result":`+oneTool+`}`)
		for code, sent := range map[int]bool{-33000: false, -33001: false, -33002: true} {
			ticket := l.call(capability.Call{Tool: "x"})
			l.fault(l.request("mcp/message", ""), code, "binding")
			a := l.ended(ticket)
			var unsent *capability.NotSent
			if errors.As(a.Err, &unsent) == sent {
				t.Errorf("%d: got %v", code, a.Err)
			}
		}
	})
}

func TestCallsInFlightAreAnsweredAtOnceWhenTheirClientVanishes(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		ticket := l.call(capability.Call{Tool: "x"})
		l.request("mcp/message", "")
		begun := time.Now()
		close(l.gone)
		if a := l.ended(ticket); !errors.Is(a.Err, capability.ErrDetached) || time.Since(begun) != 0 {
			t.Errorf("got %v after %v", a.Err, time.Since(begun))
		}
		l.over()
	})
}

func TestAResultThatTheSessionHasNoRoomForIsRefusedAndFreed(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		ticket := l.call(capability.Call{Tool: "x"})
		q := l.request("mcp/message", "")
		q.Fail(fmt.Errorf("the answer: %w", &kernel.Overloaded{Scope: "session_bytes"}))
		var full *kernel.Overloaded
		if a := l.ended(ticket); !errors.As(a.Err, &full) {
			t.Errorf("got %v", a.Err)
		}
	})
}

func TestWhatAClientSendsOtherwiseIsDroppedAndCounted(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		for _, method := range []string{"notifications/message", "notifications/resources/updated", "sampling/createMessage", "x"} {
			l.inbound(acp.Inbound{Method: method, Params: []byte(`{}`)})
		}
		if n := l.refused("inbound"); n != 4 {
			t.Errorf("%d are counted", n)
		}
		l.quiet()
		l.state(Ready)
	})
}

func TestAnErrorOfTheServerIsPassedOnAsItCame(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		ticket := l.call(capability.Call{Tool: "x"})
		l.request("mcp/message", "").Fail(jsonrpc.ParseError([]byte(`{"code":-32000,"message":"busy","data":{"x":1}}`)))
		var fault *jsonrpc.Error
		if a := l.ended(ticket); !errors.As(a.Err, &fault) || string(fault.Raw()) != `{"code":-32000,"message":"busy","data":{"x":1}}` {
			t.Errorf("got %v", a.Err)
		}
	})
}
