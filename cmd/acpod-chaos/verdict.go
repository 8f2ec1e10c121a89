package main

import (
	"fmt"
	"io"
)

// verdict is the report of a check.
type verdict interface {
	Text(w io.Writer) error
	JSON(w io.Writer) error
	OK() bool
}

// told prints the report of a check, and gives the exit status that it means.
func told(w io.Writer, report verdict, asJSON bool) error {
	print := report.Text
	if asJSON {
		print = report.JSON
	}
	if err := print(w); err != nil {
		return fmt.Errorf("the report cannot be written: %w", err)
	}
	if !report.OK() {
		return exitStatus(exitBroken)
	}
	return nil
}
