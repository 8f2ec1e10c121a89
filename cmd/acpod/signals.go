package main

import (
	"os"
	"os/signal"
	"syscall"
)

// drainSignals are the signals that drain a pod, of which the second ends it at once. The end of its terminal is one, but not for a pod that was
// started to outlive that (nohup).
func drainSignals() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	return signals, func() { signal.Stop(signals) }
}
