package main

import (
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	logs := &logFlags{}
	root := &cobra.Command{
		Use:   "acpod-chaos",
		Short: "Simulated extensions, callers and agents that attack a pod, and the invariants that must hold",
		Example: "  acpod-chaos run --spawn --extensions 100 --sessions 100 --duration 20s --seed 1 --faults all --assert\n" +
			"  acpod-chaos wire-check --target ws://127.0.0.1:8080/acp\n" +
			"  acpod-chaos client-check --listen 127.0.0.1:8080",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return usagef("name a command") },
	}
	logs.add(root)
	root.AddCommand(newRun(logs), newAgent(), newWireCheck(logs), newClientCheck(logs), newScale(logs), newEcho())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err: err} })
	root.InitDefaultHelpCmd()
	for _, command := range root.Commands() {
		if command.Name() == "help" {
			command.Example = "  acpod-chaos help run"
		}
	}
	return root
}
