package agent

import (
	"context"
	"errors"
	"io"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/process"
)

// Learn runs the agent once for what it says of itself in initialize, and ends it. It blocks for at most
// cfg.StartTimeout and the time of a stop; when ctx ends it returns its cause, after the process was ended. Errors
// are *StartError.
func Learn(ctx context.Context, cfg Config) (*Info, error) {
	cfg = cfg.withDefaults()
	fail := func(proc *process.Process, err error) error {
		e := &StartError{Command: (&runner{cfg: cfg}).command(), Err: err}
		if err == nil {
			e.Timeout = cfg.StartTimeout
		}
		if proc != nil {
			e.Stderr = proc.StderrTail(tailBytes)
		}
		return e
	}
	proc, err := process.Start(cfg.process(0))
	if err != nil {
		return nil, fail(nil, err)
	}
	_ = proc.Send(cfg.initialize(), nil)

	type outcome struct {
		info *Info
		err  error
	}
	said := make(chan outcome, 1)
	drained := make(chan struct{})
	go func() { // ends with the process, and is waited for below
		defer close(drained)
		out := proc.Stdout()
		defer func() { _ = out.Close() }()
		info, err := readInfo(out)
		said <- outcome{info, err}
		_, _ = io.Copy(io.Discard, out) // it may have more to say before it ends
	}()
	timeout, cancel := context.WithTimeoutCause(ctx, cfg.StartTimeout, errTimeout)
	defer cancel()
	var got outcome
	select {
	case got = <-said:
	case <-timeout.Done():
		got.err = context.Cause(timeout)
	}
	report, _ := proc.Stop(context.WithoutCancel(ctx))
	<-drained
	switch {
	case got.err == nil:
		return got.info, nil
	case errors.Is(got.err, errTimeout):
		return nil, fail(proc, nil)
	case errors.Is(got.err, io.EOF):
		exited := &Exited{Code: report.Exit.Code, Signal: report.Exit.Signal, Reason: report.Reason, Stderr: proc.StderrTail(tailBytes)}
		return nil, fail(proc, exited)
	default:
		return nil, fail(proc, got.err)
	}
}

var errTimeout = errors.New("timeout")

// readInfo reads until the answer to initialize.
func readInfo(out io.Reader) (*Info, error) {
	lines := jsonrpc.NewLineReader(out, maxInfo)
	for {
		line, err := lines.Next()
		if _, long := errors.AsType[*jsonrpc.LineTooLong](err); long {
			continue
		}
		if err != nil {
			return nil, io.EOF
		}
		frame, fault := jsonrpc.Scan(line)
		if id, ok := frame.ID.Int(); fault != nil || frame.Kind != jsonrpc.Response || !ok || id != initializeID {
			continue
		}
		if frame.Error != nil {
			return nil, errorOf(frame.Error)
		}
		return parseInfo(frame.Result)
	}
}
