package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// name is a record's: it tells nothing of the session's id to whoever sees it.
type name [16]byte

const (
	recordSuffix = ".json"
	newerSuffix  = recordSuffix + ".newer"
	aside        = recordSuffix + ".damaged-"
	tempSuffix   = ".tmp"
)

func nameOf(id string) name {
	sum := sha256.Sum256([]byte("acpod.dev/session record\x00" + id))
	return name(sum[:])
}

func (n name) file() string { return hex.EncodeToString(n[:]) + recordSuffix }

// parseName reads a file's name that ends so.
func parseName(file, suffix string) (n name, ok bool) {
	digits, ok := strings.CutSuffix(file, suffix)
	if !ok || len(digits) != 2*len(n) {
		return n, false
	}
	_, err := hex.Decode(n[:], []byte(digits))
	return n, err == nil && hex.EncodeToString(n[:]) == digits
}
