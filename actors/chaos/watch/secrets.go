package watch

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// canary is how the secrets that the harness makes up begin, so that one that was cut is found too.
const canary = "cnry-"

// sessionID is what a session id looks like: in a log there is a tag in its place.
var sessionID = regexp.MustCompile(`sess_[0-9a-fA-F]{8}-[0-9a-fA-F]{4}`)

// Secrets are what must not be found where the pod writes for people. They may be used from any goroutine.
type Secrets struct {
	book *invariant.Book

	mu    sync.RWMutex
	known map[string]struct{}
}

// NewSecrets makes an empty set.
func NewSecrets(book *invariant.Book) *Secrets {
	return &Secrets{book: book, known: map[string]struct{}{}}
}

// Add makes a text a secret: a word of letters, digits, - and _, of at least 16 characters.
func (s *Secrets) Add(text string) {
	if len(text) < 16 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[text] = struct{}{}
}

// Look searches what the pod wrote; where says what that is.
func (s *Secrets) Look(where string, text []byte) {
	if found := s.find(text); found != "" {
		s.book.Break(invariant.NoSecret, nil, "%s shows %s", where, found)
		return
	}
	s.book.Exercise(invariant.NoSecret)
}

// find gives the first secret, masked, with what stands around it; "" for none.
func (s *Secrets) find(text []byte) string {
	if at := sessionID.FindIndex(text); at != nil {
		return "a session id: " + around(text, at[0], at[1])
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	begin := -1
	for i := 0; i <= len(text); i++ {
		if i < len(text) && wordByte(text[i]) {
			if begin < 0 {
				begin = i
			}
			continue
		}
		if begin >= 0 {
			word := text[begin:i]
			if _, secret := s.known[string(word)]; secret || len(word) > len(canary) && string(word[:len(canary)]) == canary {
				return "a secret: " + around(text, begin, i)
			}
		}
		begin = -1
	}
	return ""
}

func around(text []byte, from, to int) string {
	return fmt.Sprintf("%q…%q", text[max(0, from-120):from], text[from:min(to, from+12)])
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}
