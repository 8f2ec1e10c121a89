package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
)

// providerFlags are on every command that reads mcp.json beside the configuration.
type providerFlags struct {
	configFlags
	files []string
}

func (f *providerFlags) add(command *cobra.Command) {
	f.configFlags.add(command)
	command.Flags().StringArrayVar(&f.files, "mcp-config", nil, "mcp.json that is read in place of ~/.openab/agent/mcp.json and ./.openab/agent/mcp.json; repeatable, the later wins")
}

// options are what a command that works with servers in its own process needs. Its log is quiet unless somebody asked for more: what
// it has to say is its result, and the audit is never filtered.
func (f *providerFlags) options(command *cobra.Command, logs *logFlags) (podactor.Options, error) {
	loaded, err := f.load()
	if err != nil {
		return podactor.Options{}, err
	}
	executable, err := os.Executable()
	if err != nil {
		return podactor.Options{}, err
	}
	quiet := *logs
	if !command.Flags().Changed("log-level") {
		quiet.level = "error"
	}
	return podactor.Options{
		Config: loaded, Log: quiet.logger(), Version: build().Version, Executable: executable, Environ: os.Environ(), MCPConfig: f.files,
	}, nil
}

// interruptible ends with the first signal; a second one ends the process at once, and the guardian what it leaves.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
