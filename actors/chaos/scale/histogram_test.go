package scale

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestAQuantileIsWhatSortingGives(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var whole, other Histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(random.ExpFloat64() * 1e6 * float64(1+i%1000))
		all = append(all, d)
		if i%3 == 0 {
			other.Add(d)
		} else {
			whole.Add(d)
		}
	}
	whole.Merge(&other)
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(0, int(q*float64(len(all))+0.5)-1)]
		if got := whole.Quantile(q); got < want || float64(got) > float64(want)*(1+1.0/128)+1 {
			t.Errorf("quantile %v is %v, by sorting %v", q, got, want)
		}
	}
	if l := whole.Latency(); l.N != uint64(len(all)) || l.Max != ms(all[len(all)-1]) || l.P50 >= l.P99 || l.Mean <= 0 {
		t.Errorf("the report of it: %+v", l)
	}
}

func TestEveryDurationHasABucketThatHoldsIt(t *testing.T) {
	last := -1
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 257, 258, 1 << 20, 1<<20 + 1<<13, 1 << 30, 1<<43 - 1} {
		i := bucket(v)
		if i < last || upper(i) < v || float64(upper(i)) > float64(v)*(1+1.0/128) {
			t.Errorf("%d stands in bucket %d, which ends at %d", v, i, upper(i))
		}
		last = i
	}
	var h Histogram
	h.Add(-time.Second)
	h.Add(1 << 62)
	if h.Quantile(0.1) != 0 || h.Quantile(1) != 1<<62 {
		t.Errorf("the ends are %v and %v", h.Quantile(0.1), h.Quantile(1))
	}
	var none Histogram
	if none.Quantile(0.5) != 0 {
		t.Error("of nothing, half took some time")
	}
}
