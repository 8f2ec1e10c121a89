package door

import (
	"container/list"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrNoDeadline is returned for a listener whose Accept cannot be called back; TCP and Unix listeners can.
var ErrNoDeadline = errors.New("door: the listener has no accept deadline, use a TCP or Unix one")

// Socket is a listening socket that outlives those who serve it. It is opened once, by whoever composes the process;
// each generation of a server takes a View of it and closes only that. Connections that arrive while nobody serves wait
// in the kernel's backlog instead of being refused.
//
// All methods are safe from any goroutine.
type Socket struct {
	listener deadliner
	// turn holds one token while a view is inside the real Accept, so that two generations never accept at once and a
	// leaving one cannot take a connection away from its successor; and while the owner holds the socket.
	turn chan struct{}
}

type deadliner interface {
	net.Listener
	SetDeadline(time.Time) error
}

// NewSocket wraps an open listener.
func NewSocket(l net.Listener) (*Socket, error) {
	d, ok := l.(deadliner)
	if !ok {
		return nil, ErrNoDeadline
	}
	return &Socket{listener: d, turn: make(chan struct{}, 1)}, nil
}

// Hold lets nobody in until admit is called: who connects meanwhile waits in the backlog. It is for the owner of the socket, before a
// view of it accepts.
func (s *Socket) Hold() (admit func()) {
	s.turn <- struct{}{}
	return sync.OnceFunc(func() { <-s.turn })
}

// Addr is the address that the socket is bound to.
func (s *Socket) Addr() net.Addr { return s.listener.Addr() }

// Rules are the door rules that follow from the address.
func (s *Socket) Rules() Rules { return For(s.Addr()) }

// Close closes the real socket. It is for the owner of the socket, at the very end.
func (s *Socket) Close() error { return s.listener.Close() }

// View returns a listener for one generation. At most limit accepted connections are open at once; one more is closed
// as soon as it is accepted and reported to refused, which may be nil and must not block, unless the view [View.Displaces] and
// somebody makes room. A limit of 0 is none.
func (s *Socket) View(limit int, refused func(net.Addr)) *View {
	return &View{socket: s, closed: make(chan struct{}), limit: int64(limit), refused: refused}
}

// View is one generation's hold on a Socket. It is a net.Listener whose Close ends Accept and leaves the socket open.
type View struct {
	socket  *Socket
	closed  chan struct{}
	once    sync.Once
	limit   int64
	open    atomic.Int64
	refused func(net.Addr)

	quiet     quiet
	watched   bool           // set by Serve, before the first Accept
	displaced func(net.Addr) // nil = nobody makes room
}

// Addr implements net.Listener.
func (v *View) Addr() net.Addr { return v.socket.Addr() }

// Open is the number of connections that were accepted through the view and are not closed yet.
func (v *View) Open() int { return int(v.open.Load()) }

// Close implements net.Listener: a blocked Accept returns net.ErrClosed, the socket stays open for the next view.
func (v *View) Close() error {
	v.once.Do(func() {
		close(v.closed)
		// Wakes an Accept that is blocked. It may also wake that of a successor, which looks, finds itself open and
		// goes on.
		_ = v.socket.listener.SetDeadline(time.Unix(1, 0))
	})
	return nil
}

// Accept implements net.Listener.
func (v *View) Accept() (net.Conn, error) {
	select {
	case v.socket.turn <- struct{}{}:
		defer func() { <-v.socket.turn }()
	case <-v.closed:
		return nil, net.ErrClosed
	}
	for {
		// The order matters: the deadline is cleared before `closed` is looked at, so a Close in between either is
		// seen here or sets its deadline after ours.
		if err := v.socket.listener.SetDeadline(time.Time{}); err != nil {
			return nil, err
		}
		select {
		case <-v.closed:
			return nil, net.ErrClosed
		default:
		}
		conn, err := v.socket.listener.Accept()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
			v.displace() // the server tries again in a moment
			return nil, err
		case err != nil:
			return nil, err
		}
		if n := v.open.Add(1); v.limit > 0 && n > v.limit && !v.displace() {
			v.open.Add(-1)
			_ = conn.Close()
			if v.refused != nil {
				v.refused(conn.RemoteAddr())
			}
			continue
		}
		c := &counted{Conn: conn, view: v}
		if v.watched {
			v.quiet.add(c, v.quiet.newcomers())
		}
		return c, nil
	}
}

// counted takes its connection out of the view's count when it is closed, once.
type counted struct {
	net.Conn
	view *View
	once sync.Once

	// Guarded by the view's quiet.
	list   *list.List
	at     *list.Element
	closed bool
}

// Unwrap gives the connection below, for what is particular to TCP: several buffers in one write. Close the outer one.
func (c *counted) Unwrap() net.Conn { return c.Conn }

// CloseWrite ends the sending side, so that a peer can be waited for after a last word.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.view.quiet.remove(c, true)
		c.view.open.Add(-1)
	})
	return c.Conn.Close()
}
