package httplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

const retryAfter = 250 * time.Millisecond // the hint of a full queue

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
	acceptBoth = typeJSON + ", " + typeEvents
)

// errDeadline is a request whose time was over.
var errDeadline = fmt.Errorf("the server has not answered in time: %w", context.DeadlineExceeded)

// carry is a message's whole way on a goroutine of its own: to the server and, where the answer is of this exchange, back.
func (l *httpLink) carry(ex *exchange) {
	room, err := acquire(ex.ctx, l.to.Account(), exchangeBytes)
	if err != nil {
		l.fail(ex, unsent(err))
		return
	}
	l.post(ex, true)
	room.Release()
	l.mu.Lock()
	ex.posting = false
	if l.up && ex.ctx.Err() != nil { // it waits for a stream, and its end came while it was carried
		l.give(ex, ended(ex.ctx))
	}
	l.mu.Unlock()
	if ex.id.IsZero() {
		ex.cancel(nil)
	}
}

// post sends a message and sees to its answer. May says that the older transport may be tried.
func (l *httpLink) post(ex *exchange, may bool) {
	at := l.where()
	if ex.method == mcp.MethodInitialize && !at.modern {
		at.session, at.version = "", ""
	}
	ctx, cancel := context.WithCancel(ex.ctx)
	defer cancel()
	if ex.id.IsZero() { // no result is waited for
		defer time.AfterFunc(headTimeout, cancel).Stop()
	}
	keep := may && l.mayFallBack(ex)
	resp, err := l.send(ctx, ex, at, keep)
	if err != nil {
		l.fail(ex, err)
		l.undelivered(ex)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		l.turnedDown(ctx, ex, resp, at, keep)
		return
	}
	ex.body.release()
	if ex.method == mcp.MethodInitialize {
		l.begins(resp.Header)
	}
	switch {
	case ex.id.IsZero():
		drain(resp, cancel)
		l.delivered(ex)
	case l.isOld():
		drain(resp, cancel) // its answer comes in the one stream
	default:
		l.answer(ctx, cancel, ex, resp, at)
	}
}

// send makes the round trip. Its errors say what is known of whether the request was accepted. Keep holds the message for another.
func (l *httpLink) send(ctx context.Context, ex *exchange, at place, keep bool) (*http.Response, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil && !keep {
				ex.body.release() // it is written: nothing pays for it any more
			}
		},
	})
	r := l.request(ctx, http.MethodPost, at, acceptBoth)
	r.Header["Content-Type"] = []string{typeJSON}
	for _, h := range ex.headers {
		r.Header[http.CanonicalHeaderKey(h[0])] = []string{h[1]}
	}
	body, err := ex.body.open()
	if err != nil {
		return nil, unsent(err)
	}
	r.Body, r.GetBody, r.ContentLength = body, ex.body.open, ex.body.size
	resp, err := l.transport.RoundTrip(r)
	if err == nil {
		return resp, nil
	}
	whole := ex.body.wasLeft()
	switch {
	case ctx.Err() != nil:
		err = ended(ctx)
	case connected.Load():
		err = &CutError{err}
	default:
		err = &UnreachableError{err}
	}
	if !connected.Load() || !whole {
		err = unsent(err)
	}
	return nil, err
}

// turnedDown handles an answer with a status that is no success.
func (l *httpLink) turnedDown(ctx context.Context, ex *exchange, resp *http.Response, at place, keep bool) {
	why := statusError(resp.StatusCode, resp.Header, at.session)
	lost := errors.Is(why, link.ErrSessionLost)
	if lost {
		l.forget(at.session)
	}
	if !ex.id.IsZero() && !lost && !isAuth(resp.StatusCode) && l.errorAnswer(ctx, ex, resp) {
		ex.body.release()
		return
	}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		if keep && l.fallBack(ctx) {
			l.post(ex, false)
			return
		}
	}
	l.fail(ex, why)
	l.undelivered(ex)
}

func isAuth(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// errorAnswer looks whether an answer with an error status holds the JSON-RPC error that answers the request.
func (l *httpLink) errorAnswer(ctx context.Context, ex *exchange, resp *http.Response) bool {
	if mediaType(resp) != typeJSON || resp.ContentLength > maxErrorBytes || encoded(resp) {
		return false
	}
	defer time.AfterFunc(roomTimeout, func() { resp.Body.Close() }).Stop()
	b := buffer{account: l.to.Account(), limit: min(maxErrorBytes, l.limit())}
	if err := b.readAll(ctx, resp.Body, resp.ContentLength); err != nil {
		b.drop()
		return false
	}
	frame, lease := b.take()
	f, fault := jsonrpc.Scan(frame)
	if fault != nil || f.Kind != jsonrpc.Response || f.Error == nil || f.ID.Key() != ex.id.Key() || !l.take(ex) {
		lease.Release()
		return false
	}
	l.to.Message(frame, f, ex.id, lease)
	ex.cancel(nil)
	return true
}

// answer handles a success that should bring the answer to a request.
func (l *httpLink) answer(ctx context.Context, cancel context.CancelFunc, ex *exchange, resp *http.Response, at place) {
	kind := mediaType(resp)
	switch {
	case encoded(resp):
		l.fail(ex, notAnswer("a compressed body, which it was not asked for"))
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent:
		l.fail(ex, notAnswer("status %d, which holds none", resp.StatusCode))
	case kind == typeJSON:
		l.body(ctx, ex, resp)
	case kind == typeEvents:
		l.follow(ctx, ex, resp, at)
		drain(resp, cancel)
	default:
		l.fail(ex, notAnswer("content of type %s", jsonrpc.Show(kind)))
	}
}

// body reads an answer that is one JSON text.
func (l *httpLink) body(ctx context.Context, ex *exchange, resp *http.Response) {
	b := buffer{account: l.to.Account(), limit: l.limit()}
	if err := b.readAll(ctx, resp.Body, resp.ContentLength); err != nil {
		b.drop()
		l.fail(ex, reading(ctx, err))
		return
	}
	frame, lease := b.take()
	if answered := l.deliver(ctx, frame, lease, ex); !answered {
		l.fail(ex, notAnswer("a body that is none"))
	}
}

// delivered is told of a message without an answer that the server took.
func (l *httpLink) delivered(ex *exchange) {
	if ex.method == mcp.MethodInitialized && !l.isOld() {
		l.listenAnew()
	}
	l.endCancelled(ex)
}

// undelivered is told of one that it did not take: nobody waits for it, so it is counted.
func (l *httpLink) undelivered(ex *exchange) {
	if ex.id.IsZero() {
		l.to.Refused("not_delivered")
		l.endCancelled(ex)
	}
}

// endCancelled ends the request that a cancellation names once the server was told.
func (l *httpLink) endCancelled(ex *exchange) {
	if ex.ends == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up && l.pending[ex.ends.id.Key()] == ex.ends {
		l.give(ex.ends, errCancelled)
	}
}

func encoded(resp *http.Response) bool {
	e := resp.Header.Get("Content-Encoding")
	return e != "" && e != "identity"
}

func mediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return resp.Header.Get("Content-Type")
	}
	return t
}

// drain reads what little is left of an answer, so that its connection can be used again; where that takes long, the connection goes.
func drain(resp *http.Response, cancel context.CancelFunc) {
	defer time.AfterFunc(drainTimeout, cancel).Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, exchangeBytes)
}
