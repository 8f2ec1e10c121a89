package demo

import (
	"bufio"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"io"
	"sync"
)

// arrival is one message of the client as it stood on the wire, in wire order. The SDK hands requests to goroutines, so
// a cancel can overtake the prompt before it; who looks at the tap sees both in order.
type arrival struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  jsontext.Value `json:"error"`
}

// tap passes the client's bytes on, line by line, and shows each line first to see, which may keep it.
type tap struct {
	lines *bufio.Reader
	see   func(arrival) (kept bool)
	open  chan struct{} // closed once the agent is ready to be shown lines
	rest  []byte

	mu    sync.Mutex
	stuck bool
}

func newTap(in io.Reader, see func(arrival) bool) *tap {
	return &tap{lines: bufio.NewReaderSize(in, 64<<10), see: see, open: make(chan struct{})}
}

// Read gives what is left of the current line, or waits for the next one that nobody keeps.
func (t *tap) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		<-t.open
		line, err := t.lines.ReadBytes('\n')
		t.mu.Lock()
		stuck := t.stuck
		t.mu.Unlock()
		if stuck {
			select {} // "stops reading" is what /hang promises; only a signal ends this process
		}
		if len(line) == 0 {
			return 0, err
		}
		var message arrival
		if json.Unmarshal(line, &message) != nil || !t.see(message) {
			t.rest = line
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// stick makes every later Read wait for ever.
func (t *tap) stick() {
	t.mu.Lock()
	t.stuck = true
	t.mu.Unlock()
}
