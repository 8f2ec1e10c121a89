package connection

import "math/bits"

// gws reads each frame into a buffer with 4 bytes to spare, from pools of powers of two up to mostBuffer; a longer one is made as long as it has
// to be.
const (
	spareBuffer = 4
	mostBuffer  = 256 << 10
)

// readBuffer is what is paid for a frame of n bytes while it comes in: what gws holds for it. Of a small one that is its bytes, since what its
// buffer has more, 8 KiB at most, is in what a connection costs. What is kept of a message is paid once it is whole.
func readBuffer(n int64) int64 {
	if n <= pooledBytes || n+spareBuffer > mostBuffer {
		return n
	}
	return int64(1) << bits.Len64(uint64(n+spareBuffer-1))
}

// pooledBytes is the size up to which a message is copied out so that its buffer goes back to gws's pool. What stands in a pool is
// on no account and lives through two collections: so larger ones are left to the collector.
const pooledBytes = 4 << 10

// take gives the message's bytes in a slice that costs about what it holds, and tells whether the buffer may go back to the pool.
func take(data []byte) (kept []byte, pooled bool) {
	pooled = len(data) <= pooledBytes
	if pooled || cap(data)-len(data) > len(data)/4 {
		return append(make([]byte, 0, len(data)), data...), pooled
	}
	return data, false
}
