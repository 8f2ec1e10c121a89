package session

import (
	"sync"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/admission"
)

// admissionRetry is what a client is told that finds no room for a session or an agent.
const admissionRetry = time.Second

// gate is what sessions and their agents are counted by. What becomes of a claim is the supervisor's to decide, and it alone
// makes any; the slots of its generations end with them.
type gate struct {
	desk                     *admission.Desk
	sessions, perKey, agents *admission.Limit

	mu  sync.Mutex // a generation that was abandoned may still be in its turn when its successor starts
	now *admission.Group
}

func newGate(cfg *Config) *gate {
	return &gate{
		desk:     cfg.Admission,
		sessions: cfg.Admission.Limit("sessions", cfg.Sessions, admissionRetry),
		perKey:   cfg.Admission.Limit("sessions_per_key", cfg.SessionsPerKey, admissionRetry),
		agents:   cfg.Admission.Limit(jsonrpc.ScopeMaxSessions, cfg.MaxSessions, admissionRetry),
	}
}

// generation begins the slots of a generation of the supervisor and ends those of the one before.
func (g *gate) generation() *admission.Group {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now != nil {
		g.now.Close()
	}
	g.now = g.desk.Group()
	return g.now
}

// way is how somebody comes in.
type way uint8

const (
	wayNew   way = iota // session/new: a session that was not there
	wayBack             // a suspended one lives again: session/resume, and whatever else brings one back
	wayJoin             // session/resume of a living one
	wayAgent            // an agent is started: with its session, or later when that has a prompt for one
)

// claims is what has to be free for somebody who comes in that way, before anything is done for them. The connection has
// claimed its own part before. An agent is claimed when the request was found good, because at the cap that ends another
// session's agent, which a request that is refused must not do.
func (g *gate) claims(w way, key string) []admission.Claim {
	switch w {
	case wayNew, wayBack:
		return []admission.Claim{g.sessions.Claim(), g.perKey.Of(key)}
	case wayAgent:
		return []admission.Claim{g.agents.Claim()}
	case wayJoin:
	}
	return nil // what lives is counted already
}

// candidate is a living session that holds a place of max_sessions.
type candidate struct {
	id         string
	key        string
	idleSince  time.Time // end of its last turn, or its opening
	busy       bool      // a turn runs, it is being opened, or it is on its way out already
	clientless bool
}

// victim chooses the session to suspend when all places are taken: of the key with the most agents first, then one
// without a client first, then the one longest idle. ok is false when every session is busy. The id breaks ties, so
// that the choice depends on nothing but the candidates.
func victim(all []candidate) (id string, ok bool) {
	agents := make(map[string]int)
	for _, c := range all {
		agents[c.key]++
	}
	var best *candidate
	for i := range all {
		c := &all[i]
		if !c.busy && (best == nil || c.before(best, agents)) {
			best = c
		}
	}
	if best == nil {
		return "", false
	}
	return best.id, true
}

func (c *candidate) before(o *candidate, agents map[string]int) bool {
	if a, b := agents[c.key], agents[o.key]; a != b {
		return a > b
	}
	if c.clientless != o.clientless {
		return c.clientless
	}
	if !c.idleSince.Equal(o.idleSince) {
		return c.idleSince.Before(o.idleSince)
	}
	return c.id < o.id
}
