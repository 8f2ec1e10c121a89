package tunnel

import "cmp"

// Rank orders the tunnels of one session. The connection's age counts first: an
// old connection's late resume has a higher attach number, and must still not
// take a newer connection's tunnel. Attach order decides within one connection.
// Both numbers are stamped in the reader that saw the declaration, so no
// scheduler's luck decides.
type Rank struct {
	Connection uint64 // Carrier.Rank
	Attach     uint64 // number of the declaration
}

// Compare is -1, 0 or 1 as r is older than, equal to or newer than o.
func (r Rank) Compare(o Rank) int {
	return cmp.Or(cmp.Compare(r.Connection, o.Connection), cmp.Compare(r.Attach, o.Attach))
}

// Claim is one tunnel's claim to a place in its session: a value, so that who
// wins can be decided and tested without an actor.
type Claim struct {
	Name string // declared
	ID   string // declared
	Rank Rank
}

// Verdict is what becomes of a claim.
type Verdict struct {
	StandDown bool  // the claimant yields; its tunnel is stopped with [ErrStoodDown]
	Evict     []int // indices of the holders to stop with [ErrEvicted], ascending
}

// Decide judges a claim against those that hold a place in the same session:
// it stands down when its connection is gone or a holder of the same id or the
// same name ranks higher; else it evicts every other holder of its id or its
// name, whoever owns them. Different names with different ids coexist.
func Decide(holders []Claim, claim Claim, gone bool) Verdict {
	if gone {
		return Verdict{StandDown: true}
	}
	var v Verdict
	for i, h := range holders {
		if h == claim || (h.Name != claim.Name && h.ID != claim.ID) {
			continue
		}
		if h.Rank.Compare(claim.Rank) > 0 {
			return Verdict{StandDown: true}
		}
		v.Evict = append(v.Evict, i)
	}
	return v
}
