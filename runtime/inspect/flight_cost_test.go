//go:build !race

package inspect

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// A process that does nothing but wake goroutines makes as much of a trace as one can: what is recorded of it, the generation that is
// being written included, stays within what is promised.
func TestAFlightOfABusyProcessCostsWhatIsPromised(t *testing.T) {
	const size = 4 << 20
	flight, err := StartFlight(size)
	if err != nil {
		t.Fatal(err)
	}
	defer flight.Stop()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		there, back := make(chan struct{}), make(chan struct{})
		all.Go(func() {
			defer close(there)
			for {
				select {
				case there <- struct{}{}:
					<-back
				case <-stop:
					return
				}
			}
		})
		all.Go(func() {
			for range there {
				back <- struct{}{}
			}
		})
	}
	<-time.After(2 * time.Second) // a generation of the trace is a second at most: two of them are what is measured
	close(stop)
	all.Wait()
	var sent counting
	if _, err := flight.recorder.WriteTo(&sent); err != nil {
		t.Fatal(err)
	}
	t.Logf("a window of %d MiB has %d MiB", size>>20, sent>>20)
	if promised := int64(size*FlightWindows + FlightGenerations); int64(sent) > promised {
		t.Errorf("%d bytes, promised are %d", sent, promised)
	}
}

type counting int64

func (c *counting) Write(b []byte) (int, error) {
	*c += counting(len(b))
	return len(b), nil
}
