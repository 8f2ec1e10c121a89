package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// findPod is the pod's binary: the one named, else acpod beside this program, else the one on PATH.
func findPod(named string) (string, error) {
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("--acpod: %w", err)
		}
		return named, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "acpod")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	found, err := exec.LookPath("acpod")
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", errors.New("acpod is neither beside this program nor on PATH; build it with `make build` or name it with --acpod")
	}
	return found, nil
}
