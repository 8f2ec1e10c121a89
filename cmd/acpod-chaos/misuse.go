package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// The exit statuses of wire-check, and of client-check where they are the same: wrong usage is 1 here, because 2 says that the other side
// failed.
const (
	exitBroken   = 2
	exitNeedsKey = 3
	exitMisused  = 1
)

func misusef(format string, values ...any) error {
	return &usageError{err: fmt.Errorf(format, values...), code: exitMisused}
}

// misused has a check that takes no arguments end with its own status where the others end with 2.
func misused(check *cobra.Command, logs *logFlags) {
	check.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return misusef("%q is one argument too many", args[0])
		}
		return nil
	}
	check.PersistentPreRunE = func(*cobra.Command, []string) error { // in place of the root's
		if err := logs.check(); err != nil {
			return misusef("%w", err)
		}
		return nil
	}
	check.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misusef("%w", err) })
}
