package scale

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets that are at most 1/128 of their value wide, from 1 ns to two hours: it takes 36 KiB
// whatever it counts. The zero value is ready. It is not for use from two goroutines.
type Histogram struct {
	counts [(maxExponent + 2) << subBits]uint64
	n      uint64
	max    time.Duration
	sum    time.Duration
}

const (
	subBits     = 7
	maxExponent = 42 - subBits // 2^43 ns and more stand in the last bucket
)

// bucket is the index of a value: below 2^8 its own, above that its exponent and the seven bits behind its first.
func bucket(v uint64) int {
	exponent := max(bits.Len64(v)-1-subBits, 0)
	if exponent > maxExponent {
		return (maxExponent+2)<<subBits - 1
	}
	return exponent<<subBits + int(v>>exponent)
}

// upper is the largest value of a bucket.
func upper(index int) uint64 {
	exponent := max(index>>subBits-1, 0)
	return (uint64(index-exponent<<subBits)+1)<<exponent - 1
}

// Add counts one duration; one below zero counts as none.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.n++
	h.sum += d
	h.max = max(h.max, d)
}

// Merge adds what another counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// Quantile is the duration that the share q of all does not exceed, to within 1/128 of it; 0 when nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q*float64(h.n) + 0.5)
	if rank >= h.n {
		return h.max
	}
	rank = max(rank, 1)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(upper(i)), h.max)
		}
	}
	return h.max
}

// Latency is what a report says of a histogram, in milliseconds.
type Latency struct {
	N    uint64  `json:"n"`
	Mean float64 `json:"mean_ms"`
	P50  float64 `json:"p50_ms"`
	P90  float64 `json:"p90_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`
	Max  float64 `json:"max_ms"`
}

// Latency gives the usual quantiles.
func (h *Histogram) Latency() Latency {
	l := Latency{N: h.n, P50: ms(h.Quantile(0.5)), P90: ms(h.Quantile(0.9)), P99: ms(h.Quantile(0.99)), P999: ms(h.Quantile(0.999)), Max: ms(h.max)}
	if h.n > 0 {
		l.Mean = ms(h.sum / time.Duration(h.n))
	}
	return l
}

func ms(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }
