package door

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func socket(t *testing.T) *Socket {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSocket(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("timeout: %s", what)
	}
}

func TestASocketOutlivesTheGenerationsThatServeIt(t *testing.T) {
	s := socket(t)
	transport := &http.Transport{DisableKeepAlives: true}
	client := http.Client{Transport: transport, Timeout: 20 * time.Second}
	for _, generation := range []string{"one", "two", "three"} {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, generation) })}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = srv.Serve(s.View(0, nil)) }()
		resp, err := client.Get("http://" + s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(body) != generation {
			t.Fatalf("generation %s answered %q, %v", generation, body, err)
		}
		_ = srv.Close()
		within(t, "Serve returns after Close", ended)
	}
}

func TestAConnectionThatArrivesBetweenTwoGenerationsIsServedByTheSecond(t *testing.T) {
	s := socket(t)
	first := s.View(0, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := first.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept of a closed view: %v", err)
		}
	}()
	_ = first.Close()
	within(t, "Accept returns", ended)
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	second := s.View(0, nil)
	got, err := second.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if got.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Errorf("accepted %s, dialled from %s", got.RemoteAddr(), conn.LocalAddr())
	}
}

// Views open and close while clients dial: each client must be served, whichever view was up.
func TestNoConnectionIsLostWhileGenerationsChange(t *testing.T) {
	s := socket(t)
	stop, churned := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(churned)
		for {
			v := s.View(0, nil)
			one, left := make(chan struct{}, 1), make(chan struct{})
			go func() {
				defer close(left)
				for {
					conn, err := v.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Write([]byte("k"))
					_ = conn.Close()
					select {
					case one <- struct{}{}:
					default:
					}
				}
			}()
			select {
			case <-stop:
				_ = v.Close()
				<-left
				return
			case <-one:
				_ = v.Close() // the next view starts before this one has left Accept
			}
		}
	}()
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 25 {
				conn, err := net.DialTimeout("tcp", s.Addr().String(), 20*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				b := make([]byte, 1)
				if _, err := io.ReadFull(conn, b); err != nil {
					t.Errorf("a client was not served: %v", err)
				}
				_ = conn.Close()
			}
		})
	}
	clients.Wait()
	close(stop)
	within(t, "the last view ends", churned)
}

func TestAViewHoldsNoMoreConnectionsThanItsLimit(t *testing.T) {
	s := socket(t)
	refused := make(chan net.Addr, 1)
	v := s.View(1, func(a net.Addr) { refused <- a })
	accepted := make(chan net.Conn, 2)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := v.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial()
	first := <-accepted
	second := dial()
	if got := <-refused; got.String() != second.LocalAddr().String() {
		t.Errorf("refused %s, not %s", got, second.LocalAddr())
	}
	_ = second.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := second.Read(make([]byte, 1)); err == nil || errors.Is(err, errTimeout(err)) {
		t.Errorf("the connection over the limit was not closed: %v", err)
	}
	_ = first.Close()
	_ = first.Close() // counted once
	dial()
	_ = (<-accepted).Close()
	if v.Open() != 0 {
		t.Errorf("%d connections are counted as open", v.Open())
	}
	_ = v.Close()
	within(t, "Accept returns", ended)
}

// errTimeout returns err when it is a timeout, else an error that nothing is.
func errTimeout(err error) error {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return err
	}
	return errors.New("not a timeout")
}

type plain struct{ net.Listener }

func TestASocketNeedsAListenerThatCanBeCalledBack(t *testing.T) {
	if _, err := NewSocket(plain{}); !errors.Is(err, ErrNoDeadline) {
		t.Errorf("got %v", err)
	}
}

func TestWhoComesWhileASocketIsHeldIsLetInAfterwards(t *testing.T) {
	s := socket(t)
	admit := s.Hold()
	first := s.View(0, nil)
	left := make(chan struct{})
	go func() {
		defer close(left)
		if _, err := first.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept of a held socket: %v", err)
		}
	}()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = first.Close() // a generation may end while it is held
	within(t, "Accept returns", left)
	second := s.View(0, nil)
	in := make(chan struct{})
	go func() {
		defer close(in)
		got, err := second.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		_ = got.Close()
	}()
	select {
	case <-in:
		t.Error("one was let in")
	case <-time.After(50 * time.Millisecond):
	}
	admit()
	admit()
	within(t, "Accept", in)
}
