package process

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAMissingWorkingDirectoryIsNotToldAsAMissingProgram(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"missing": filepath.Join(t.TempDir(), "no"), "a file": "/etc/hostname"} {
		_, err := Start(Spec{Argv: []string{"/bin/sh", "-c", "exit 0"}, Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "working directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
