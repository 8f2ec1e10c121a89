package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
)

// owner is whom a session belongs to: the key that it was opened with and, when that client gave a secret, the client.
type owner struct {
	key    string
	secret [32]byte // zero = no client secret: every client of that key
}

// admits tells whether a client with that key and secret may resume the session. For anybody else the session does
// not exist: the answer is that of an unknown id.
func (o owner) admits(key string, secret [32]byte) bool {
	if o.key != key {
		return false
	}
	return o.secret == [32]byte{} || subtle.ConstantTimeCompare(o.secret[:], secret[:]) == 1
}

// pinScope is the name under which pins of this client's servers are kept ([capability.PinOwner]): the same whenever the client comes
// back, and no help to whoever reads it. "" = the client gave no secret and will not be known again. The part before the dash is the key's alone.
func (o owner) pinScope() string {
	if o.secret == [32]byte{} {
		return ""
	}
	key := sha256.Sum256([]byte("acpod.dev/pins key\x00" + o.key))
	client := sha256.Sum256([]byte("acpod.dev/pins client\x00" + string(key[:]) + string(o.secret[:])))
	return hex.EncodeToString(key[:4]) + "-" + hex.EncodeToString(client[:16])
}

// claim is what a resume finds.
type claim struct {
	held  bool   // another connection, or this one, owns the session and is still open
	same  bool   // … and it is this very connection
	turn  bool   // a turn runs
	rank  uint64 // of the connection that asks
	other uint64 // of the connection that owns
}

type verdict uint8

const (
	grant      verdict = iota // attach; a former owner is superseded
	busy                      // -32001 busy: a turn runs on this very connection
	superseded                // -32001 superseded: a newer connection that is still open owns it
)

// judge decides a resume by somebody whom the owner admits (contract, "Losing and finding").
func judge(c claim) verdict {
	switch {
	case !c.held:
		return grant
	case c.same && c.turn:
		return busy
	case c.same:
		return grant
	case c.other > c.rank:
		return superseded
	}
	return grant
}
