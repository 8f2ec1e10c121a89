package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is what a link does from its start.
type Plan struct {
	Delay     time.Duration // of each piece, in each direction
	BytesPerS int           // towards the pod; 0 = as fast as it goes
	CutAfter  int64         // bytes towards the pod after which the link is reset; 0 = never
}

// Link is one connection through the proxy.
type Link struct {
	net.Conn // the client's side; its Close ends the link's client side as a FIN does
	pod      net.Conn
	inner    net.Conn // the proxy's end of the client's side
	plan     Plan
	silent   atomic.Bool
	deaf     atomic.Bool // what the pod sends is not read
	woken    chan struct{}
	left     chan struct{} // closed when the pod has ended its side
	leaving  sync.Once
	once     sync.Once
	done     sync.WaitGroup
}

// Dial connects to addr through a link.
func Dial(ctx context.Context, addr string, plan Plan) (*Link, error) {
	var dialer net.Dialer
	pod, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	outer, inner, err := pair(ctx)
	if err != nil {
		pod.Close()
		return nil, err
	}
	l := &Link{Conn: outer, pod: pod, inner: inner, plan: plan, woken: make(chan struct{}), left: make(chan struct{})}
	l.done.Add(2)
	go l.relay(l.pod, l.inner, true)
	go l.relay(l.inner, l.pod, false)
	return l, nil
}

// pair is a TCP connection with itself.
func pair(ctx context.Context) (a, b net.Conn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	var dialer net.Dialer
	a, err = dialer.DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	for {
		b, err = listener.Accept()
		if err != nil {
			a.Close()
			return nil, nil, err
		}
		if b.RemoteAddr().String() == a.LocalAddr().String() {
			return a, b, nil
		}
		b.Close() // somebody else's
	}
}

// Silence stops the passing of bytes and of ends, in both directions, until the link is reset. What the pod sends disappears.
func (l *Link) Silence() { l.silent.Store(true) }

// Deafen stops the reading of what the pod sends; what the client sends passes on.
func (l *Link) Deafen() { l.deaf.Store(true) }

// Reset ends both sides, with a RST towards the pod.
func (l *Link) Reset() {
	l.once.Do(func() {
		close(l.woken)
		if tcp, ok := l.pod.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = l.pod.Close()
		_ = l.inner.Close()
		_ = l.Conn.Close()
	})
}

// PodLeft is closed when the pod has ended its side, also while the link is silent.
func (l *Link) PodLeft() <-chan struct{} { return l.left }

// Wait returns when the link is over: both sides have ended, or it was reset.
func (l *Link) Wait() { l.done.Wait() }

func (l *Link) relay(to, from net.Conn, towardsPod bool) {
	defer l.done.Done()
	buffer := make([]byte, 16<<10)
	passed := int64(0)
	if !towardsPod {
		defer l.leaving.Do(func() { close(l.left) })
	}
	for {
		if towardsPod && l.silent.Load() || !towardsPod && l.deaf.Load() {
			if !l.pause(20 * time.Millisecond) {
				return
			}
			continue
		}
		_ = from.SetReadDeadline(time.Now().Add(250 * time.Millisecond)) // to notice a silence
		n, err := from.Read(buffer)
		if n > 0 && (towardsPod || !l.silent.Load()) {
			if !l.pause(l.plan.Delay) {
				return
			}
			for towardsPod && l.silent.Load() {
				if !l.pause(20 * time.Millisecond) {
					return
				}
			}
			out := buffer[:n]
			if towardsPod && l.plan.CutAfter > 0 && passed+int64(n) >= l.plan.CutAfter {
				_, _ = to.Write(out[:l.plan.CutAfter-passed])
				l.Reset()
				return
			}
			if _, failed := to.Write(out); failed != nil {
				l.ended(from)
				return
			}
			passed += int64(n)
			if towardsPod && l.plan.BytesPerS > 0 && !l.pause(time.Duration(n)*time.Second/time.Duration(l.plan.BytesPerS)) {
				return
			}
		}
		if err == nil || isTimeout(err) {
			continue
		}
		if !towardsPod {
			l.leaving.Do(func() { close(l.left) })
		}
		for l.silent.Load() { // not even the end is told
			if !l.pause(20 * time.Millisecond) {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			l.ended(to)
		} else {
			l.Reset()
		}
		return
	}
}

// ended passes an end on: half of the connection when it can.
func (l *Link) ended(to net.Conn) {
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

// pause waits and reports whether the link goes on.
func (l *Link) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-l.woken:
		return false
	case <-time.After(d):
		return true
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
