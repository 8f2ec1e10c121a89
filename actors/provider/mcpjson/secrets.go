package mcpjson

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/url"
	"slices"
	"strings"
)

// MinSecret is the length of the shortest value that is treated as a secret: shorter ones ("1", "info", a port) are no keys, and replacing
// them everywhere would leave no text readable.
const MinSecret = 6

// secretSet gathers what must not be shown.
type secretSet map[string]struct{}

func (s *secretSet) add(value string) {
	value = strings.TrimSpace(value)
	if len(value) < MinSecret || value == "true" || value == "false" {
		return
	}
	if *s == nil {
		*s = secretSet{}
	}
	(*s)[value] = struct{}{}
	if escaped := url.QueryEscape(value); escaped != value { // as a server may say it again in an address
		(*s)[escaped] = struct{}{}
	}
}

// list is the longest first, and of equal length in order: what is replaced does not depend on a map.
func (s secretSet) list() []string {
	out := sortedKeys(s)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// isPublic tells variables that say where things are and hold no secret: replacing their values would hide every path.
func isPublic(name string) bool {
	switch name {
	case "HOME", "PATH", "PWD", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "TZ", "HOSTNAME", "NODE_ENV":
		return true
	}
	return strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "LC_")
}

// hash is a digest in which no two configurations run together: each part comes with its length.
func (r Resolved) hash() (sum [32]byte) {
	h := sha256.New()
	put(h, r.Name, r.Kind.String(), r.Command, r.Dir, r.URL)
	put(h, r.Args...)
	for _, table := range []map[string]string{r.Env, r.Headers} {
		var flat []string
		for _, name := range sortedKeys(table) {
			flat = append(flat, name, table[name])
		}
		put(h, flat...)
	}
	copy(sum[:], h.Sum(nil))
	return sum
}

func put(h hash.Hash, parts ...string) {
	n := binary.AppendUvarint(nil, uint64(len(parts)))
	h.Write(n)
	for _, p := range parts {
		h.Write(binary.AppendUvarint(n[:0], uint64(len(p))))
		h.Write([]byte(p))
	}
}
