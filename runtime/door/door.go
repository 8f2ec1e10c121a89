package door

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Reason says which rule refused a request. The set is closed; the text is fit for a counter's label.
type Reason string

const (
	// Open means that no rule objects.
	Open Reason = ""
	// ForeignHost: the Host header is no loopback name or address although the listener is a loopback one.
	ForeignHost Reason = "host"
	// ForeignOrigin: there is an Origin other than http://<Host>, or more than one.
	ForeignOrigin Reason = "origin"
	// CrossSite: a browser says that another site made the request.
	CrossSite Reason = "cross_site"
)

// Rules are the rules of one listener. The zero value is those of a listener beyond loopback, where any Host is taken.
type Rules struct {
	// Loopback tells that the listener is bound to a loopback address, so that only loopback hosts are its own.
	Loopback bool
}

// For returns the rules of a listener bound to addr.
func For(addr net.Addr) Rules {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return Rules{}
	}
	ip, err := netip.ParseAddr(host)
	return Rules{Loopback: err == nil && ip.IsLoopback()}
}

// Check returns the first rule that refuses the request, or Open. It reads headers only, the method and the path play
// no part.
func (r Rules) Check(req *http.Request) Reason {
	if r.Loopback && !LoopbackHost(req.Host) {
		return ForeignHost
	}
	if origins, sent := req.Header["Origin"]; sent {
		if len(origins) != 1 || !OwnOrigin(origins[0], req.Host) {
			return ForeignOrigin
		}
	}
	for _, site := range req.Header["Sec-Fetch-Site"] {
		if strings.EqualFold(strings.TrimSpace(site), "cross-site") {
			return CrossSite
		}
	}
	return Open
}

// Guard answers 403 to what the rules refuse and passes the rest to next. refused, when it is not nil, runs once for
// each refusal, on the goroutine of the request: it must not block.
func (r Rules) Guard(next http.Handler, refused func(Reason)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if reason := r.Check(req); reason != Open {
			if refused != nil {
				refused(reason)
			}
			Forbid(w, reason)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// Forbid writes the 403 of a reason. Nothing that the peer sent is repeated in it.
func Forbid(w http.ResponseWriter, reason Reason) {
	text := "this listener is not open to other sites"
	switch reason {
	case ForeignHost:
		text = "the Host must be localhost or a loopback address"
	case ForeignOrigin:
		text = "the Origin must be absent or http://<Host>"
	}
	http.Error(w, "forbidden: "+text, http.StatusForbidden)
}

// OwnOrigin reports whether origin is http://<host> and nothing else. Both are compared without case, as browsers
// lower them and other clients may not.
func OwnOrigin(origin, host string) bool {
	const scheme = "http://"
	return host != "" && len(origin) > len(scheme) &&
		sameASCII(origin[:len(scheme)], scheme) && sameASCII(origin[len(scheme):], host)
}

// sameASCII compares without the case of ASCII letters only: strings.EqualFold also takes letters that merely fold to
// them, such as the long s, and a name with one is another name.
func sameASCII(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// LoopbackHost reports whether a Host header names this machine's loopback: `localhost` or a loopback address, with or
// without a port. Names below localhost and a trailing dot are not taken: whether they reach loopback is up to a
// resolver, and that is what a rebinding attack controls.
func LoopbackHost(hostport string) bool {
	host := hostport
	if strings.HasPrefix(hostport, "[") {
		end := strings.IndexByte(hostport, ']')
		if end < 0 || !portSuffix(hostport[end+1:]) {
			return false
		}
		ip, err := netip.ParseAddr(hostport[1:end])
		return err == nil && ip.Is6() && ip.Zone() == "" && ip.IsLoopback()
	}
	if colon := strings.LastIndexByte(hostport, ':'); colon >= 0 {
		if !portSuffix(hostport[colon:]) {
			return false
		}
		host = hostport[:colon]
	}
	if sameASCII(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Is4() && ip.IsLoopback()
}

// portSuffix reports whether s is empty or a colon with one to five digits.
func portSuffix(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) < 2 || len(s) > 6 {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
