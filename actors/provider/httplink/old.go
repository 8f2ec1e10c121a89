package httplink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/acpod/acpod/protocol/mcp"
)

// mayFallBack: only the first message of a link says by its failure that the server speaks the older transport.
func (l *httpLink) mayFallBack(ex *exchange) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ex.method == mcp.MethodInitialize && !l.spoken && !l.old && !l.modern
}

func (l *httpLink) isOld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.old
}

// begins is told of an answer to initialize: a session begins, or none.
func (l *httpLink) begins(h http.Header) {
	id := h.Get("Mcp-Session-Id")
	if id != "" && !isVisible(id) {
		l.to.Refused("bad_session_id")
		id = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spoken, l.lost = true, false
	l.unlistenLocked()
	if !l.modern && !l.old {
		l.session = id
	}
}

// forget ends a session that the server has lost. The next initialize begins another; until then what is sent names the old one, so that
// it is told the same: without a session a server says anything.
func (l *httpLink) forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == session {
		l.lost = true
		l.unlistenLocked()
	}
}

// fallBack tries the older transport, and says whether the server speaks it: then messages go where its stream said.
func (l *httpLink) fallBack(ctx context.Context) bool {
	up := make(chan struct{})
	failed := make(chan struct{})
	l.mu.Lock()
	if !l.up {
		l.mu.Unlock()
		return false
	}
	l.running.Go(func() {
		err := l.stream(up)
		select {
		case <-up:
			l.broken(err)
		default:
			close(failed)
		}
	})
	l.mu.Unlock()
	select {
	case <-up:
		return true
	case <-failed:
	case <-ctx.Done():
	}
	return false
}

// errNoEndpoint says that an older server did not name the address for messages in time.
var errNoEndpoint = errors.New("the server has not named the address for messages (event endpoint)")

// stream is the one stream of the older transport: it begins with the address for messages and brings every answer. up is closed when
// messages may go; nil stands for a link that was of this transport from the start. Its end is the link's.
func (l *httpLink) stream(up chan<- struct{}) error {
	room, err := acquire(l.ctx, l.to.Account(), exchangeBytes)
	if err != nil {
		return err
	}
	defer room.Release()
	stream, err := l.get(l.ctx, place{url: l.url}, "")
	if err != nil {
		return l.noStream(err)
	}
	defer stream.Close()
	silent := time.AfterFunc(headTimeout, func() { stream.Close() })
	defer silent.Stop()
	named := false
	err = l.hear(l.ctx, stream, &mark{}, func(name string, data []byte) (bool, error) {
		if named {
			return false, nil
		}
		if name != "endpoint" {
			l.to.Refused("unknown_event")
			return true, nil
		}
		to, err := l.sameOrigin(string(data))
		if err != nil {
			return true, err
		}
		named = true
		silent.Stop()
		l.mu.Lock()
		l.old, l.postTo = true, to
		l.open = l.open || up == nil
		l.mu.Unlock()
		if up != nil {
			close(up)
			return true, nil
		}
		l.to.Up(0)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pump()
		return true, nil
	})
	var foreign *ForeignEndpointError
	switch {
	case l.ctx.Err() != nil:
		return context.Cause(l.ctx)
	case errors.As(err, &foreign):
		return err
	case !named:
		return unsent(errNoEndpoint)
	}
	return &CutError{err}
}

// noStream is why the stream of the older transport could not be opened: nothing was sent.
func (l *httpLink) noStream(err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if final, ok := errors.AsType[*finalError](err); ok {
		err = final.cause
	}
	return unsent(err)
}

// ForeignEndpointError is an address for messages that is not of the server's own origin. It is not repeated: a peer wrote it.
type ForeignEndpointError struct{ Why string }

func (e *ForeignEndpointError) Error() string {
	return fmt.Sprintf("the server names an address for messages that %s; nothing is sent there", e.Why)
}

// sameOrigin reads the address for messages, which must have the scheme, host and port of the stream's.
func (l *httpLink) sameOrigin(address string) (*url.URL, error) {
	u, err := l.url.Parse(address)
	switch {
	case err != nil || len(address) > maxErrorBytes:
		return nil, &ForeignEndpointError{"is none"}
	case u.Scheme != l.url.Scheme || port(u) != port(l.url) || !sameHost(u, l.url) || u.User != nil:
		return nil, &ForeignEndpointError{"is of another origin"}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}
