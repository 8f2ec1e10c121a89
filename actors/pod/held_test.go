package pod

import (
	"math"
	"testing"
)

// TestALargePayloadIsHeldOnce: of a result the whole pod makes no second copy, from the socket to the HTTP response, and none
// of arguments, from the HTTP request to the socket. What else a call allocates is small beside them.
func TestALargePayloadIsHeldOnce(t *testing.T) {
	for _, row := range []struct {
		name               string
		arguments, results int
		most               float64 // bytes allocated for each of the payload
	}{
		{"a result of 8 MiB", 1 << 10, 8<<20 - 256, 1.1},
		{"arguments of 1 MiB", 1<<20 - 512, 1 << 10, 1.3},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := startBench(t, row.arguments, row.results, 1)
			least := math.Inf(1) // what else goes on in the process allocates as well
			for range 4 {
				_, bytes := x.allocated(x.pod, 1)
				least = min(least, bytes/float64(row.arguments+row.results))
			}
			if least > row.most {
				t.Errorf("%.2f bytes are allocated for each byte of it, more than %.1f", least, row.most)
			}
		})
	}
}
