package provider

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// TestWhateverHappensInWhateverOrder plays servers that answer, fail, forget, refuse and die, and callers that call and cancel, at random, and looks
// at what must hold in the end: each call that was not cancelled was answered once, what was answered was the answer to that call, none was sent
// twice after it may have been accepted, never more than one connection of a server at a time, and no byte is charged.
func TestWhateverHappensInWhateverOrder(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := &chaos{rand: rand.New(rand.NewPCG(seed, 7)), accepted: map[string]int{}}
			cfg := Config{Set: mcpjson.Set{MaxConnected: 2, IdleTTL: 5 * time.Minute}, Rand: x.float}
			for i := range 3 {
				s := newFakeServer("buy", "sell")
				s.answer = x.answer
				x.servers = append(x.servers, s)
				cfg.Set.Servers = append(cfg.Set.Servers, mcpjson.Server{Name: string(rune('a' + i)), Kind: mcpjson.HTTP, URL: "http://127.0.0.1:1/", RequestTimeout: 20 * time.Second,
					Concurrency: i, Rate: float64(i), PingInterval: time.Duration(i) * 40 * time.Second})
			}
			cfg.Dial = func(r mcpjson.Resolved, modern bool) (link.Link, error) {
				return x.servers[r.Name[0]-'a'].dial(r, modern)
			}
			play(t, cfg, x.play)
		})
	}
}

type chaos struct {
	mu       sync.Mutex
	rand     *rand.Rand
	servers  []*fakeServer
	accepted map[string]int // by the argument of a call: how often a server took it
	open     []*begun
	owed     []owed
}

type begun struct {
	*outcome
	n         int
	cancelled bool
}

// owed is a request that a server has not answered yet.
type owed struct {
	l *fakeLink
	m said
}

func (x *chaos) float() float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rand.Float64()
}

func (x *chaos) n(n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rand.IntN(n)
}

// answer is what a server does with a message.
func (x *chaos) answer(l *fakeLink, m said) bool {
	switch m.method {
	case mcp.MethodToolsCall:
	case mcp.MethodInitialize, mcp.MethodToolsList, mcp.MethodPing:
		switch x.n(12) {
		case 0:
			return true // never
		case 1:
			l.to.Failed(m.id, &link.StatusError{Status: 503})
			return true
		case 2:
			l.say(string(jsonrpc.AppendError(nil, m.id, &jsonrpc.Error{Code: -32603, Message: "no"})))
			return true
		}
		return false
	default:
		return false
	}
	how := x.n(12)
	if how < 2 {
		l.to.Failed(m.id, []error{link.ErrSessionLost, fmt.Errorf("refused: %w", link.ErrUnsent)}[how])
		return true
	}
	x.mu.Lock()
	x.accepted[m.arguments()]++
	if how > 4 {
		x.owed = append(x.owed, owed{l, m})
	}
	x.mu.Unlock()
	if how == 2 {
		l.to.Failed(m.id, errCut)
	}
	return true
}

func (x *chaos) play(w *world) {
	for range 300 {
		x.step(w)
	}
	for _, s := range x.servers {
		s.set(func() { s.refuse, s.answer = nil, x.echo })
	}
	for range 60 { // whatever still waits runs out of time
		w.pass(time.Minute)
	}
	for _, b := range x.open {
		switch want := fmt.Sprintf(`{"n":%d}`, b.n); {
		case b.cancelled && b.ends > 1, !b.cancelled && b.ends != 1 && b.err == nil, b.ends > 1:
			w.t.Errorf("call %d has %d answers: %+v", b.n, b.ends, b.outcome)
		case b.result != "" && b.result != want:
			w.t.Errorf("call %d was answered with %s", b.n, b.result)
		}
	}
	for args, n := range x.accepted {
		if n > 1 {
			w.t.Errorf("%s was sent %d times", args, n)
		}
	}
	for _, s := range x.servers {
		if s.peak() > 1 {
			w.t.Errorf("%d connections of one server at a time", s.peak())
		}
	}
	if used := w.k.Account().Used(); used != 0 {
		w.t.Errorf("%d bytes are charged at rest", used)
	}
	if len(x.open) < 60 {
		w.t.Errorf("only %d calls", len(x.open))
	}
}

func (x *chaos) step(w *world) {
	s := x.servers[x.n(3)]
	l := s.last()
	up := l != nil && l.to != nil && l.ctx.Err() == nil
	switch how := x.n(20); {
	case how < 8:
		n := len(x.open)
		o := w.callOf(w.p.sources[x.n(3)], []string{"buy", "sell"}[x.n(2)], func(c *capability.Call) {
			c.Arguments, c.Owner = fmt.Appendf(nil, `{"n":%d}`, n), fmt.Sprint("#", x.n(3))
			c.Elicit = func(e capability.Elicitation) { e.Answer([]byte(`{"action":"decline"}`), nil) }
			c.Progress, c.Log = func([]byte) {}, func([]byte) {}
		})
		x.open = append(x.open, &begun{outcome: o, n: n})
	case how < 11:
		x.settle()
		w.pass(0)
	case how == 11 && len(x.open) > 0:
		if b := x.open[x.n(len(x.open))]; !b.cancelled && !b.ended {
			b.cancelled = true
			w.cancel(b.outcome)
		}
	case how == 12 && up:
		l.die([]error{errCut, nil, &link.ExitError{How: "exited with code 1"}}[x.n(3)])
		w.pass(0)
	case how == 13:
		s.set(func() {
			if s.refuse = nil; x.n(3) == 0 {
				s.refuse = []error{errCut, &link.AuthError{Status: 401}}[min(1, x.n(8))]
				if x.n(4) > 0 {
					s.refuse = errCut
				}
			}
		})
	case how == 14 && up:
		s.set(func() { s.tools = fmt.Sprintf(`{"name":"buy"},{"name":"sell"},{"name":"t%d"}`, x.n(5)) })
		l.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case how == 15 && up:
		l.say([]string{`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`, `{"jsonrpc":"2.0","id":2,"method":"roots/list"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`}[x.n(3)])
		w.pass(0)
	case how == 16:
		w.discover()
	default:
		w.pass(time.Duration(x.n(40_000)) * time.Millisecond)
	}
}

// echo answers each call at once.
func (x *chaos) echo(l *fakeLink, m said) bool {
	if m.method != mcp.MethodToolsCall {
		return false
	}
	args := m.arguments()
	x.mu.Lock()
	x.accepted[args]++
	x.mu.Unlock()
	l.reply(m, args)
	return true
}

// settle lets a server answer something that it owes.
func (x *chaos) settle() {
	x.mu.Lock()
	if len(x.owed) == 0 {
		x.mu.Unlock()
		return
	}
	i := x.rand.IntN(len(x.owed))
	o := x.owed[i]
	x.owed = append(x.owed[:i], x.owed[i+1:]...)
	x.mu.Unlock()
	o.l.reply(o.m, o.m.arguments())
}

// arguments are those of a tools/call.
func (m said) arguments() string {
	o, _ := jsonrpc.ParseObject([]byte(m.params))
	args, _ := o.Get("arguments")
	return string(args)
}
