package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
)

// newMCP operates the servers of mcp.json in this process: the same providers, pins, policy and audit as in a pod, which need not run.
func newMCP(logs *logFlags) *cobra.Command {
	return group("mcp", "Operate the servers of mcp.json", "  acpod mcp list\n  acpod mcp search read a file\n  acpod mcp call read_file '{\"path\": \"/etc/hostname\"}'",
		newMCPList(logs), newMCPSearch(logs), newMCPCall(logs), newMCPDoctor(logs), newMCPPins(logs))
}

func newMCPList(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	var asJSON bool
	command := &cobra.Command{
		Use: "list", Short: "Connect every server and list what agents are offered",
		Long:    "Connects every server of mcp.json, lists its tools through the operator's filter and the pins, and says of each how it stands.",
		Example: "  acpod mcp list\n  acpod mcp list --json --mcp-config servers.json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := flags.options(command, logs)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(command.Context())
			defer stop()
			return podactor.ListServers(ctx, o, asJSON, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "an array of {name, type, state, error?, tools, file, line}")
	return command
}

func newMCPSearch(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	var asJSON bool
	var limit int
	command := &cobra.Command{
		Use: "search WORDS…", Short: "Search as an agent does",
		Long:    "Searches the tools of all servers as search_capabilities does, best match first. Without words it lists all, by name.",
		Example: "  acpod mcp search read a file\n  acpod mcp search --json --limit 5 calendar",
		RunE: func(command *cobra.Command, words []string) error {
			if limit < 1 || limit > 100 {
				return usagef("--limit %d is not from 1 to 100", limit)
			}
			o, err := flags.options(command, logs)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(command.Context())
			defer stop()
			return podactor.SearchServers(ctx, o, strings.Join(words, " "), limit, asJSON, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags.add(command)
	command.Flags().IntVar(&limit, "limit", 20, "how many are shown at most, 1 to 100")
	command.Flags().BoolVar(&asJSON, "json", false, "print what an agent gets")
	return command
}

// stdinBytes bounds arguments that are read from stdin; the pipeline has tighter bounds of its own.
const stdinBytes = 64 << 20

func newMCPCall(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	command := &cobra.Command{
		Use: "call NAME [JSON | -]", Short: "Execute one capability as an agent does",
		Long: "Executes a capability as execute_capability does, through the same policy, limits and audit, and prints the result as JSON. The arguments\n" +
			"are a JSON object, - reads them from stdin, none is {}. A result with isError, and so a refusal, is printed as well; then the status is 1.",
		Example: "  acpod mcp call read_file '{\"path\": \"/etc/hostname\"}'\n  jq -n '{query: \"x\"}' | acpod mcp call notes.search -",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("name a capability; acpod mcp search finds one")
			case len(args) > 2:
				return usagef("%q is one argument too many; write the JSON in single quotes", args[2])
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			var arguments []byte
			if len(args) == 2 {
				arguments = []byte(args[1])
				if args[1] == "-" {
					var err error
					if arguments, err = io.ReadAll(io.LimitReader(os.Stdin, stdinBytes+1)); err != nil {
						return err
					}
					if len(arguments) > stdinBytes {
						return usagef("stdin has more than %d bytes", stdinBytes)
					}
				}
				if len(bytes.TrimSpace(arguments)) == 0 { // what was to write them has failed
					return usagef("the arguments are empty; write {} for none, or leave them out")
				}
			}
			o, err := flags.options(command, logs)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(command.Context())
			defer stop()
			err = podactor.CallServer(ctx, o, args[0], arguments, command.OutOrStdout())
			if errors.Is(err, podactor.ErrNotJSON) {
				return &usageError{err}
			}
			return err
		},
	}
	flags.add(command)
	return command
}

func newMCPDoctor(logs *logFlags) *cobra.Command {
	flags := &providerFlags{}
	var asJSON bool
	command := &cobra.Command{
		Use: "doctor", Short: "Say what is wrong with each server of mcp.json",
		Long: "Reads every mcp.json, tries every server, and says what is wrong, with file and line: entries that cannot be read, variables that are not\n" +
			"set, commands that are not found, servers that do not connect or list, tools that are held back. No secret is shown. Status 1 when\n" +
			"something is broken.",
		Example: "  acpod mcp doctor\n  acpod mcp doctor --json --mcp-config servers.json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := flags.options(command, logs)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(command.Context())
			defer stop()
			return podactor.DiagnoseServers(ctx, o, asJSON, command.OutOrStdout())
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "{files, problems, warnings, servers}")
	return command
}

func newMCPPins(logs *logFlags) *cobra.Command {
	flags := &providerFlags{} // --mcp-config is taken as everywhere, and says nothing about pins
	var p podactor.PinsOptions
	command := &cobra.Command{
		Use: "pins", Short: "Show what tools were pinned as, and accept what has changed",
		Long: "Shows every tool that was pinned, and which of its fields have changed since: such a tool is held back until it is accepted. A pod that runs\n" +
			"notices within a second. Accept only what you have read: acpod mcp list says where a server is defined.",
		Example: "  acpod mcp pins\n  acpod mcp pins --accept notes.search\n  acpod mcp pins --json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			acts := 0
			for _, set := range []bool{p.Accept != "", p.Forget != "", p.Trust} {
				if set {
					acts++
				}
			}
			switch {
			case acts > 1:
				return usagef("--accept, --forget and --trust are one at a time")
			case p.Client != "" && p.Accept == "" && p.Forget == "":
				return usagef("--client says whose pins --accept and --forget are about")
			}
			loaded, err := flags.load()
			if err != nil {
				return err
			}
			p.Out = command.OutOrStdout()
			return podactor.OperatePins(podactor.Options{Config: loaded, Log: logs.logger(), Environ: os.Environ()}, p)
		},
	}
	flags.add(command)
	command.Flags().StringVar(&p.Accept, "accept", "", "pin a tool as it was seen last: SERVER.TOOL as published, or SERVER for all of it")
	command.Flags().StringVar(&p.Forget, "forget", "", "forget the pins of SERVER.TOOL or SERVER: what is seen next is pinned as the first")
	command.Flags().StringVar(&p.Client, "client", "", "of which client's server, by the first characters of its scope (default: of whoever has it)")
	command.Flags().BoolVar(&p.Trust, "trust", false, "after pins were lost: take tools without a pin for new ones again")
	command.Flags().BoolVar(&p.JSON, "json", false, "print the result as JSON")
	return command
}
