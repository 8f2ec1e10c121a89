package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/playground/demo"
)

func newAgent() *cobra.Command {
	return group("agent", "Agents that come with acpod", "  acpod agent demo", newAgentDemo())
}

func newAgentDemo() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "A scripted ACP agent on stdio",
		Long: "Speaks ACP on stdin and stdout and does what each line of a prompt says; any other is streamed back. The pod's default agent.\n\n" +
			demo.Lines() + "\nThe variable " + demo.Variable + " is a list of words, separated by commas, that change what it offers and how it opens sessions:\n\n" +
			demo.Behaviours(),
		Example: "  acpod agent demo",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			// No signal is handled: TERM ends it as it ends any plain program.
			return demo.Run(command.Context(), demo.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, demo.StateDir(), build().Version, os.Getenv(demo.Variable))
		},
	}
}
