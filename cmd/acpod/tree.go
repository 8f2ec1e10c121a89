package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
)

func newTree() *cobra.Command {
	flags := &configFlags{}
	var show podactor.TreeOptions
	command := &cobra.Command{
		Use: "tree", Short: "Show the actor tree of a running pod",
		Long: "Asks the debug listener of a running pod for its tree and draws it. Address and key come from the configuration that the\n" +
			"pod reads too, unless --addr and --key-file are given.",
		Example: "  acpod tree\n  acpod tree --watch\n  acpod tree --addr http://127.0.0.1:8849 --json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if show.Addr == "" || show.KeyFile == "" {
				loaded, err := flags.load()
				if err != nil && show.Addr == "" {
					return err
				}
				show.Config = loaded
			}
			show.Out = command.OutOrStdout()
			show.Screen = isTerminal(os.Stdout)
			return podactor.ShowTree(ctx, show)
		},
	}
	flags.add(command)
	command.Flags().StringVar(&show.Addr, "addr", "", "URL of the debug listener (default: debug.listen of the configuration)")
	command.Flags().StringVar(&show.KeyFile, "key-file", "", "file with debug.auth_key of that pod")
	command.Flags().BoolVar(&show.Watch, "watch", false, "draw again every second until interrupted")
	command.Flags().BoolVar(&show.JSON, "json", false, "print what /debug/tree answers")
	return command
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
