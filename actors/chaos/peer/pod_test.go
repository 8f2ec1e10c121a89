package peer

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lxzan/gws"
	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// scripted is the pod's side of one socket: it says what a test wants and keeps what it hears.
type scripted struct {
	gws.BuiltinEventHandler
	opened chan *gws.Conn
	heard  chan string
}

func (s *scripted) OnOpen(c *gws.Conn) { s.opened <- c }
func (s *scripted) OnMessage(_ *gws.Conn, m *gws.Message) {
	s.heard <- m.Data.String()
	_ = m.Close()
}

// connected gives a peer, what its pod hears, and how the pod speaks.
func connected(t *testing.T, o Options) (p *Peer, pod *gws.Conn, heard <-chan string) {
	t.Helper()
	s := &scripted{opened: make(chan *gws.Conn, 1), heard: make(chan string, 1024)}
	upgrader := gws.NewUpgrader(s, &gws.ServerOption{})
	var loops sync.WaitGroup
	loops.Add(1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if socket, err := upgrader.Upgrade(w, r); err == nil {
			loops.Go(socket.ReadLoop)
		}
	}))
	socket, err := wire.Open(t.Context(), wire.Dial{URL: "ws" + strings.TrimPrefix(server.URL, "http") + "/"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Book == nil {
		o.Book = invariant.NewBook(nil)
	}
	if o.Serve == nil {
		o.Serve = func(*Peer, jsonrpc.Frame) {}
	}
	o.Name = "socket"
	p = New(socket, o)
	pod = <-s.opened
	t.Cleanup(func() {
		p.Reset()
		p.Wait()
		server.Close()
		loops.Done()
		loops.Wait()
	})
	return p, pod, s.heard
}

func next[T any](t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return got
}

func say(t *testing.T, pod *gws.Conn, text string) {
	t.Helper()
	if err := pod.WriteMessage(gws.OpcodeText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestAnAnswerReachesWhoAskedAndASecondOneBreaksThePromise(t *testing.T) {
	book := invariant.NewBook(nil)
	p, pod, heard := connected(t, Options{Book: book})
	answer := p.Ask("a/b", []byte(`{"x":1}`), time.Minute)
	if got := next(t, heard); got != `{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1}}` {
		t.Errorf("the pod heard %s", got)
	}
	say(t, pod, `{"jsonrpc":"2.0","id":1,"result":{"y":2}}`)
	if reply := next(t, answer); string(reply.Result) != `{"y":2}` || reply.Error != nil {
		t.Errorf("the answer is %+v", reply)
	}
	if broken := book.Broken(); len(broken) != 0 {
		t.Errorf("broken are %v", broken)
	}
	answer = p.Ask("c", nil, time.Minute)
	next(t, heard)
	say(t, pod, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	say(t, pod, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}`)
	if reply := next(t, answer); reply.Error == nil || reply.Error.Code != jsonrpc.MethodNotFound {
		t.Errorf("the error is %+v", reply)
	}
	if broken := book.Broken(); len(broken) != 1 || broken[0] != invariant.AnsweredOnce {
		t.Errorf("after a second answer broken are %v", broken)
	}
}

func TestAClosedSocketAnswersWhatIsOpen(t *testing.T) {
	book := invariant.NewBook(nil)
	p, pod, heard := connected(t, Options{Book: book})
	go func() {
		<-heard
		pod.WriteClose(1013, []byte("full"))
	}()
	if _, err := p.Call(t.Context(), "a", nil, time.Nanosecond); !errors.Is(err, ErrGone) {
		t.Errorf("the call ended with %v", err)
	}
	p.Wait()
	p.Check(time.Now().Add(time.Hour), 0)
	if broken := book.Broken(); len(broken) != 0 || p.CloseCode() != 1013 || p.Living() {
		t.Errorf("broken are %v, the code is %d", broken, p.CloseCode())
	}
}

func TestARequestThatIsOverdueBreaksThePromise(t *testing.T) {
	book := invariant.NewBook(nil)
	p, _, heard := connected(t, Options{Book: book})
	p.Ask("a", nil, time.Minute)
	next(t, heard)
	p.Check(time.Now().Add(30*time.Second), 0)
	if broken := book.Broken(); len(broken) != 0 {
		t.Errorf("before it is due broken are %v", broken)
	}
	p.Check(time.Now().Add(2*time.Minute), 0)
	if broken := book.Broken(); len(broken) != 1 || broken[0] != invariant.AnsweredOnce {
		t.Errorf("after it was due broken are %v", broken)
	}
}

func TestWhatThePodAsksIsServedInOrderAndAnswered(t *testing.T) {
	served := make(chan string, 8)
	odd := make(chan int, 8)
	_, pod, heard := connected(t, Options{
		Serve: func(p *Peer, f jsonrpc.Frame) {
			served <- f.Method
			if f.Kind == jsonrpc.Request {
				p.Respond(f.ID, []byte(`{}`), nil)
			}
		},
		Odd: func(e *jsonrpc.Error) { odd <- e.Code },
	})
	say(t, pod, `{"jsonrpc":"2.0","method":"first"}`)
	say(t, pod, `{"jsonrpc":"2.0","id":"s-1","method":"second"}`)
	say(t, pod, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`)
	if a, b := next(t, served), next(t, served); a != "first" || b != "second" {
		t.Errorf("served were %s, %s", a, b)
	}
	if got := next(t, heard); got != `{"jsonrpc":"2.0","id":"s-1","result":{}}` {
		t.Errorf("the pod was answered %s", got)
	}
	if code := next(t, odd); code != jsonrpc.CodeParse {
		t.Errorf("the odd error is %d", code)
	}
}

func TestWhatIsNoMessageBreaksThePromise(t *testing.T) {
	book := invariant.NewBook(nil)
	served := make(chan string, 1)
	_, pod, _ := connected(t, Options{Book: book, Serve: func(_ *Peer, f jsonrpc.Frame) { served <- f.Method }})
	say(t, pod, `{"jsonrpc":"2.0",`)
	say(t, pod, `{"jsonrpc":"2.0","method":"after"}`)
	next(t, served)
	if broken := book.Broken(); len(broken) != 1 || broken[0] != invariant.Told {
		t.Errorf("broken are %v", broken)
	}
}

func TestAPausedPeerReadsLater(t *testing.T) {
	served := make(chan string, 8)
	p, pod, _ := connected(t, Options{Serve: func(_ *Peer, f jsonrpc.Frame) { served <- f.Method }})
	say(t, pod, `{"jsonrpc":"2.0","method":"a"}`)
	next(t, served)
	resume := p.Pause()
	say(t, pod, `{"jsonrpc":"2.0","method":"b"}`) // a read that was under way may still take this one
	say(t, pod, `{"jsonrpc":"2.0","method":"c"}`)
	select {
	case <-time.After(200 * time.Millisecond):
	case <-served:
		select {
		case method := <-served:
			t.Fatalf("a paused peer has read %s", method)
		case <-time.After(200 * time.Millisecond):
		}
	}
	resume()
	for method := ""; method != "c"; {
		method = next(t, served)
	}
}

func TestAnAbandonedPeerDoesNothingAndSeesTheEnd(t *testing.T) {
	p, pod, heard := connected(t, Options{Serve: func(p *Peer, f jsonrpc.Frame) { p.Respond(f.ID, []byte(`{}`), nil) }})
	p.Abandon()
	say(t, pod, `{"jsonrpc":"2.0","id":1,"method":"a"}`)
	_ = pod.WritePing(nil)
	p.Notify("b", nil)
	select {
	case got := <-heard:
		t.Errorf("an abandoned peer has said %s", got)
	case <-time.After(200 * time.Millisecond):
	}
	_ = pod.NetConn().Close()
	next(t, p.Gone())
}
