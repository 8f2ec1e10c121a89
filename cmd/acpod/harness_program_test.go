package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// quitting is how long a program that hangs may take to say what its goroutines do.
const quitting = 10 * time.Second

// program is the built binary while it runs, whatever its command.
type program struct {
	t       testing.TB
	command *exec.Cmd
	log     *logs         // what it writes
	ended   chan struct{} // closed when the process is gone
	err     error         // of Wait, after ended
}

// logs is the file that a program writes to: a line that was written is there, while a pipe would still have to be read.
type logs struct{ path string }

func (l *logs) String() string {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// begin starts a command. What of it still runs is killed when the test ends.
func begin(t testing.TB, command *exec.Cmd, settings ...setting) *program {
	t.Helper()
	p := &program{t: t, command: command, log: &logs{filepath.Join(t.TempDir(), "log")}, ended: make(chan struct{})}
	log, err := os.OpenFile(p.log.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command.Stderr, command.Stdout = log, log
	for _, set := range settings {
		set(command)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { _ = command.Process.Kill(); <-p.ended })
	return p
}

// await polls for a condition outside this process. It does not come any more once the program has ended.
func (p *program) await(what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		select {
		case <-p.ended:
			if holds() { // it was the last that it did
				return
			}
			p.t.Fatalf("%v ended (%v) before %s:\n%s", p.command.Args[1:], p.err, what, tail(p.log.String(), 12000))
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			p.quit()
			p.t.Fatalf("%s did not come from %v:\n%s", what, p.command.Args[1:], tail(p.log.String(), 40000))
		}
	}
}

// awaitEnd waits until the program has ended.
func (p *program) awaitEnd() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.quit()
		p.t.Fatalf("%v does not end:\n%s", p.command.Args[1:], tail(p.log.String(), 40000))
	}
}

// quit ends a program that hangs: what its goroutines do is in its log then.
func (p *program) quit() {
	_ = p.command.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(quitting):
	}
}

func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}

// run executes the binary with arguments and gives its exit code and output.
func run(t testing.TB, env []string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := exec.Command(builtBinary, arguments...)
	command.Dir = t.TempDir()
	command.Env = append([]string{"HOME=" + command.Dir, "PATH=" + os.Getenv("PATH")}, env...)
	return runCommand(t, command)
}

// runCommand executes a command to its end. Of one that hangs the test shows what its goroutines do.
func runCommand(t testing.TB, command *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, text bytes.Buffer
	command.Stdout, command.Stderr, command.WaitDelay = &out, &text, quitting
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	quit := time.AfterFunc(patience, func() { _ = command.Process.Signal(syscall.SIGQUIT) })
	kill := time.AfterFunc(patience+quitting, func() { _ = command.Process.Kill() })
	err := command.Wait()
	inTime := quit.Stop()
	kill.Stop()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case !inTime:
		t.Fatalf("%v does not end (%v):\n%s\n%s", command.Args[1:], err, tail(out.String(), 4000), tail(text.String(), 40000))
	case exited:
		return exit.ExitCode(), out.String(), text.String()
	case err != nil:
		t.Fatalf("%v: %v\n%s", command.Args[1:], err, tail(text.String(), 12000))
	}
	return 0, out.String(), text.String()
}
