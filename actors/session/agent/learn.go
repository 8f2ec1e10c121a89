package agent

import (
	"context"
	"errors"
	"io"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/process"
)

// learnLine is the longest line that is looked at while learning; what an agent says of itself is a few KiB.
const learnLine = 1 << 20

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
	proc, err := process.Start(cfg.process())
	if err != nil {
		return nil, fail(nil, err)
	}
	frame := jsonrpc.AppendRequest(nil, jsonrpc.IntID(initializeID), "initialize", initializeParams(cfg.Version))
	_ = proc.Send(append(frame, '\n'), nil)

	type outcome struct {
		info *Info
		err  error
	}
	said := make(chan outcome, 1) // its reader ends with the process, which is stopped below
	go func() {
		info, err := readInfo(proc.Stdout())
		said <- outcome{info, err}
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
func readInfo(out io.ReadCloser) (*Info, error) {
	defer func() { _ = out.Close() }()
	lines := jsonrpc.NewLineReader(out, learnLine)
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
