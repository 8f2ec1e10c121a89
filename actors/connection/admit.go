package connection

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/acpod/acpod/runtime/door"
)

const (
	// subprotocol is the only one that is ever echoed.
	subprotocol = "acp.v1"
	// bearerEntry is the prefix of a subprotocol entry that carries a key, for browsers, which can set no header.
	bearerEntry = "openab.bearer."
	// closeUnauthorized is sent after a 101 to a client whose key was in a subprotocol entry: a browser shows its page no
	// status of a refused upgrade, only this code.
	closeUnauthorized = 4401

	headerProtocol = "Sec-Websocket-Protocol"
)

// verdict is the decision about one upgrade request.
type verdict struct {
	status   int    // 101, or the status that refuses
	close    uint16 // after the 101, close with this code and serve nothing; 0 = serve
	identity string // whose sessions this client sees
	echo     bool   // name acp.v1 in the 101
	reason   string // of a refusal: a word for the counter, never anything of the peer's
	text     string // of a refusal: what the peer is told
}

// admit decides who gets in. Keyless: by Host and Origin. Keyed: by the key alone, from the Authorization header when that
// is a bearer, else from the subprotocols.
func admit(keys []Key, origins []string, host string, h http.Header) verdict {
	offers := offeredProtocols(h)
	v := verdict{status: http.StatusSwitchingProtocols, identity: Loopback, echo: slices.Contains(offers, subprotocol)}
	if len(keys) == 0 {
		return admitKeyless(v, origins, host, h)
	}
	lines := h.Values("Authorization")
	if len(lines) > 1 {
		return v.refuse(http.StatusBadRequest, "two_authorizations", "send one Authorization header")
	}
	if len(lines) == 1 {
		if token, bearer := strings.CutPrefix(lines[0], "Bearer "); bearer {
			if v.identity = identify(keys, token); v.identity == "" {
				return v.refuse(http.StatusUnauthorized, "wrong_key", "the bearer token is not a key of this pod")
			}
			return v
		}
	}
	for _, offer := range offers {
		if token, bearer := strings.CutPrefix(offer, bearerEntry); bearer {
			if v.identity = identify(keys, token); v.identity == "" {
				v.close, v.reason, v.text = closeUnauthorized, "wrong_key", "unauthorized"
			}
			return v
		}
	}
	return v.refuse(http.StatusUnauthorized, "no_key", "send the key as Authorization: Bearer, or as the subprotocol "+bearerEntry+"<key>")
}

func admitKeyless(v verdict, origins []string, host string, h http.Header) verdict {
	if !door.LoopbackHost(host) {
		return v.refuse(http.StatusForbidden, "host", "the Host must be localhost or a loopback address")
	}
	sent := h.Values("Origin")
	switch {
	case len(sent) == 0:
		return v
	case len(sent) == 1 && (door.OwnOrigin(sent[0], host) || slices.Contains(origins, sent[0])):
		return v
	}
	return v.refuse(http.StatusForbidden, "origin", "this Origin is not in acp.allowed_origins")
}

func (v verdict) refuse(status int, reason, text string) verdict {
	return verdict{status: status, reason: reason, text: text}
}

// identify compares a token with every key, always all of them, by hash and in constant time.
func identify(keys []Key, token string) (identity string) {
	hash := sha256.Sum256([]byte(token))
	for _, key := range keys {
		if subtle.ConstantTimeCompare(hash[:], key.hash[:]) == 1 {
			identity = key.Identity
		}
	}
	return identity
}

// offeredProtocols lists the subprotocols that a client offers, over all header lines.
func offeredProtocols(h http.Header) []string {
	var offers []string
	for _, line := range h.Values(headerProtocol) {
		for entry := range strings.SplitSeq(line, ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				offers = append(offers, entry)
			}
		}
	}
	return offers
}

// strip takes the key out of the headers and leaves of the subprotocols what will be echoed, in one line, because gws
// reads only the first.
func strip(h http.Header, echo bool) {
	h.Del("Authorization")
	h.Del(headerProtocol)
	if echo {
		h.Set(headerProtocol, subprotocol)
	}
}
