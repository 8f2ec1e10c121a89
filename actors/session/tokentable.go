package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
)

// tokenShards is how many maps the table is cut into, so that a change copies one of them and not all. 20,000 tokens
// (limits.sessions) make about 80 in each.
const tokenShards = 256

// Tokens tells which caller stands behind a token. Reading takes no lock and no turn: each shard is an immutable map
// behind an atomic pointer. Writing is safe from any goroutine, because releases run on their own. The zero value is
// ready. It knows the SHA-256 of each token and never the token.
type Tokens struct {
	shards          [tokenShards]atomic.Pointer[map[[32]byte]capability.Caller]
	minted, revoked atomic.Int64
	// ends are closed when their token is revoked; only tokens that somebody has asked about have one.
	ends sync.Map // [32]byte → chan struct{}
}

// Mint makes a token of 32 random bytes (base64url without padding) that stands for the caller until exactly this
// token is revoked. Tokens of one session coexist: a new one takes nothing from an older one.
func (t *Tokens) Mint(caller capability.Caller) string {
	var secret [32]byte
	rand.Read(secret[:]) // never fails: crypto/rand ends the process rather than return an error
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	sha := sha256.Sum256([]byte(token))
	caller.Token = sha
	if t.change(sha, func(shard map[[32]byte]capability.Caller) { shard[sha] = caller }) {
		t.minted.Add(1)
	}
	return token
}

// Revoke ends exactly this token and nothing else; revoking it again changes nothing. It tells whether the token was
// alive. When it returns, no later Resolve finds it.
func (t *Tokens) Revoke(token string) bool {
	sha := sha256.Sum256([]byte(token))
	if !t.change(sha, func(shard map[[32]byte]capability.Caller) { delete(shard, sha) }) {
		return false
	}
	t.revoked.Add(1)
	if end, asked := t.ends.LoadAndDelete(sha); asked {
		close(end.(chan struct{}))
	}
	return true
}

// Resolve finds the caller by the SHA-256 of the token that a request brought. The map finds a candidate, the compare
// in constant time decides.
func (t *Tokens) Resolve(sha [32]byte) (capability.Caller, bool) {
	shard := t.shards[sha[0]].Load()
	if shard == nil {
		return capability.Caller{}, false
	}
	caller, found := (*shard)[sha]
	if !found || subtle.ConstantTimeCompare(caller.Token[:], sha[:]) != 1 {
		return capability.Caller{}, false
	}
	return caller, true
}

// Ended is closed when the token with that SHA-256 is revoked; of one that is not alive it is closed already.
func (t *Tokens) Ended(sha [32]byte) <-chan struct{} {
	end, _ := t.ends.LoadOrStore(sha, make(chan struct{}))
	if _, live := t.Resolve(sha); !live { // asked behind the revocation, or between its two steps, of which the second may not have seen us
		if mine, there := t.ends.LoadAndDelete(sha); there {
			close(mine.(chan struct{}))
		}
	}
	return end.(chan struct{})
}

// Live is how many tokens work now.
func (t *Tokens) Live() int {
	minted, revoked := t.Counts()
	return int(minted - revoked)
}

// Counts are the tokens minted and those revoked so far; the difference works now. A token that is minted and revoked while they are
// read may be missing in both, never in the first alone.
func (t *Tokens) Counts() (minted, revoked int64) {
	revoked = t.revoked.Load()
	return t.minted.Load(), revoked
}

// change replaces the shard of sha by an edited copy and tells whether its size changed.
func (t *Tokens) change(sha [32]byte, edit func(map[[32]byte]capability.Caller)) bool {
	slot := &t.shards[sha[0]]
	for {
		old := slot.Load()
		var before int
		next := make(map[[32]byte]capability.Caller, 1)
		if old != nil {
			before = len(*old)
			for k, v := range *old {
				next[k] = v
			}
		}
		edit(next)
		if len(next) == before {
			return false
		}
		if slot.CompareAndSwap(old, &next) {
			return true
		}
	}
}
