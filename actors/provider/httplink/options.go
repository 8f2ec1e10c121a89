package httplink

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/protocol/mcp"
)

// Options are what one link is made of.
type Options struct {
	URL     string            // http or https, with variables replaced
	Headers map[string]string // sent with every request, variables replaced
	// Old makes it the transport of 2024-11-05 from the start. Without it, that one is taken when the server refuses the first
	// message with 400, 404 or 405 and offers a stream of events at the same address.
	Old bool
	// Era is mcp.VersionModern for the era without a handshake; "" for the others, until Speaks says otherwise.
	Era   string
	Build string // of the pod: a part of what each message of the modern era says of its sender
	// ResultBytes bounds one message of the server.
	ResultBytes int64

	dial func(ctx context.Context, network, address string) (net.Conn, error) // of tests; nil = the network
}

// ConfigError is an entry of mcp.json that no connection is made with. It says nothing about the server, and names no value.
type ConfigError struct{ Text string }

func (e *ConfigError) Error() string { return e.Text }

func badConfig(format string, args ...any) error {
	return &ConfigError{fmt.Sprintf(format, args...)}
}

// Bounds that nobody has needed to configure.
const (
	maxRequests = 64  // requests of one server in flight, each with a connection
	maxControl  = 16  // notifications and answers in flight
	maxQueue    = 256 // messages that wait for one of either
	// exchangeBytes is what one HTTP exchange costs beside its messages: buffers of the connection and a goroutine.
	exchangeBytes  = 32 << 10
	maxHeaderBytes = 64 << 10 // of one answer
	maxErrorBytes  = 64 << 10 // of an answer that is none: one with an error status

	dialTimeout    = 10 * time.Second // and the same for TLS
	headTimeout    = 20 * time.Second // to the head of an answer that is no result: a notification's, a stream's
	roomTimeout    = 5 * time.Second  // that an answer waits for its account to have room
	goodbyeTimeout = 2 * time.Second  // for the DELETE at the end
	drainTimeout   = 250 * time.Millisecond
	// idleTimeout is below the five seconds after which Node's servers close a connection that nothing goes over: a request must
	// not be written to one that is being closed.
	idleTimeout = 4 * time.Second
)

// reserved are headers that the transport itself sends.
var reserved = []string{
	"Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Content-Encoding", "Last-Event-Id", "Mcp-Method", "Mcp-Name",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Host", "Connection", "Keep-Alive", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect",
	"Proxy-Authorization", "Proxy-Connection",
}

// headers checks the configured ones. Its errors name them and never their values.
func (o Options) headers() (http.Header, error) {
	h := make(http.Header, len(o.Headers)+1)
	names := make([]string, 0, len(o.Headers))
	for name := range o.Headers {
		names = append(names, name)
	}
	slices.Sort(names) // the same entry gives the same error
	for _, name := range names {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return nil, badConfig("the header name %q is none: use letters, digits and dashes", name)
		case slices.Contains(reserved, canonical) || strings.HasPrefix(canonical, "Mcp-Param-"):
			return nil, badConfig("the header %s is the transport's own: take it out", name)
		case h[canonical] != nil:
			return nil, badConfig("the header %s stands twice, in different case: keep one", name)
		case !isFieldValue(o.Headers[name]):
			return nil, badConfig("the value of the header %s has a line break or another control character", name)
		}
		h[canonical] = []string{o.Headers[name]}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"acpod/" + o.Build}
	}
	return h, nil
}

// endpoint checks the address. Its errors do not repeat it: it may hold a key.
func (o Options) endpoint() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, badConfig("the url is none")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, badConfig("the url must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, badConfig("the url names no host")
	case u.User != nil:
		return nil, badConfig("the url holds a user: use a header Authorization")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// Check says whether a connection can be made with them, without making one: nil or a *ConfigError.
func (o Options) Check() error {
	if _, err := o.headers(); err != nil {
		return err
	}
	if o.Era != "" && o.Era != mcp.VersionModern {
		return badConfig("the protocol era must be %s or absent", mcp.VersionModern)
	}
	_, err := o.endpoint()
	return err
}
