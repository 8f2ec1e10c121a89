package facade

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// pipes is a listener without the operating system, so that a bubble's time can pass while a server accepts.
type pipes struct {
	conns    chan net.Conn
	deadline chan time.Time
	closed   chan struct{}
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), deadline: make(chan time.Time, 1), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	for {
		select {
		case conn := <-p.conns:
			return conn, nil
		case at := <-p.deadline:
			if !at.IsZero() {
				return nil, os.ErrDeadlineExceeded
			}
		case <-p.closed:
			return nil, net.ErrClosed
		}
	}
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) SetDeadline(at time.Time) error { p.deadline <- at; return nil }
func (p *pipes) Close() error                   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr                 { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8848} }

// An agent that was idle for an hour calls with the session id that it believes in: the call is served, under its own
// request id, and runs once. A 404 here is what makes agents repeat a write.
func TestAStaleSessionIDAfterAnHourIsServedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		listener := newPipes()
		w := newWorldOn(t, listener, listener.dial, nil)
		s := w.session("alice", capability.Ready, func(c *kernel.Ctx, call capability.Call, q *kernel.Question) {
			ran.Add(1)
			echo(c, call, q)
		})
		call := func(id string) {
			t.Helper()
			got := w.do(request{body: executeBody(id, "katashiro.write", `{"n":1}`), header: with(bearer(s.token), "Mcp-Session-Id", "of-an-hour-ago")})
			if m := parse(t, got.body); got.status != http.StatusOK || m.Result == nil || m.Result.IsError || !strings.Contains(got.body, `"id":`+id) {
				t.Errorf("%d %s", got.status, got.body)
			}
			if got.header.Get("Mcp-Session-Id") != "" {
				t.Error("a session id was given")
			}
		}
		call("1")
		time.Sleep(time.Hour)
		call("2")
		if n := ran.Load(); n != 2 {
			t.Errorf("two calls ran %d times", n)
		}
	})
}
