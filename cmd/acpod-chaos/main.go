package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// The exit statuses of a command, when it has none of its own.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(execute(os.Args[1:])) }

// execute executes one command line and turns its error into one line and a status.
func execute(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	called, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	code := exitFailure
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	if wrong, ok := errors.AsType[*usageError](err); ok {
		code = wrong.status()
		text += "; see " + called.CommandPath() + " --help"
	}
	fmt.Fprintln(os.Stderr, "acpod-chaos: "+text)
	return code
}

// exitStatus ends the program with that status when all has been said already.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// usageError is a command line that makes no sense.
type usageError struct {
	err  error
	code int // 0 = exitUsage; wire-check and client-check have another
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func (e *usageError) status() int {
	if e.code != 0 {
		return e.code
	}
	return exitUsage
}

// noArguments is for commands that take flags only.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is one argument too many", args[0])
	}
	return nil
}

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }
