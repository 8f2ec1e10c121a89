package ledger

import (
	"sync"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// Sessions are the session ids and tokens that the pod has given: each to one client only.
type Sessions struct {
	book *invariant.Book

	mu     sync.Mutex
	owners map[string]int // session id → extension
	tokens map[string]int // token → extension
}

// NewSessions makes an empty ledger.
func NewSessions(book *invariant.Book) *Sessions {
	return &Sessions{book: book, owners: map[string]int{}, tokens: map[string]int{}}
}

// Opened enters a session that session/new gave to an extension.
func (s *Sessions) Opened(id string, extension int) {
	s.mu.Lock()
	former, twice := s.owners[id]
	s.owners[id] = extension
	s.mu.Unlock()
	if twice {
		s.book.Break(invariant.OwnClient, nil, "a session that extension %d has was opened again for extension %d", former, extension)
		return
	}
	s.book.Exercise(invariant.OwnClient)
}

// Token enters a token that a session was given.
func (s *Sessions) Token(token string, extension int) {
	s.mu.Lock()
	former, known := s.tokens[token]
	s.tokens[token] = extension
	s.mu.Unlock()
	if known && former != extension {
		s.book.Break(invariant.OwnClient, nil, "extension %d was given the token of extension %d", extension, former)
	}
}

// Listed enters that session/list showed a session to an extension.
func (s *Sessions) Listed(id string, extension int) {
	s.mu.Lock()
	owner, known := s.owners[id]
	s.mu.Unlock()
	if known && owner != extension {
		s.book.Break(invariant.OwnClient, nil, "session/list shows a session of extension %d to extension %d", owner, extension)
		return
	}
	s.book.Exercise(invariant.OwnClient)
}

// Other gives the id of a session of another extension, "" when there is none; pick chooses among n.
func (s *Sessions) Other(extension int, pick func(n int) int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners) == 0 {
		return ""
	}
	skip := pick(min(len(s.owners), 16))
	for id, owner := range s.owners {
		if owner == extension {
			continue
		}
		if skip--; skip < 0 {
			return id
		}
	}
	return ""
}

// Claimed enters what the pod said to an extension that named a session of another: ok is true when it was served.
func (s *Sessions) Claimed(extension int, served bool, how string) {
	if served {
		s.book.Break(invariant.OwnClient, nil, "extension %d was served %s of a session that is another's", extension, how)
		return
	}
	s.book.Exercise(invariant.OwnClient)
}
