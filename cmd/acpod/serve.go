package main

import (
	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
	"github.com/acpod/acpod/runtime/process"
)

func newServe(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	var ready string
	command := &cobra.Command{
		Use: "serve", Short: "Run the pod",
		Long: "Runs the pod: /acp for clients, the MCP facade for agents, the debug listener for operators. Without a config file\n" +
			"everything is on loopback and the agent is the demo. SIGTERM, SIGINT and the end of its terminal drain it; a second signal ends it at once.",
		Example: "  acpod serve\n  acpod serve --config acpod.toml --ready-file /run/acpod/ready.json\n  acpod serve --set acp.listen=127.0.0.1:0",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			harden(logs)
			signals, stop := drainSignals()
			defer stop()
			o, err := flags.options(command, logs)
			if err != nil {
				return err
			}
			o.Log, o.ReadyFile, o.Signals = logs.logger(), ready, signals
			return podactor.Serve(o)
		},
	}
	flags.add(command)
	command.Flags().StringVar(&ready, "ready-file", "", `gets {"public","facade","debug"} as host:port once all listeners serve; removed at exit`)
	return command
}

// harden hides what this process knows from what it will start: keys and tokens are in its memory.
func harden(logs *logFlags) {
	if err := process.Harden(); err != nil {
		logs.logger().Warn("agents under the same user can read the keys in this process's memory", "error", err)
	}
}
