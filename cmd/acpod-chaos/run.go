package main

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/chaos"
)

// runFlags are what run is told beside its options.
type runFlags struct {
	chaos.Options
	binary, keyFile, debugKeyFile, report, keep string
	assert                                      bool
}

func newRun(logs *logFlags) *cobra.Command {
	f := &runFlags{}
	command := &cobra.Command{
		Use:   "run",
		Short: "Attack a pod with simulated extensions and callers, and check what it promises",
		Long: `run surrounds a pod with simulated extensions and with MCP clients that call the extensions' tools, injects the faults named,
and compares what the pod shows with a ledger of its own. It prints one line for each promise: held, or how it was broken.

With --spawn it starts pods of its own, with small limits: t for extensions and callers, a with a simulated agent, and d, whose disk
and clock are attacked, as far as the faults need them. With
--target it attacks a pod that runs, with [mcp] and either agent.driver = "none", so that callers get the sessions' tokens, or the demo
agent, which is prompted to make the calls, one at a time in a session.
Faults have default rates; NAME:RATE sets another, a chance from 0 to 1 at each opportunity, and NAME*FACTOR multiplies it.
"all*0.1" is a tenth of all: the rates are those of one extension or call, so many extensions want smaller ones.

The faults, with the chance of each:
` + chaos.Faults() + `
Exit status: 0 the run was made, 1 it could not be made, or with --assert a promise was broken, 2 wrong usage.`,
		Example: "  acpod-chaos run --spawn --extensions 100 --sessions 100 --duration 20s --seed 1 --faults all --rate 100 --assert --report report.json\n" +
			"  acpod-chaos run --target ws://127.0.0.1:8080/acp --debug http://127.0.0.1:8849 --faults drop,abort:0.2 --duration 1m",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := f.complete(); err != nil {
				return err
			}
			f.Log = logs.logger()
			return f.run(command)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.Target, "target", "", "URL of the /acp of a pod that runs: ws://HOST:PORT/acp")
	flags.StringVar(&f.Debug, "debug", "", "URL of that pod's debug listener: http://HOST:PORT")
	flags.StringVar(&f.keyFile, "key-file", "", "file with the key of /acp")
	flags.StringVar(&f.debugKeyFile, "debug-key-file", "", "file with the key of the debug listener")
	flags.BoolVar(&f.Spawn, "spawn", false, "start the pods")
	flags.StringVar(&f.binary, "acpod", "", "with --spawn, the pod's binary (default: acpod beside this program, else on PATH)")
	flags.IntVar(&f.Extensions, "extensions", 10, "simulated extensions")
	flags.IntVar(&f.Sessions, "sessions", 0, "sessions in all, spread evenly over the extensions (default: one each)")
	flags.DurationVar(&f.Duration, "duration", 20*time.Second, "how long the attack lasts; then all leave, and the pod comes to rest")
	flags.Uint64Var(&f.Seed, "seed", 1, "where chance begins")
	flags.StringVar(&f.Faults, "faults", "all", "names of faults with commas between, each with or without :RATE or *FACTOR; all; none")
	flags.Float64Var(&f.Rate, "rate", 50, "tool calls a second, over all sessions")
	flags.StringVar(&f.report, "report", "", "file for the report as JSON; flight recordings of breaches go beside it, else into the folder of --keep, else into this one")
	flags.BoolVar(&f.assert, "assert", false, "exit with 1 when a promise is broken")
	flags.StringVar(&f.keep, "keep", "", "existing folder for the pods' logs and files, which are else removed")
	flags.Float64Var(&f.MemoryFactor, "memory-factor", 1, "multiply the bound of the resident memory, for a pod built with the race detector")
	_ = flags.MarkHidden("memory-factor")
	return command
}

// complete checks the command line and fills in what it left out.
func (f *runFlags) complete() error {
	switch {
	case f.Spawn == (f.Target != ""):
		return usagef("name the pod to attack with --target, or start one with --spawn")
	case f.Spawn && (f.Debug != "" || f.keyFile != "" || f.debugKeyFile != ""):
		return usagef("--debug, --key-file and --debug-key-file are for a pod that runs")
	case f.Target != "" && !strings.HasPrefix(f.Target, "ws://"):
		return usagef("--target %q is no ws:// URL", f.Target)
	case f.Debug != "" && !strings.HasPrefix(f.Debug, "http://"):
		return usagef("--debug %q is no http:// URL", f.Debug)
	case f.Extensions < 1 || f.Extensions > 100_000:
		return usagef("--extensions %d is out of range: 1 to 100000", f.Extensions)
	case f.Sessions < 0 || f.Sessions > 1_000_000:
		return usagef("--sessions %d is out of range: 0 to 1000000", f.Sessions)
	case f.Duration <= 0:
		return usagef("--duration %s is out of range: it lasts for some time", f.Duration)
	case f.Rate < 0 || f.Rate > 100_000:
		return usagef("--rate %v is out of range: 0 to 100000", f.Rate)
	case f.MemoryFactor < 1:
		return usagef("--memory-factor %v is out of range: at least 1", f.MemoryFactor)
	}
	if f.Sessions == 0 {
		f.Sessions = f.Extensions
	}
	if err := chaos.CheckFaults(f.Faults); err != nil {
		return &usageError{err: fmt.Errorf("--faults: %w", err)}
	}
	for _, key := range []struct {
		flag, file string
		to         *string
	}{{"--key-file", f.keyFile, &f.Key}, {"--debug-key-file", f.debugKeyFile, &f.DebugKey}} {
		if key.file == "" {
			continue
		}
		text, err := os.ReadFile(key.file)
		if err != nil {
			return fmt.Errorf("%s: %w", key.flag, err)
		}
		if *key.to = string(bytes.TrimSpace(text)); *key.to == "" {
			return fmt.Errorf("%s: %s is empty", key.flag, key.file)
		}
	}
	return nil
}

func (f *runFlags) run(command *cobra.Command) error {
	ctx, cancel := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := f.place(); err != nil {
		return err
	}
	if err := reserve(f.report); err != nil {
		return err
	}
	if f.keep == "" {
		defer os.RemoveAll(f.Dir)
	}
	f.Version = programVersion()
	if isTerminal(os.Stderr) && f.Log.Enabled(ctx, slog.LevelInfo) {
		f.Terminal = os.Stderr
	}
	report, err := chaos.Run(ctx, f.Options)
	if report == nil {
		return err
	}
	if written := report.Write(command.OutOrStdout()); written != nil && err == nil {
		err = written
	}
	if f.report != "" {
		text, failed := json.Marshal(report, jsontext.WithIndent("  "), json.Deterministic(true))
		if failed == nil {
			failed = os.WriteFile(f.report, append(text, '\n'), 0o644)
		}
		if failed != nil && err == nil {
			err = fmt.Errorf("the report: %w", failed)
		}
	}
	if broken := report.Broken(); err == nil && f.assert && len(broken) > 0 {
		return fmt.Errorf("%d promises are broken with seed %d: %v", len(broken), f.Seed, broken)
	}
	return err
}

// place makes the folder in which the run writes and finds the programs.
func (f *runFlags) place() (err error) {
	f.Dir = f.keep
	if f.keep == "" {
		if f.Dir, err = os.MkdirTemp("", "acpod-chaos-"); err != nil {
			return err
		}
	} else if info, err := os.Stat(f.keep); err != nil || !info.IsDir() {
		return errors.Join(usagef("--keep %s is no folder", f.keep), err)
	}
	if f.Dir, err = filepath.Abs(f.Dir); err != nil {
		return err
	}
	switch {
	case f.report != "":
		f.Flight = strings.TrimSuffix(f.report, ".json")
	case f.keep != "":
		f.Flight = filepath.Join(f.Dir, "breach")
	default:
		f.Flight = fmt.Sprintf("acpod-chaos-%d", f.Seed)
	}
	if !f.Spawn {
		return nil
	}
	if f.Binary, err = findPod(f.binary); err != nil {
		return err
	}
	f.Agent, err = os.Executable()
	return err
}

// reserve makes the file of a report, so that a run of an hour does not find out at its end that it has no place. "" = none is wanted.
func reserve(report string) error {
	if report == "" {
		return nil
	}
	if err := os.WriteFile(report, nil, 0o644); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
