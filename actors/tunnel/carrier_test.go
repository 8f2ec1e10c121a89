package tunnel

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socket is a carrier whose client is a probe: the test reads each request from
// it and answers as a client would.
type socket struct {
	t     *testing.T
	k     *kernel.Kernel
	ref   kernel.Ref
	probe *kerneltest.Probe
	gone  chan struct{}
	stats Stats
	block func(what string) // called before anything is done, on the goroutine of the turn; nil = nothing blocks

	mu        sync.Mutex
	refuse    error // of the next requests
	bound     map[string]kernel.Ref
	taken     string // an id that is another tunnel's for good
	notified  []string
	farewells []Farewell
	hold      chan struct{} // when set, Disconnect waits for it
	sent      map[*kernel.Question]Out
}

// at lets the test hold a turn in what the tunnel does with its carrier.
func (s *socket) at(what string) {
	if s.block != nil {
		s.block(what)
	}
}

// wire is one request on the wire.
type wire struct{ Out }

func (s *socket) Rank() uint64 { return 7 }

func (s *socket) Request(c *kernel.Ctx, out Out) (kernel.Ticket, error) {
	s.at("request " + string(out.Params))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return kernel.Ticket{}, s.refuse
	}
	out.Params = slices.Concat(out.Params, out.Body, out.Tail)
	out.Bytes.Release() // the frame was written
	return c.Request(s.ref, wire{out})
}

func (s *socket) Notify(_, method string, params []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notified = append(s.notified, method+" "+string(params))
	return nil
}

func (s *socket) Disconnect(ctx context.Context, f Farewell) error {
	s.mu.Lock()
	s.farewells = append(s.farewells, f)
	hold := s.hold
	s.mu.Unlock()
	if hold == nil {
		return nil
	}
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *socket) Bind(id string, to kernel.Ref) error {
	s.at("bind")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.bound[id]; ok || id == s.taken {
		return ErrInUse
	}
	s.bound[id] = to
	return nil
}

func (s *socket) Unbind(id string, to kernel.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.bound[id]; id == s.taken || ok && other != to {
		return false
	}
	delete(s.bound, id)
	return true
}

func (s *socket) Gone() <-chan struct{} {
	s.at("gone")
	return s.gone
}

// said is every disconnect that left, as "method params".
func (s *socket) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, f := range s.farewells {
		out = append(out, f.Method+" "+string(f.Params))
	}
	return out
}

// lab is one tunnel under a probe that plays its session, beside one that plays
// the desk.
type lab struct {
	*socket
	session kernel.Ref
	parent  *kerneltest.Probe
	desk    *kerneltest.Probe
	deskRef kernel.Ref
	tunnel  *Tunnel
	ref     kernel.Ref
}

var declaredA = acp.Declared{Name: "katashiro", ID: "srv-1", Form: acp.FormID}

// run starts one tunnel in a bubble, where time costs nothing.
func run(t *testing.T, d acp.Declared, limits Limits, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.open(d, limits)
		test(l)
		if list := l.tunnel.Tools().List; list != nil {
			list.Release() // the desk's part
		}
	})
}

// newLab is a lab without its tunnel.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{socket: &socket{t: t, gone: make(chan struct{}), bound: map[string]kernel.Ref{}, sent: map[*kernel.Question]Out{}, probe: kerneltest.NewProbe()}}
	l.k = kerneltest.Start(t, kernel.Options{})
	l.session, l.parent = kerneltest.Root(t, l.k)
	l.desk = kerneltest.NewProbe()
	l.deskRef = kerneltest.Spawn(t, l.session, l.desk.Spec("desk"))
	l.socket.ref = kerneltest.Spawn(t, l.session, l.probe.Spec("client"))
	return l
}

// open spawns the tunnel.
func (l *lab) open(d acp.Declared, limits Limits) {
	l.tunnel = New(Params{Declared: d, Carrier: l.socket, Attach: 3, Session: "sess_x", Tag: "#tag", Desk: l.deskRef, Version: "1.2.3", Limits: limits, Stats: &l.stats})
	l.ref = kerneltest.Spawn(l.t, l.session, l.tunnel.Spec("tunnel-1"))
	synctest.Wait()
}

// request is the next request of the pod, with the method and params it must have.
func (l *lab) request(method, params string) *kernel.Question {
	l.t.Helper()
	w, q := kerneltest.AwaitQuestion[wire](l.t, l.probe)
	if w.Method != method || params != "" && string(w.Params) != params {
		l.t.Fatalf("the pod sent %s %s, want %s %s", w.Method, w.Params, method, params)
	}
	l.mu.Lock()
	l.sent[q] = w.Out
	l.mu.Unlock()
	return q
}

func (l *lab) out(q *kernel.Question) Out {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[q]
}

// answer answers a request as the reader of a socket does.
func (l *lab) answer(q *kernel.Question, result string) {
	l.t.Helper()
	if arrived := l.out(q).Arrived; arrived != nil {
		if f := arrived([]byte(result)); f != nil {
			l.mu.Lock()
			l.farewells = append(l.farewells, *f)
			l.mu.Unlock()
		}
	}
	lease, err := l.k.Account().Acquire(int64(len(result)))
	if err != nil {
		l.t.Fatal(err)
	}
	q.Answer(Reply{Result: []byte(result)}, lease)
	synctest.Wait()
}

func (l *lab) fault(q *kernel.Question, code int, message string) {
	q.Fail(&jsonrpc.Error{Code: code, Message: message})
	synctest.Wait()
}

// cancelled waits until the pod has cancelled a request, and returns its frames.
func (l *lab) cancelled(q *kernel.Question) (frames []string) {
	l.t.Helper()
	if m := kerneltest.Await[kernel.Cancelled](l.t, l.probe); m.Question != q {
		l.t.Fatal("another request was cancelled")
	}
	for _, f := range l.out(q).Cancel(jsonrpc.IntID(42)) {
		frames = append(frames, fmt.Sprintf("%s %s", f.Method, f.Params))
	}
	return frames
}

// inbound is a notification of the client.
func (l *lab) inbound(m acp.Inbound) {
	l.t.Helper()
	lease, err := l.k.Account().Acquire(64)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.ref.Current().Tell(Inbound{Message: m, Bytes: lease}); err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
}

const (
	connected   = `{"connectionId":"conn-1"}`
	initialized = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x","version":"1"}}`
	oneTool     = `{"tools":[{"name":"katashiro.click","inputSchema":{"type":"object"}}]}`
)

// ready takes the tunnel through its handshake in generation A.
func (l *lab) ready(list string) {
	l.t.Helper()
	l.answer(l.request("mcp/connect", ""), connected)
	l.answer(l.request("mcp/message", ""), initialized)
	l.answer(l.request("mcp/message", ""), list)
	l.state(Ready)
}

func (l *lab) state(want State) {
	l.t.Helper()
	synctest.Wait()
	if got := l.tunnel.Status(); got.State != want {
		l.t.Fatalf("the tunnel is %+v, want %s", got, want)
	}
}

// over waits for the clean end of the tunnel.
func (l *lab) over() {
	l.t.Helper()
	select {
	case <-l.ref.Done():
	case <-time.After(time.Hour):
		l.t.Fatal("the tunnel did not end")
	}
	synctest.Wait()
}

// call calls a tool from the desk's side; the answer goes to the desk's probe.
func (l *lab) call(call capability.Call) kernel.Ticket {
	l.t.Helper()
	var ticket kernel.Ticket
	if call.Deadline.IsZero() {
		call.Deadline, call.Limit = time.Now().Add(170*time.Second), time.Now().Add(30*time.Minute)
	}
	if len(call.Arguments) > 0 {
		lease, err := l.k.Account().Acquire(int64(len(call.Arguments)))
		if err != nil {
			l.t.Fatal(err)
		}
		call.Bytes = lease
	}
	kerneltest.Do(l.t, l.deskRef, func(c *kernel.Ctx) {
		var err error
		if ticket, err = l.tunnel.Call(c, call); err != nil {
			l.t.Errorf("refused: %v", err)
		}
	})
	synctest.Wait()
	return ticket
}

// ended is the answer of a call.
func (l *lab) ended(ticket kernel.Ticket) kernel.Answer {
	l.t.Helper()
	a := kerneltest.Await[kernel.Answer](l.t, l.desk)
	a.Lease.Release()
	if a.Ticket != ticket {
		l.t.Fatal("another call ended")
	}
	return a
}

func (l *lab) quiet() {
	l.t.Helper()
	synctest.Wait()
	if n := l.probe.Pending(); n != 0 {
		l.t.Errorf("%d messages reached the client", n)
	}
}
