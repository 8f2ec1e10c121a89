package scale

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// harnessGC is how much the heap of this process may grow between two collections, in percent. It is small and has a goroutine for
// each extension; what collecting it costs is taken from a machine that the servers share.
const harnessGC = 400

// Run measures the pod, and then the echo server. The error says why there is no report, or that the report is not whole; that an
// invariant is broken stands in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(harnessGC))
	r := &Report{Started: time.Now().UTC(), Machine: thisMachine(), Asked: Asked{o.Extensions, o.Rate, o.Duration.Seconds(), o.Payload, o.Callers, o.Parallel}}
	if err := r.measurePod(ctx, &o); err != nil {
		return r, err
	}
	if err := r.measureEcho(ctx, &o); err != nil {
		return r, err
	}
	r.Ratios = ratios(r.Pod, r.Echo)
	return r, nil
}

func (r *Report) measurePod(ctx context.Context, o *Options) (err error) {
	p, err := startPod(ctx, o)
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; the end of the pod's log: %s", err, strings.Join(p.LogTail(5), " | "))
		}
		if !stopped {
			_, failed := p.close(ctx)
			err = errors.Join(err, failed)
		}
	}()
	files := p.FDs()
	side, all, err := measure(ctx, o, p, p.during(o))
	if err != nil {
		return err
	}
	r.Pod = side
	r.Invariants = answers(side.Load, all.served())
	begun := time.Now()
	left := ""
	if err := all.disperse(ctx, o.Parallel); err != nil {
		left = err.Error()
	}
	r.Invariants = append(r.Invariants, invariant("every extension leaves in order", left))
	r.Invariants = append(r.Invariants, rest(ctx, p, side, files)...)
	r.LeaveSeconds = time.Since(begun).Seconds()
	o.Progress(fmt.Sprintf("pod: all left and at rest after %.1f s", r.LeaveSeconds))
	stopped = true
	exit, err := p.close(ctx)
	why := ""
	if exit != 0 {
		why = fmt.Sprintf("it ended with %d", exit)
	}
	r.Invariants = append(r.Invariants, invariant("the pod ends with 0", why))
	return err
}

func (r *Report) measureEcho(ctx context.Context, o *Options) (err error) {
	message := echoMessage(r.Pod.Load)
	e, err := startEcho(o, message)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	side, all, err := measure(ctx, o, e, func(context.Context) {})
	if err != nil {
		return err
	}
	r.Echo, r.EchoMessage = side, message
	err = all.disperse(ctx, o.Parallel)
	if len(side.Load.Failed) > 0 {
		err = errors.Join(err, fmt.Errorf("the echo server did not answer every message: %v", side.Load.Failed))
	}
	return err
}

// echoMessage is how long a message of the echo server has to be so that its sockets carry as many bytes a call as the pod's did: a
// call is one message each way for both, but an echo's two are equally long.
func echoMessage(l Load) int {
	const heads = 4 + 8 // a head of 4 bytes each way, and the mask of the client's, for messages of 126 bytes to 64 KiB
	return max(minPayload, int((l.ToServer+l.ToClient-heads)/2))
}
