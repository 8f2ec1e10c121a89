package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/runtime/process"
)

// newGuardian is the process that ends what a pod leaves behind when it dies. The pod starts it; nobody else needs to.
func newGuardian() *cobra.Command {
	return &cobra.Command{
		Use: "guardian", Short: "End the processes of a pod that died (started by the pod)", Hidden: true,
		Example: "  acpod guardian",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_ = process.Harden() // it knows no secret, and guards all the same
			if status := process.RunGuardian(os.Stdin); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
}
