package main

import (
	"os"

	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
)

func newBridge() *cobra.Command {
	var socket string
	command := &cobra.Command{
		Use: "bridge", Short: "Relay an agent's MCP messages from stdio to the pod's Unix socket",
		Long: "The MCP server on stdio that an agent of the pod starts: it copies lines between stdin, stdout and the pod's Unix socket until\n" +
			"either side ends. Whose relay it is the pod finds out by itself, from the process that started it; there is no token and no\n" +
			"setting for that. The socket is --socket, else $OPENAB_BROWSER_SOCKET, else ~/.openab/browser.sock. Exits 0 when stdin ends,\n" +
			"1 when the pod refuses it, ends the connection, or is not there.",
		Example: "  acpod bridge\n" +
			`  echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | acpod bridge --socket ~/.openab/browser.sock`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return podactor.Relay(command.Context(), socket, os.Environ(), os.Stdin, os.Stdout)
		},
	}
	command.Flags().StringVar(&socket, "socket", "", "path of the pod's socket")
	return command
}
