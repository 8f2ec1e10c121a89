package facade

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/acpod/acpod/actors/capability"
)

// Callers knows which bearer tokens are live. The session's token table implements it.
type Callers interface {
	// Resolve returns the caller whose token has this SHA-256. It is asked on every request, from any goroutine, and
	// must not block: a token that was revoked a moment ago must not resolve any more.
	Resolve(sha [32]byte) (capability.Caller, bool)
}

// bearerKind says what the Authorization header of a request amounts to. The set is closed; the text labels a counter.
type bearerKind string

const (
	noBearer   bearerKind = "none"
	liveBearer bearerKind = "live"
	// keyBearer is the operator's key: it opens the door when anonymous callers are kept out and is no identity.
	keyBearer bearerKind = "key"
	// deadBearer is a well-formed token that stands for nobody, or not any more.
	deadBearer bearerKind = "dead_bearer"
	// oddBearer is an Authorization that is none of ours: another scheme, nothing behind it, over 512 bytes.
	oddBearer bearerKind = "odd_bearer"
	// twoBearers: more than one Authorization header. Neither is believed, as whoever stands between may read the other.
	twoBearers bearerKind = "two_bearers"
)

// longestBearer bounds what is hashed for a stranger; our tokens have 43 bytes.
const longestBearer = 512

// identify resolves the bearer of one request. The caller is the zero value for all but a live bearer.
func identify(h http.Header, callers Callers, key [32]byte) (capability.Caller, bearerKind) {
	lines := h["Authorization"]
	switch len(lines) {
	case 0:
		return capability.Caller{}, noBearer
	case 1:
	default:
		return capability.Caller{}, twoBearers
	}
	token, ok := bearerToken(lines[0])
	if !ok {
		return capability.Caller{}, oddBearer
	}
	sha := sha256.Sum256([]byte(token))
	if callers != nil {
		if caller, live := callers.Resolve(sha); live {
			return caller, liveBearer
		}
	}
	if key != ([32]byte{}) && subtle.ConstantTimeCompare(sha[:], key[:]) == 1 {
		return capability.Caller{}, keyBearer
	}
	return capability.Caller{}, deadBearer
}

// bearerToken takes the token out of an Authorization header. The scheme is read without case, as the standard wants.
func bearerToken(line string) (string, bool) {
	scheme, token, ok := strings.Cut(line, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token = strings.Trim(token, " ")
	if token == "" || len(token) > longestBearer {
		return "", false
	}
	return token, true
}
