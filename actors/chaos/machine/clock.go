package machine

import (
	"context"
	"syscall"
	"time"
)

// Jump stops a process and lets it go on after d: for the process, the clock jumps. It goes on also when ctx ends before.
func Jump(ctx context.Context, pid int, d time.Duration) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
