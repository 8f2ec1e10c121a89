package door

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// quiet are the connections of a view on which nobody waits for an answer: those that have not sent a whole request head yet,
// and those between two requests. When there is no room for a newcomer, one of them makes it: a connection costs its peer
// nothing to hold, so a limit that turned the newcomer away would be a way to keep everybody else out.
//
// Who goes first is the view's choice. A page's listener lets go of those that never asked for anything first, as a browser's
// sockets come and go and one that has spoken is worth more. Where each connection brings calls that nobody may repeat blindly, a
// newcomer whose first request is on its way must not be the first to go: there it is by age alone ([View.ByAge]).
//
// The http.Server that serves the view tells what becomes of a connection, the goroutine that accepts asks who has to go;
// the lock is held for the few steps of a list.
type quiet struct {
	mu     sync.Mutex
	silent list.List // of *counted: no request so far, the longest waiting first; unused by age
	idle   list.List // of *counted: between two requests, the longest waiting first
	byAge  bool
}

// newcomers are where a connection stands until its first request.
func (q *quiet) newcomers() *list.List {
	if q.byAge {
		return &q.idle
	}
	return &q.silent
}

func (q *quiet) add(c *counted, to *list.List) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(c)
	if !c.closed {
		c.list, c.at = to, to.PushBack(c)
	}
}

func (q *quiet) remove(c *counted, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(c)
	c.closed = c.closed || closed
}

func (q *quiet) drop(c *counted) {
	if c.at != nil {
		c.list.Remove(c.at)
		c.list, c.at = nil, nil
	}
}

// longest takes out the connection that has to go: one that never asked for anything before one that did, or by age alone; nil
// when every one is at work.
func (q *quiet) longest() *counted {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.silent.Front()
	if at == nil {
		at = q.idle.Front()
	}
	if at == nil {
		return nil
	}
	c := at.Value.(*counted)
	q.drop(c)
	return c
}

// Displaces lets the view close a connection on which nobody waits for an answer rather than refuse a newcomer, when its limit
// or the process's limit of open files is reached. told hears of each, on the goroutine that accepts, and must not block.
// It is for the time before Serve, which alone knows what the connections do.
func (v *View) Displaces(told func(net.Addr)) *View {
	v.displaced = told
	return v
}

// ByAge has the view that [View.Displaces] close the connection that has been without a request for longest, whether it ever had one
// or not. It is for the time before Serve.
func (v *View) ByAge() *View {
	v.quiet.byAge = true
	return v
}

// displace makes room. It reports whether there is any.
func (v *View) displace() bool {
	if !v.watched {
		return false
	}
	c := v.quiet.longest()
	if c == nil {
		return false
	}
	_ = c.Close()
	v.displaced(c.RemoteAddr())
	return true
}

type countedKey struct{}

// watch has the server tell what its connections do.
func (v *View) watch(srv *http.Server) {
	if v.displaced == nil {
		return
	}
	v.watched = true
	handler, state, connContext := srv.Handler, srv.ConnState, srv.ConnContext
	if handler == nil {
		handler = http.DefaultServeMux
	}
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if connContext != nil {
			ctx = connContext(ctx, conn)
		}
		return context.WithValue(ctx, countedKey{}, conn)
	}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(countedKey{}).(*counted); ok {
			v.quiet.remove(c, false)
		}
		handler.ServeHTTP(w, r)
	})
	srv.ConnState = func(conn net.Conn, to http.ConnState) {
		if c, ok := conn.(*counted); ok && to == http.StateIdle {
			v.quiet.add(c, &v.quiet.idle)
		}
		if state != nil {
			state(conn, to)
		}
	}
}
