package main

import (
	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
	"github.com/acpod/acpod/actors/pod/config"
)

func newFacade(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	var ready, listen string
	command := &cobra.Command{
		Use: "facade", Short: "Run the MCP facade alone, over the servers of mcp.json",
		Long: "Serves the two tools search_capabilities and execute_capability at http://ADDR/mcp over the servers of mcp.json, with the same policy,\n" +
			"limits and audit as a pod: no /acp, no agent, and a debug listener only where a configuration names one. SIGTERM, SIGINT and the\n" +
			"end of its terminal let open calls end; a second signal ends it at once.",
		Example: "  acpod facade\n  acpod facade --listen 127.0.0.1:0 --ready-file /run/acpod/facade.json\n  acpod facade --mcp-config servers.json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			harden(logs)
			signals, stop := drainSignals()
			defer stop()
			if listen != "" {
				flags.own = append(flags.own, config.Setting{Flag: "--listen", Key: "mcp.listen", Value: listen})
			}
			o, err := flags.options(command, logs)
			if err != nil {
				return err
			}
			o.Log, o.ReadyFile, o.Signals, o.FacadeAlone = logs.logger(), ready, signals, true
			return podactor.Serve(o)
		},
	}
	flags.add(command)
	command.Flags().StringVar(&listen, "listen", "", "loopback ip:port of the facade (default: mcp.listen, 127.0.0.1:8848)")
	command.Flags().StringVar(&ready, "ready-file", "", `gets {"public","facade","debug"} as host:port once it serves; removed at exit`)
	return command
}
