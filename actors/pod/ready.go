package pod

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"os"

	"github.com/google/renameio/v2"
)

// readyFile is the file that tells others where the pod listens. The zero value is none.
type readyFile struct {
	path string
	text []byte // what was written; nil before that
}

// clear takes away what an earlier pod left there when it was killed: a file that is there has to mean that all serve. It is for the
// time when this pod holds its sockets and has told nobody.
func (f *readyFile) clear() {
	if f.path != "" {
		_ = os.Remove(f.path)
	}
}

// write puts the addresses into the file, all at once: who sees it sees all of it.
func (f *readyFile) write(a Addresses) error {
	if f.path == "" {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := renameio.WriteFile(f.path, text, 0o644); err != nil {
		return fmt.Errorf("the ready file cannot be written: %w; name a file in an existing, writable folder", err)
	}
	f.text = text
	return nil
}

// remove takes the file back, unless it is another pod's by now: one that follows this one may be ready before this one has
// drained. That it is gone already is no fault.
func (f *readyFile) remove() {
	if f.text == nil {
		return
	}
	if text, err := os.ReadFile(f.path); err == nil && bytes.Equal(text, f.text) {
		_ = os.Remove(f.path)
	}
}
