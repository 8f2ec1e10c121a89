package main

import (
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// logFlags are on every command.
type logFlags struct{ level, format string }

func newRoot() *cobra.Command {
	logs := &logFlags{}
	root := &cobra.Command{
		Use:   "acpod",
		Short: "A pod for coding agents whose clients bring their own tools",
		Long: "acpod runs a coding agent for clients that cannot listen. A client opens one WebSocket to /acp, prompts the agent\n" +
			"over it, and serves tools back through the same socket. Without a config file everything is on loopback, with a demo agent.",
		Example:       "  acpod serve\n  acpod config check --config acpod.toml",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q", args[0])
			}
			return nil
		},
		PersistentPreRunE: func(*cobra.Command, []string) error { return logs.check() },
		RunE:              func(*cobra.Command, []string) error { return usagef("name a command") },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&logs.level, "log-level", "info", "least level that is logged: debug, info, warn or error")
	root.PersistentFlags().StringVar(&logs.format, "log-format", "text", "text or json; logs go to stderr")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newServe(logs), newFacade(logs), newMCP(logs), newAgent(), newBridge(), newConfig(), newDoctor(logs), newTree(), newVersion(), newGuardian())
	root.InitDefaultHelpCmd()
	for _, command := range root.Commands() {
		if command.Name() == "help" {
			command.Example = "  acpod help serve"
		}
	}
	return root
}

// group is a command that only holds others.
func group(use, short, example string, children ...*cobra.Command) *cobra.Command {
	names := make([]string, len(children))
	for i, child := range children {
		names[i] = child.Name()
	}
	one := "name one of: " + strings.Join(names, ", ")
	g := &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q in %s; %s", args[0], use, one)
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return usagef("%s", one) },
	}
	g.AddCommand(children...)
	return g
}

// noArgs refuses arguments behind a command that takes none.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is one argument too many", args[0])
	}
	return nil
}

func (f *logFlags) check() error {
	if _, ok := levels[f.level]; !ok {
		return usagef("--log-level %q is none of debug, info, warn, error", f.level)
	}
	if f.format != "text" && f.format != "json" {
		return usagef("--log-format %q is neither text nor json", f.format)
	}
	return nil
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logger writes to stderr; stdout is a command's result.
func (f *logFlags) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: levels[f.level]}
	if f.format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
