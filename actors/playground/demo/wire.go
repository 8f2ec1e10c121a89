package demo

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"io"
	"sync"
)

// lines serialises writers of whole lines: the SDK's frames, and what it would not write. An answer of the SDK can be
// changed on its way, and can have lines right behind it.
type lines struct {
	mu      sync.Mutex
	to      io.Writer
	amended map[string]func(result jsontext.Value) jsontext.Value // by the request's id
	after   map[string][]byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := p
	if len(l.amended) > 0 || len(l.after) > 0 {
		out = l.revised(p)
	}
	if _, err := l.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// revised is a frame of the SDK as it leaves.
func (l *lines) revised(p []byte) []byte {
	var frame arrival
	if json.Unmarshal(p, &frame) != nil || frame.Method != "" {
		return p
	}
	id := string(frame.ID)
	if change := l.amended[id]; change != nil {
		delete(l.amended, id)
		if frame.Result != nil {
			p = joined(`{"jsonrpc":"2.0","id":`, id, `,"result":`, string(change(frame.Result)), "}\n")
		}
	}
	if after := l.after[id]; after != nil {
		delete(l.after, id)
		p = append(bytes.Clone(p), after...)
	}
	return p
}

// amend changes the result of the request with that id when it is answered.
func (l *lines) amend(id jsontext.Value, change func(jsontext.Value) jsontext.Value) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.amended == nil {
		l.amended = map[string]func(jsontext.Value) jsontext.Value{}
	}
	l.amended[string(id)] = change
}

// behind puts a line behind the answer of the request with that id.
func (l *lines) behind(id jsontext.Value, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after == nil {
		l.after = map[string][]byte{}
	}
	l.after[string(id)] = append(append(l.after[string(id)], line...), '\n')
}

// frame writes one line of JSON made of these parts.
func (l *lines) frame(parts ...string) error {
	_, err := l.Write(joined(append(parts, "\n")...))
	return err
}

func joined(parts ...string) []byte {
	var line []byte
	for _, part := range parts {
		line = append(line, part...)
	}
	return line
}
