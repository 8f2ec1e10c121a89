package pod

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"io"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/mcp"
)

// ErrToolFailed is the end of a call whose result says isError: the result has been written.
var ErrToolFailed = errors.New("the call failed; its result says why")

// ErrNotJSON says that the arguments of a call are no JSON text.
var ErrNotJSON = errors.New("the arguments are not JSON; write an object in single quotes, or - to read it from stdin")

// CallServer executes one capability as an agent does, through the same pipeline, and writes the result object out. A refusal is written
// as an agent gets it.
func CallServer(ctx context.Context, o Options, name string, arguments []byte, out io.Writer) error {
	if arguments = bytes.TrimSpace(arguments); len(arguments) == 0 {
		arguments = nil
	} else if !jsontext.Value(arguments).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return ErrNotJSON // what else is wrong with them, the pipeline says
	}
	return operate(ctx, o, nil, func(ctx context.Context, op *operator) error {
		d, err := capability.Execute(ctx, op.caller(), capability.Request{Name: name, Arguments: arguments, EndsOnClose: true})
		var refusal *capability.Refusal
		switch {
		case errors.As(err, &refusal):
			if err := writeLine(out, refusal.Result()); err != nil {
				return err
			}
			return ErrToolFailed
		case err != nil:
			return err
		}
		defer d.Done()
		if err := writeLine(out, d.Raw); err != nil {
			return err
		}
		if result, err := mcp.ParseResult(d.Raw); err == nil && result.IsError {
			return ErrToolFailed
		}
		return nil
	})
}

func writeLine(out io.Writer, text []byte) error {
	if _, err := out.Write(text); err != nil {
		return err
	}
	_, err := out.Write([]byte{'\n'})
	return err
}
