package main

import (
	"encoding/json/v2"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker of a release (-X main.version=… -X main.commit=…); a plain build takes what the go
// command wrote into the binary.
var version, commit string

// about is what `version --json` prints.
type about struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

func build() about {
	a := about{Version: version, Commit: commit, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok && a.Version == "" {
		a.Version = info.Main.Version
	}
	if ok && a.Commit == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				a.Commit = setting.Value
			}
		}
	}
	if a.Version == "" || a.Version == "(devel)" {
		a.Version = "devel"
	}
	if a.Commit == "" {
		a.Commit = "unknown"
	}
	return a
}

func newVersion() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "version", Short: "Show the version", Example: "  acpod version --json", Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			a := build()
			if !asJSON {
				_, err := fmt.Fprintf(command.OutOrStdout(), "acpod %s (%s, %s)\n", a.Version, a.Commit, a.Go)
				return err
			}
			text, err := json.Marshal(a)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s\n", text)
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "{version, commit, go}")
	return command
}
