package process

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// lastBytes is how much of a pipe is still read after its group is gone: as much as the largest pipe that Linux
// gives without privilege. Everything that the group wrote is in it.
const lastBytes = 1 << 20

// output is our end of a pipe that the child writes to. Its end is not left to who holds the other side: a process
// that left the group could keep that open for ever. After finish it gives what is in the pipe and then io.EOF.
// Read and Close belong to one goroutine; finish to any.
type output struct {
	f       *os.File
	waiting bool // Read may still wait
	rest    int
}

func newOutput(f *os.File) *output { return &output{f: f, waiting: true, rest: lastBytes} }

// Read blocks until there is something, the pipe's other side is closed, or finish was called and nothing is left.
func (o *output) Read(p []byte) (int, error) {
	if o.waiting {
		n, err := o.f.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.waiting = false
		_ = o.f.SetReadDeadline(time.Time{}) // finish set it once; what comes now does not wait
	}
	return o.readRest(p)
}

// readRest takes what is in the pipe.
func (o *output) readRest(p []byte) (int, error) {
	if o.rest <= 0 || len(p) == 0 {
		return 0, io.EOF
	}
	conn, err := o.f.SyscallConn()
	if err != nil {
		return 0, io.EOF
	}
	n := 0
	err = conn.Read(func(fd uintptr) bool {
		for {
			var errno error
			if n, errno = syscall.Read(int(fd), p[:min(len(p), o.rest)]); !errors.Is(errno, syscall.EINTR) {
				return true // also for EAGAIN, which leaves n negative
			}
		}
	})
	if err != nil || n <= 0 {
		o.rest = 0
		return 0, io.EOF
	}
	o.rest -= n
	return n, nil
}

// finish is called, once, when the group is gone; it wakes a Read that waits.
func (o *output) finish() { _ = o.f.SetReadDeadline(time.Unix(1, 0)) }

// Close closes our end; a child that still writes gets SIGPIPE.
func (o *output) Close() error { return o.f.Close() }
