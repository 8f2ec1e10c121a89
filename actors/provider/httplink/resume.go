package httplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
)

// Bounds of taking a stream up again.
const (
	maxResumes  = 5 // in a row that brought nothing new, of one answer's stream
	minPause    = 100 * time.Millisecond
	firstPause  = time.Second // where the server does not say how long
	maxPause    = time.Minute
	longStream  = 10 * time.Second // a listening stream that lived this long was none that fails
	pauseSpread = 4                // a quarter of the pause more, at random: what is cut together does not come back together
)

// mark is where a stream stands: what the next one of its kind begins with.
type mark struct {
	id    string
	lost  bool          // it cannot be said where
	retry time.Duration // that the server asks for; 0 = it does not
}

// pause is how long to wait before the next attempt, after so many in a row that brought nothing: what the server says, at least, and
// longer the longer nothing comes of it.
func (m mark) pause(fruitless int) time.Duration {
	base := firstPause
	if m.retry > 0 {
		base = max(m.retry, minPause)
	}
	for ; fruitless > 1 && base < maxPause; fruitless-- {
		base *= 2
	}
	base = min(base, maxPause)
	return base + rand.N(base/pauseSpread)
}

// wait waits, and says whether ctx is still there.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow reads the stream of a request's answer until the answer is there. Where the server named its events, a stream that ends before
// is taken up again from the last of them; else the request has failed.
func (l *httpLink) follow(ctx context.Context, ex *exchange, resp *http.Response, at place) {
	var m mark
	answered, err := l.messages(ctx, ex, resp.Body, &m)
	for fruitless := 0; !answered; {
		_, loss := errors.AsType[*lossError](err)
		switch {
		case loss:
			l.fail(ex, errors.Unwrap(err))
			return
		case ctx.Err() != nil:
			l.fail(ex, ended(ctx))
			return
		case m.id == "" || m.lost || at.modern || fruitless == maxResumes || isFinal(err):
			l.fail(ex, &CutError{err})
			return
		}
		if !wait(ctx, m.pause(fruitless)) {
			l.fail(ex, ended(ctx))
			return
		}
		last := m.id
		if answered, err = l.resumed(ctx, ex, &m); m.id != last {
			fruitless = 0
		} else {
			fruitless++
		}
	}
}

// resumed takes the stream up again where m stands, and reads on.
func (l *httpLink) resumed(ctx context.Context, ex *exchange, m *mark) (answered bool, err error) {
	stream, err := l.get(ctx, l.where(), m.id)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	return l.messages(ctx, ex, stream, m)
}

// messages hands on what a request's stream brings until its answer came or the stream ended.
func (l *httpLink) messages(ctx context.Context, ex *exchange, body io.Reader, m *mark) (answered bool, err error) {
	r := newReader(body, l.to.Account(), l.limit())
	defer r.close()
	r.from(*m)
	defer func() { *m = r.mark() }()
	for {
		name, err := r.next(ctx, l.limit())
		if loss, ok := errors.AsType[*lossError](err); ok && ctx.Err() == nil && l.passesBy(loss, ex) {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = errStreamEnded
		}
		if err != nil {
			return false, err
		}
		frame, lease := r.data.take()
		if !l.isMessage(name, frame) {
			lease.Release()
			continue
		}
		if l.deliver(ctx, frame, lease, ex) {
			return true, nil
		}
	}
}

// finalError is an answer to a GET that says that there is no such stream, and will be none. It hides its cause: a refused GET
// says nothing of the request whose stream it would have taken up, which was accepted.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }

func isFinal(err error) bool {
	_, final := errors.AsType[*finalError](err)
	return final
}

// opened is a stream of the server's. Close ends it and may be called from any goroutine, more than once.
type opened struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (o *opened) Close() error {
	o.cancel()
	return o.ReadCloser.Close()
}

// get opens a stream of the server, from behind the event lastID when there is one. The error is a *finalError when the server offers none.
func (l *httpLink) get(ctx context.Context, at place, lastID string) (*opened, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := l.request(ctx, http.MethodGet, at, typeEvents)
	if lastID != "" {
		r.Header["Last-Event-Id"] = []string{lastID}
	}
	late := time.AfterFunc(headTimeout, cancel)
	resp, err := l.transport.RoundTrip(r)
	if !late.Stop() && err == nil {
		resp.Body.Close()
		err = errDeadline
	}
	if err != nil {
		cancel()
		return nil, err
	}
	switch status := resp.StatusCode; {
	case status == http.StatusOK && mediaType(resp) == typeEvents && !encoded(resp):
		return &opened{resp.Body, cancel}, nil
	case status == http.StatusOK:
		err = &finalError{fmt.Errorf("the server offers no stream of events but %s", shown(errors.New(mediaType(resp))))}
	case status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests || status == http.StatusConflict:
		err = &link.StatusError{Status: status}
	default:
		err = &finalError{statusError(status, resp.Header, "")}
	}
	cancel()
	resp.Body.Close()
	return nil, err
}
