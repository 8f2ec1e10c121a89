package pod

import (
	"encoding/json/v2"
	"fmt"
	"os"

	"github.com/google/renameio/v2"
)

// writeReady puts the addresses into a file, all at once: who sees the file sees all of it.
func writeReady(path string, a Addresses) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("the ready file cannot be written: %w; name a file in an existing, writable folder", err)
	}
	return nil
}

// removeReady takes the file back. That it is gone already is no fault.
func removeReady(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}
