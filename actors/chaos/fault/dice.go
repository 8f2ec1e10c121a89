package fault

import (
	"hash/fnv"
	"math/rand/v2"
)

// Dice draw for one seed.
type Dice struct{ seed uint64 }

// NewDice makes the dice of a run.
func NewDice(seed uint64) Dice { return Dice{seed} }

// Of gives the stream of numbers for one decision: who decides (extension 17, life), and the how-manieth decision of his it is.
func (d Dice) Of(who string, actor, number int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(who))
	stream := h.Sum64() ^ mix(uint64(actor)+1)
	return rand.New(rand.NewPCG(mix(d.seed)^stream, mix(uint64(number)+stream)))
}

// mix spreads neighbouring numbers over all bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
