package main

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/chaos/clientcheck"
	"github.com/acpod/acpod/actors/chaos/tally"
)

// exitNobody is the exit status of client-check when no client came.
const exitNobody = 3

func newClientCheck(logs *logFlags) *cobra.Command {
	var cfg clientcheck.Config
	var listen, keyFile, arguments string
	var asJSON bool
	check := &cobra.Command{
		Use:   "client-check --listen ADDR",
		Short: "Check a client of a pod, rule by rule: it plays the pod for the one that connects",
		Long: `client-check plays the pod at ws://ADDR/acp for one client, a browser extension for instance, and goes with it through what the
wire asks of a client: how it comes in, every message that it sends, the servers that it declares (in all four generations), what an
agent may ask of it, and how it comes back when its socket is lost. It has no agent: start the client, let it open a session, and
answer what it shows. A prompt that is typed meanwhile is judged as well.

It goes on as far as the client goes. What the client never came to is skipped and says so; what a client may do is no failure.
A tool is called when it says of itself readOnlyHint, or when --tool names it, with --arguments or with ones made up from its schema.

ADDR is host:port; port 0 takes a free one. The address to connect to is printed on stderr. An address beyond loopback needs a key, as
with a pod: --key-file, and then the client has to present it. Waits that a person may have to end are logged.

Exit status: 0 all rows that were asked passed, 2 one failed, 3 no client came within --timeout, 1 wrong usage.`,
		Example: "  acpod-chaos client-check --listen 127.0.0.1:8080\n" +
			"  acpod-chaos client-check --listen 127.0.0.1:0 --key-file pod.key --tool katashiro.read_dom --arguments '{\"selector\":\"h1\"}' --json",
		RunE: func(command *cobra.Command, _ []string) error {
			if err := clientCheckConfig(&cfg, listen, keyFile, arguments); err != nil {
				return err
			}
			log := logs.logger()
			cfg.Waiting = func(what string) { log.Info("waiting for " + what) }
			cfg.Progress = func(row string, status tally.Status, why string) {
				log.Debug("row", "name", row, "status", status, "reason", why)
			}
			return clientCheck(command, cfg, listen, asJSON)
		},
	}
	flags := check.Flags()
	flags.StringVar(&listen, "listen", "", "address to listen on, host:port")
	flags.StringVar(&keyFile, "key-file", "", "file with the key that the client has to present")
	flags.StringVar(&cfg.Tool, "tool", "", "tool to call, by the name under which the client lists it; otherwise one with readOnlyHint")
	flags.StringVar(&arguments, "arguments", "", "arguments of that call, a JSON object")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	flags.DurationVar(&cfg.Timeout, "timeout", clientcheck.DefaultTimeout, "how long to wait for a client")
	flags.DurationVar(&cfg.Step, "step", clientcheck.DefaultStep, "how long to wait for what the client does of its own accord: a session, a choice, coming back")
	flags.DurationVar(&cfg.Patience, "patience", clientcheck.DefaultPatience, "how long to wait for each answer that it owes; for calls it is 170s when it is not given")
	misused(check, logs)
	return check
}

// clientCheckConfig checks what was typed.
func clientCheckConfig(cfg *clientcheck.Config, listen, keyFile, arguments string) error {
	if listen == "" {
		return misusef("--listen is missing: host:port")
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return misusef("--listen %q is not of the form host:port", listen)
	}
	if cfg.Key, err = readKey(keyFile); err != nil {
		return err
	}
	if address, err := netip.ParseAddr(host); cfg.Key == "" && !strings.EqualFold(host, "localhost") && (err != nil || !address.Unmap().IsLoopback()) {
		return misusef("--listen %q is not a loopback address: that needs a key, --key-file", listen)
	}
	if arguments != "" {
		if cfg.Arguments = []byte(arguments); cfg.Tool == "" || jsontext.Value(arguments).Kind() != '{' || !jsontext.Value(arguments).IsValid() {
			return misusef("--arguments takes a JSON object, beside --tool")
		}
	}
	for _, d := range []time.Duration{cfg.Timeout, cfg.Step, cfg.Patience} {
		if d < 10*time.Millisecond {
			return misusef("--timeout, --step and --patience take at least 10ms")
		}
	}
	return nil
}

// readKey reads the key in a file; "" when there is no file.
func readKey(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", misusef("--key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", misusef("--key-file %s holds no key", file)
	}
	return key, nil
}

func clientCheck(command *cobra.Command, cfg clientcheck.Config, listen string, asJSON bool) error {
	ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return misusef("--listen: %w", err)
	}
	fmt.Fprintln(os.Stderr, "acpod-chaos: connect the client to "+clientcheck.Address(listener.Addr()))
	report, err := clientcheck.Run(ctx, listener, cfg)
	if errors.Is(err, clientcheck.ErrNobody) {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "acpod-chaos: it was stopped before a client came")
		} else {
			fmt.Fprintf(os.Stderr, "acpod-chaos: no client came within %v; --timeout waits longer\n", cfg.Timeout)
		}
		return exitStatus(exitNobody)
	}
	return told(command.OutOrStdout(), report, asJSON)
}
