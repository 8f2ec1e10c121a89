package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/chaos/scale"
)

// The defaults of scale are what docs/performance.md is measured with.
const (
	scaleCallers  = 64
	scaleParallel = 64
	scalePayload  = 1 << 10
	scaleSettle   = 20 * time.Second // every client is sent one keep-alive meanwhile
)

func newScale(logs *logFlags) *cobra.Command {
	var o scale.Options
	var binary, file string
	command := &cobra.Command{
		Use:   "scale",
		Short: "Measure what many connected extensions cost, beside a bare echo server",
		Long: `scale starts a pod with agent.driver = "none", connects so many extensions with a session and a server each, and looks at the
pod while all are idle and while calls are made over the facade at a steady rate. Then it does the same with as many sockets of a
bare gws echo server, which gets a message where the pod's extension answers a call. The table and the report give both, and the
pod's figures as ratios.

Pod, echo server and the extensions (this program) are three processes; each of them opens a file for every extension.
Latency counts from when a call was due, not from when this program got round to it; lateness says how much of it is that.

Exit status: 0 all calls were answered and the pod was at rest afterwards, 1 not, or it could not be measured, 2 wrong usage.`,
		Example: "  acpod-chaos scale --extensions 10000 --rate 1000 --duration 60s --report scale.json",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			err := o.Check()
			if err != nil {
				return &usageError{err: err}
			}
			log := logs.logger()
			o.Progress = func(line string) { log.Info(line) }
			if o.Binary, err = findPod(binary); err != nil {
				return err
			}
			return runScale(command, o, file)
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.Extensions, "extensions", 10000, "extensions that are connected at once, each with a session")
	flags.IntVar(&o.Rate, "rate", 1000, "calls a second, over all sessions")
	flags.DurationVar(&o.Duration, "duration", time.Minute, "how long calls are made")
	flags.IntVar(&o.Payload, "payload", scalePayload, "bytes of text in the arguments of a call, and in its result")
	flags.IntVar(&o.Callers, "callers", scaleCallers, "HTTP connections to the facade")
	flags.IntVar(&o.Parallel, "parallel", scaleParallel, "extensions that connect at the same time")
	flags.DurationVar(&o.Settle, "settle", scaleSettle, "how long all are idle before they are measured")
	flags.StringVar(&binary, "acpod", "", "the pod's binary (default: acpod beside this program, else on PATH)")
	flags.StringVar(&file, "report", "", "file for the report as JSON")
	flags.StringVar(&o.Profiles, "profiles", "", "existing folder for profiles of the pod; taking them costs it a little")
	return command
}

func runScale(command *cobra.Command, o scale.Options, file string) error {
	ctx, cancel := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := reserve(file); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Echo = []string{self, "echo"}
	if o.Dir, err = os.MkdirTemp("", "acpod-scale-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.Dir)
	report, failed := scale.Run(ctx, o)
	if report == nil {
		return failed
	}
	if err := report.WriteTable(command.OutOrStdout()); err != nil {
		return err
	}
	if file != "" {
		text, err := json.Marshal(report, jsontext.WithIndent("  "))
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("the report: %w", err)
		}
	}
	if broken := report.Broken(); failed == nil && len(broken) > 0 {
		return fmt.Errorf("%d invariants are broken, the first: %s: %s", len(broken), broken[0].Name, broken[0].Why)
	}
	return failed
}
