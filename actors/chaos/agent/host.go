package agent

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Host is the process that the agent is: what ends, deafens and multiplies it.
type Host interface {
	Exit(code int)         // does not return
	Kill(s syscall.Signal) // to itself; does not return
	Deafen()               // ignores TERM and INT from now on
	Fork(hold bool) error  // one grandchild, in the same group, that ignores TERM; hold: it holds stdout and stderr open
	CloseStdout()
}

// Process is the Host of a real process. Records is where its grandchildren enter themselves.
type Process struct{ Records string }

// Exit implements Host.
func (Process) Exit(code int) { os.Exit(code) }

// Kill implements Host.
func (Process) Kill(s syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), s) // of an abort, Go writes a trace of all goroutines to stderr: many lines at once
	select {}                        // until the signal is delivered
}

// Deafen implements Host.
func (Process) Deafen() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }

// CloseStdout implements Host.
func (Process) CloseStdout() { _ = os.Stdout.Close() }

// Grandchild is the argument by which the program is a grandchild and nothing else.
const Grandchild = "--grandchild"

// Fork implements Host. The grandchild is the same program; nobody waits for it but this process while it lives.
func (p Process) Fork(hold bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, "agent", Grandchild, "--records", p.Records)
	if hold {
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
	}
	if err := child.Start(); err != nil {
		return err
	}
	go func() { _ = child.Wait() }() // no zombie while this process lives
	return nil
}

// Linger is what a grandchild does: it ignores every polite request to end, until it is killed.
func Linger(records string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	if records != "" {
		if _, err := Enter(records, "grandchild"); err != nil {
			return err
		}
	}
	forever(context.Background())
	return nil
}
