package main

import (
	"errors"

	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
)

func newDoctor(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	var asJSON bool
	command := &cobra.Command{
		Use: "doctor", Short: "Say what would stop this pod from working",
		Long: "Looks at what a start would need: the configuration and its key files, free ports, a writable state folder, the agent's command, mcp.json,\n" +
			"memory and open files against the limits, the guardian. Nothing is left running. Status 1 when something is broken.",
		Example: "  acpod doctor\n  acpod doctor --config /etc/acpod/acpod.toml --json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := flags.options(command, logs)
			var usage *usageError
			if errors.As(err, &usage) {
				return err
			}
			return podactor.Diagnose(o, err, asJSON, command.OutOrStdout())
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "an array of {check, verdict, text}; verdict is ok, warning or broken")
	return command
}
