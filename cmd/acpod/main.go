package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The exit statuses of every command.
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
	var status exitStatus
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "acpod: %s; see `%s --help`\n", oneLine(usage.Error()), called.CommandPath())
		return exitUsage
	default:
		fmt.Fprintf(os.Stderr, "acpod: %s\n", oneLine(err.Error()))
		return exitFailure
	}
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitStatus ends a command with a status and without a word.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// oneLine joins the lines of an error that was made of several.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
