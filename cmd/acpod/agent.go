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
		Long: "Speaks ACP on stdin and stdout and does what each line of a prompt says: /search WORDS, /call NAME {json}, /ask, /sleep 2s,\n" +
			"/flood N, /emit N, /crash, /hang, /garbage, /stderr N, /fork, /new; anything else is streamed back. The pod's default agent.",
		Example: "  acpod agent demo",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			// No signal is handled: TERM ends it as it ends any plain program.
			return demo.Run(command.Context(), demo.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, demo.StateDir(), build().Version)
		},
	}
}
