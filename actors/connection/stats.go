package connection

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// counters count over all connections of a gateway, since it was made. Safe from any goroutine.
type counters struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Int64
	notUTF8, binary, lateAnswers           atomic.Int64

	mu      sync.Mutex
	exits   map[Reason]int64
	refused map[string]int64
}

func newCounters() *counters {
	c := &counters{exits: map[Reason]int64{}, refused: map[string]int64{}}
	for _, r := range Reasons {
		c.exits[r] = 0
	}
	return c
}

func (c *counters) exit(r Reason) {
	c.mu.Lock()
	c.exits[r]++
	c.mu.Unlock()
}

func (c *counters) refuse(why string) {
	c.mu.Lock()
	c.refused[why]++
	c.mu.Unlock()
}

// Stats is a snapshot of what a gateway counted, for metrics.
type Stats struct {
	Connections                            int // open now, upgrades under way included
	FramesIn, FramesOut, BytesIn, BytesOut int64
	NotUTF8                                int64            // bytes replaced by U+FFFD
	Binary                                 int64            // binary frames ignored
	LateAnswers                            int64            // answers to requests that nobody waits for
	Exits                                  map[Reason]int64 // by reason, every one listed
	Refused                                map[string]int64 // upgrades refused, by a word for why
}

func (c *counters) snapshot() Stats {
	s := Stats{
		FramesIn: c.framesIn.Load(), FramesOut: c.framesOut.Load(), BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		NotUTF8: c.notUTF8.Load(), Binary: c.binary.Load(), LateAnswers: c.lateAnswers.Load(),
		Exits: map[Reason]int64{}, Refused: map[string]int64{},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range c.exits {
		s.Exits[k] = n
	}
	for k, n := range c.refused {
		s.Refused[k] = n
	}
	return s
}

// sizeText writes a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
