package capability

import "github.com/acpod/acpod/runtime/kernel"

// What a desk remembers for the life of its session, each on the session's account.
const (
	nameBytes     = 256 // a name given, in both tables, beside its texts
	declaredBytes = 512 // a declared name, in the desk and in its view
	keyBytes      = 1 << 10
)

// bill is the lease for what a desk remembers. Names, declared names and keys are chosen by others and outlive what they
// were for, so they are paid like everything else.
type bill struct {
	lease *kernel.Lease
	names int64 // bytes
	// free: nobody pays. The desk of anonymous callers is one in the pod, and what it remembers outlives everybody who called.
	free bool
}

// pay makes the account pay for names, declared names and keys as many as they are about to be. False: there is no room,
// and what was paid before still is.
func (b *bill) pay(account *kernel.Account, names int64, declared, keys int) bool {
	if b.free {
		return true
	}
	want := names + declaredBytes*int64(declared) + keyBytes*int64(keys)
	if have := b.lease.Size(); want <= have {
		b.lease.Shrink(want)
	} else {
		lease, err := account.Acquire(want)
		if err != nil {
			return false
		}
		b.lease.Release()
		b.lease = lease
	}
	b.names = names
	return true
}

// bytes is what the names cost that are the session's alone.
func (n names) bytes() (sum int64) {
	for name, b := range n.meaning {
		sum += nameBytes + 2*int64(len(name)+len(b.server)+len(b.tool))
	}
	for name, b := range n.also {
		sum += nameBytes + int64(len(name)+len(b.server)+len(b.tool))
	}
	return sum
}
