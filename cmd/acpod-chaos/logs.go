package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"
)

// logFlags are on every command, as they are on acpod's.
type logFlags struct{ level, format string }

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (f *logFlags) add(root *cobra.Command) {
	root.PersistentFlags().StringVar(&f.level, "log-level", "info", "least level that is logged: debug, info, warn or error")
	root.PersistentFlags().StringVar(&f.format, "log-format", "text", "text or json; logs go to stderr")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return f.check() }
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

// logger writes to stderr; stdout is a command's result.
func (f *logFlags) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: levels[f.level]}
	if f.format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
