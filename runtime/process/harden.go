package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Harden makes this process not dumpable: no other process of its user may read its memory, environment or descriptors, or
// attach to it; only a privileged one may. It ends with an exec, so children are what they are by themselves. A process may
// still look at itself. Called first, before a secret is read.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the memory of this process (PR_SET_DUMPABLE): %w", err)
	}
	return nil
}
