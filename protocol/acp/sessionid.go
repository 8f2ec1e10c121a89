package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const sessionPrefix = "sess_"

// SessionID is the id of a session: sess_ and the lower-case dashed form of a UUID,
// whose 128 bits the caller took from a random source.
func SessionID(uuid [16]byte) string {
	h := hex.EncodeToString(uuid[:])
	return sessionPrefix + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ValidSessionID reports whether id has the one canonical form. Another spelling of
// the same UUID is another id, and unknown.
func ValidSessionID(id string) bool {
	uuid, ok := strings.CutPrefix(id, sessionPrefix)
	if !ok || len(uuid) != 36 {
		return false
	}
	for i := range len(uuid) {
		c := uuid[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
				return false
			}
		}
	}
	return true
}

// SessionTag stands for a session in logs, errors, metrics and the tree, where its
// id, which is a credential, must not: # and the first four bytes, lower hex, of the
// SHA-256 of the id without its prefix. Every component makes the same tag.
func SessionTag(id string) string { return "#" + tagDigits(id) }

// TreeName is the name of a session's actor: sess- and the digits of its tag.
func TreeName(id string) string { return "sess-" + tagDigits(id) }

// SessionSum stands for a session in files, where no other may ever be taken for it: the
// lower hex of the whole SHA-256 that SessionTag begins.
func SessionSum(id string) string {
	sum := sessionSum(id)
	return hex.EncodeToString(sum[:])
}

func tagDigits(id string) string {
	sum := sessionSum(id)
	return hex.EncodeToString(sum[:4])
}

func sessionSum(id string) [32]byte {
	return sha256.Sum256([]byte(strings.TrimPrefix(strings.TrimPrefix(id, sessionPrefix), "acp_")))
}
