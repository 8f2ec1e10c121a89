package httplink

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/mcp"
)

// errDown says that a link is not up: it has not begun, or has ended.
var errDown = unsent(errors.New("there is no connection to the server"))

// httpLink is the link. What its goroutines share is under mu; none of them waits while it is held.
type httpLink struct {
	options Options
	headers http.Header // of the configuration; never changed
	url     *url.URL    // of the configuration
	bad     error       // what is wrong with the configuration

	transport *http.Transport
	to        link.Sink
	ctx       context.Context // of Run, and ended when the link breaks
	broken    context.CancelCauseFunc
	running   sync.WaitGroup // everything that Run has to wait for

	mu       sync.Mutex
	up       bool   // between Run's begin and its end
	open     bool   // messages may go: at once, but for the older transport, where the server says where to
	table           // requests without an end, and what waits for a place
	session  string // the server's name for it
	lost     bool   // … and it has said that it does not know it
	version  string // for the header, once it was agreed on
	modern   bool
	old      bool     // the older transport is spoken
	spoken   bool     // the server has answered initialize
	postTo   *url.URL // where messages go
	unlisten context.CancelFunc
}

// New makes a link, which connects when it is run. What is wrong with the options is Run's error, a *[ConfigError].
func New(o Options) link.Link {
	l := &httpLink{options: o, modern: o.Era == mcp.VersionModern, old: o.Old, table: newTable()}
	if l.bad = o.Check(); l.bad != nil {
		return l
	}
	l.headers, _ = o.headers()
	l.url, _ = o.endpoint()
	l.postTo = l.url
	return l
}

// Run implements [link.Link].
func (l *httpLink) Run(ctx context.Context, to link.Sink) error {
	if l.bad != nil {
		return l.bad
	}
	l.to, l.transport = to, newTransport(l.options.dial)
	l.ctx, l.broken = context.WithCancelCause(ctx)
	l.mu.Lock()
	l.up, l.open = true, !l.old
	if l.modern {
		l.version = mcp.VersionModern
	}
	l.mu.Unlock()
	if l.old {
		l.running.Go(func() { l.broken(l.stream(nil)) })
	} else {
		to.Up(0)
	}
	<-l.ctx.Done()
	why := context.Cause(l.ctx)
	l.end(why)
	return why
}

// end ends everything, in the order that no message is told after Run.
func (l *httpLink) end(why error) {
	l.mu.Lock()
	l.up = false
	l.mu.Unlock()
	l.failAll(why)
	l.running.Wait()
	l.sayGoodbye()
	l.transport.CloseIdleConnections()
}

// Speaks implements [link.Link].
func (l *httpLink) Speaks(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version, l.modern = version, version == mcp.VersionModern
	if l.modern {
		l.session = ""
	}
}

// place is what a request to the server has to say of where it belongs.
type place struct {
	url              *url.URL
	session, version string
	modern           bool
}

func (l *httpLink) where() place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return place{l.postTo, l.session, l.version, l.modern}
}

// request is one HTTP request with all headers that belong to it. initialize begins a session: it names none, and no version.
func (l *httpLink) request(ctx context.Context, method string, at place, accept string) *http.Request {
	h := l.headers.Clone()
	if accept != "" {
		h["Accept"] = []string{accept}
	}
	if at.session != "" {
		h["Mcp-Session-Id"] = []string{at.session}
	}
	if at.version != "" {
		h["Mcp-Protocol-Version"] = []string{at.version}
	}
	r := &http.Request{
		Method: method, URL: at.url, Host: at.url.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

// sayGoodbye tells the server that its session is over, with everything that the server lets it in for.
func (l *httpLink) sayGoodbye() {
	at := l.where()
	if at.session == "" || at.modern || l.lost { // nothing runs any more that would change it
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), goodbyeTimeout)
	defer cancel()
	resp, err := l.transport.RoundTrip(l.request(ctx, http.MethodDelete, at, ""))
	if err != nil {
		l.to.Refused("session_not_ended")
		return
	}
	resp.Body.Close()
	// 405: the server ends sessions by itself. 404: it has.
	if s := resp.StatusCode; s >= 300 && s != http.StatusMethodNotAllowed && s != http.StatusNotFound {
		l.to.Refused("session_not_ended")
	}
}
