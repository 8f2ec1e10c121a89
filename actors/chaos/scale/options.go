package scale

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Options are what is measured.
type Options struct {
	Extensions int           // connected at once
	Rate       int           // calls a second, over all of them
	Duration   time.Duration // of the calls
	Payload    int           // bytes of text in the arguments of a call, and in its result
	Callers    int           // HTTP connections to the facade, and so calls that may be open at once
	Parallel   int           // extensions that connect at the same time, and that leave at the same time
	Settle     time.Duration // how long all are idle before that is measured

	Binary   string   // acpod
	Echo     []string // the command line of a process that calls ServeEcho
	Dir      string   // an empty folder: the pod's home
	Profiles string   // an existing folder for profiles of the pod; empty takes none, they cost a little

	Progress func(line string) // told now and then; nil is silent
}

// spareFiles is what a process needs open beside one file an extension.
const spareFiles = 512

// Check says what makes no sense in the options.
func (o *Options) Check() error {
	switch {
	case o.Extensions < 1 || o.Rate < 1 || o.Duration <= 0 || o.Callers < 1 || o.Parallel < 1 || o.Payload < minPayload || o.Settle <= 0:
		return fmt.Errorf("extensions, rate, duration, callers, parallel and settle must be positive, and the payload at least %d bytes", minPayload)
	case o.Payload > 512<<10:
		return errors.New("a payload of more than 512 KiB does not fit into a request of the facade")
	case int64(o.Rate)*int64(o.Duration) < int64(time.Second):
		return errors.New("that rate makes no call in that time")
	}
	return nil
}

// check is Check, and whether this machine lets a process open as many files as there are extensions.
func (o *Options) check() error {
	if err := o.Check(); err != nil {
		return err
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	if need := uint64(o.Extensions + o.Callers + spareFiles); files.Max < need {
		return fmt.Errorf("%d extensions need %d open files in one process, and only %d are allowed: raise `ulimit -Hn`", o.Extensions, need, files.Max)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}

// calls is how many calls are made.
func (o *Options) calls() int { return int(int64(o.Duration) / 1e6 * int64(o.Rate) / 1e3) }
