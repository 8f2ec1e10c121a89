package session

import "time"

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
