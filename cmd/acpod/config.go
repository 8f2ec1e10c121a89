package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	podactor "github.com/acpod/acpod/actors/pod"
	"github.com/acpod/acpod/actors/pod/config"
)

// configFlags are on every command that reads the configuration.
type configFlags struct {
	file string
	set  []string
	own  []config.Setting // of flags of their own for one key; stronger than set
}

func (f *configFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.file, "config", "", "configuration file (default: $ACPOD_CONFIG, ./acpod.toml, $XDG_CONFIG_HOME/acpod/acpod.toml, /etc/acpod/acpod.toml)")
	command.Flags().StringArrayVar(&f.set, "set", nil, "set one key, such as acp.listen=127.0.0.1:9000; stronger than file and environment; repeatable")
}

func (f *configFlags) load() (*config.Loaded, error) {
	o := config.Options{File: f.file, Environ: os.Environ()}
	for _, pair := range f.set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usagef("--set %q has no =; write KEY=VALUE", pair)
		}
		o.Settings = append(o.Settings, config.Setting{Flag: "--set", Key: key, Value: value})
	}
	o.Settings = append(o.Settings, f.own...)
	loaded, err := config.Load(o)
	if err != nil {
		return nil, err
	}
	return loaded, podactor.Validate(loaded)
}

func newConfig() *cobra.Command {
	return group("config", "Validate and show the configuration", "  acpod config check\n  acpod config show --json", newConfigCheck(), newConfigShow())
}

func newConfigCheck() *cobra.Command {
	flags := &configFlags{}
	command := &cobra.Command{
		Use: "check", Short: "Validate the configuration",
		Long:    "Reads the configuration as `acpod serve` does, key files included, and says what is wrong with it, with file and line.",
		Example: "  acpod config check --config /etc/acpod/acpod.toml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			loaded, err := flags.load()
			if err != nil {
				return err
			}
			name := loaded.File
			if name == "" {
				name = "the built-in default"
			}
			for _, text := range podactor.Warnings(loaded) {
				_, _ = fmt.Fprintf(command.ErrOrStderr(), "warning: %s\n", text)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s is valid\n", name)
			return err
		},
	}
	flags.add(command)
	return command
}

func newConfigShow() *cobra.Command {
	flags := &configFlags{}
	var asJSON bool
	command := &cobra.Command{
		Use: "show", Short: "Show the effective configuration and who set what",
		Long:    "Shows every key with its value and, as a comment, its origin: a line of the file, a variable, a flag or the default. Secrets are masked.",
		Example: "  acpod config show\n  acpod config show --json --set acp.keepalive=10s",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			loaded, err := flags.load()
			if err != nil {
				return err
			}
			if asJSON {
				return loaded.WriteJSON(command.OutOrStdout())
			}
			return loaded.WriteTOML(command.OutOrStdout())
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "an array of {key, value, origin}")
	return command
}
