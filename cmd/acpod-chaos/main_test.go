package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/pod"
)

// patience is how long a test waits for something that has to happen. It is long because these machines are slow and
// shared: a test that has to wait that long has failed.
const patience = 60 * time.Second

// acpodBinary and chaosBinary are the built programs: these tests drive both as a user would. watched are the same where the tests look for
// races, with the race detector in them: it takes most of a machine, so only the runs of everything at once have it.
var (
	acpodBinary, chaosBinary string
	watched                  struct{ acpod, chaos string }
)

// sideBySide is how many of these tests run at once: they wait for other processes far more than they compute.
const sideBySide = "8"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "acpod-chaos-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	acpodBinary, chaosBinary = build(dir, "plain", nil, "CGO_ENABLED=0")
	watched.acpod, watched.chaos = acpodBinary, chaosBinary
	if len(raceFlag) > 0 {
		watched.acpod, watched.chaos = build(dir, "watched", raceFlag, raceEnv...)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build makes both programs in a folder of dir.
func build(dir, folder string, flags []string, env ...string) (acpod, chaos string) {
	dir = filepath.Join(dir, folder) + "/"
	command := exec.Command("go", append(append([]string{"build"}, flags...), "-o", dir, "../acpod", ".")...)
	command.Env = append(os.Environ(), env...)
	if output, err := command.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the programs do not build: %v\n%s", err, output)
		os.Exit(1)
	}
	return dir + "acpod", dir + "acpod-chaos"
}

// runChaos executes acpod-chaos with arguments and gives its exit status and output.
func runChaos(t *testing.T, bound time.Duration, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runProgram(t, chaosBinary, bound, arguments...)
}

func runProgram(t *testing.T, program string, bound time.Duration, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = t.TempDir()
	command.Env = []string{"HOME=" + command.Dir, "PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1"}
	var out, err bytes.Buffer
	command.Stdout, command.Stderr = &out, &err
	if failure := command.Run(); failure != nil {
		exit, ok := errors.AsType[*exec.ExitError](failure)
		if !ok || ctx.Err() != nil {
			t.Fatalf("%v: %v\n%.2000s\n%.2000s", arguments, failure, out.String(), err.String())
		}
		return exit.ExitCode(), out.String(), err.String()
	}
	return 0, out.String(), err.String()
}

// startPod starts the built pod with that config.
func startPod(t *testing.T, config string) *pod.Pod {
	t.Helper()
	return startProgram(t, acpodBinary, config)
}

// startProgram starts a program that is the pod, or wraps it. It is stopped at the end of the test, which fails when it does not end with
// status 0.
func startProgram(t *testing.T, program, config string) *pod.Pod {
	t.Helper()
	p, err := pod.Start(t.Context(), pod.Spec{Binary: program, TOML: config, Env: []string{"GORACE=halt_on_error=1"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if exit, err := p.Stop(ctx); exit != 0 || err != nil {
			t.Errorf("the pod ended with %d %v: %q", exit, err, p.LogTail(10))
		}
	})
	return p
}
