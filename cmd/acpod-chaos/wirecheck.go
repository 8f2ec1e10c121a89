package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/chaos/conform"
)

func newWireCheck(logs *logFlags) *cobra.Command {
	var cfg conform.Config
	var keyFile string
	var asJSON bool
	check := &cobra.Command{
		Use:   "wire-check --target ws://HOST/acp",
		Short: "Check the wire of a running pod, rule by rule",
		Long: `wire-check is a client that comes in at /acp of a running pod and goes through what the wire promises: who gets in, what
is refused and how, limits at the byte, turns and cancels, and the servers that a client declares, in all four generations.
It declares a server named katashiro, as the default config grants it, or those of --servers.

Rows that need what the pod has not (a key, a second granted name, somebody who makes tool calls) are skipped and say so. Tool
calls are made by the demo agent, or by the token that a pod with agent.driver = "none" gives to its clients, which has to be
reached on the same machine. To another agent nothing is sent but the greeting "Hello.", and only by the rows that need a turn.
It opens sessions, one or two at a time, and closes them; the pod has to be able to spare two agents. A slow agent needs a longer
--patience and --timeout. With --log-level debug each row is logged when it ends.

Exit status: 0 all rows that were asked passed, 2 one failed, 3 the pod asks for a key and none was given, 1 wrong usage.`,
		Example: "  acpod-chaos wire-check --target ws://127.0.0.1:8080/acp\n" +
			"  acpod-chaos wire-check --target ws://127.0.0.1:8080/acp --key-file pod.key --servers katashiro,notes --json",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := wireCheckConfig(&cfg, keyFile); err != nil {
				return err
			}
			log := logs.logger()
			cfg.Progress = func(one conform.Result) {
				log.Debug("row", "section", one.Section, "name", one.Name, "status", one.Status, "reason", one.Reason, "ms", one.Millis)
			}
			return wireCheck(command, cfg, asJSON)
		},
	}
	flags := check.Flags()
	flags.StringVar(&cfg.Target, "target", "", "the pod's address, ws://HOST/acp")
	flags.StringVar(&keyFile, "key-file", "", "file with the pod's key")
	flags.StringSliceVar(&cfg.Servers, "servers", []string{conform.DefaultServer}, "names of servers that the pod grants")
	flags.StringSliceVar(&cfg.Sections, "sections", nil, "sections to run: "+strings.Join(conform.Sections, ", ")+"; all when it is not given")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	flags.DurationVar(&cfg.Patience, "patience", conform.DefaultPatience, "how long to wait for each thing that has to happen")
	flags.DurationVar(&cfg.Timeout, "timeout", conform.DefaultTimeout, "how long the whole run may take")
	flags.IntVar(&cfg.FrameBytes, "frame-bytes", conform.DefaultFrameBytes, "limits.frame_bytes of the pod, in bytes; no answer tells it")
	flags.IntVar(&cfg.RequestBytes, "request-bytes", 0, "limits.request_bytes of the pod, in bytes; 0 = what it says itself, else 1 MiB")
	misused(check, logs)
	return check
}

// wireCheckConfig checks what was typed.
func wireCheckConfig(cfg *conform.Config, keyFile string) error {
	if cfg.Target == "" {
		return misusef("--target is missing: the pod's address, ws://HOST/acp")
	}
	at, err := url.Parse(cfg.Target)
	switch {
	case err != nil:
		return misusef("--target is no URL: %w", err)
	case at.Scheme != "ws" || at.Hostname() == "" || at.User != nil || at.Fragment != "" || at.Opaque != "":
		return misusef("--target %q is not of the form ws://HOST/acp", cfg.Target)
	}
	if cfg.Key, err = readKey(keyFile); err != nil {
		return err
	}
	if len(cfg.Servers) == 0 {
		return misusef("--servers names no server")
	}
	for i, name := range cfg.Servers {
		if !conform.ValidServer(name) || slices.Contains(cfg.Servers[:i], name) {
			return misusef("--servers: %q is no server name, or stands twice", name)
		}
	}
	for _, section := range cfg.Sections {
		if !slices.Contains(conform.Sections, section) {
			return misusef("--sections: %q is none of %s", section, strings.Join(conform.Sections, ", "))
		}
	}
	if cfg.RequestBytes < 0 || cfg.RequestBytes > cfg.FrameBytes {
		return misusef("--request-bytes takes 0 to what frames may have")
	}
	if cfg.Patience < 10*time.Millisecond || cfg.Timeout <= 0 || cfg.FrameBytes < 128<<10 || cfg.FrameBytes > 1<<30 {
		return misusef("--patience takes at least 10ms, --timeout more than nothing, --frame-bytes %d to %d", 128<<10, 1<<30)
	}
	return nil
}

func wireCheck(command *cobra.Command, cfg conform.Config, asJSON bool) error {
	ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := conform.Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "acpod-chaos: "+err.Error())
		return exitStatus(exitNeedsKey)
	}
	return told(command.OutOrStdout(), report, asJSON)
}
