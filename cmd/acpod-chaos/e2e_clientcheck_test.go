package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/extension"
	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/wire"
)

// clientCheck is client-check at work.
type clientCheckRun struct {
	t       *testing.T
	address string
	command *exec.Cmd
	stdout  bytes.Buffer
	said    sync.WaitGroup // what it says on stderr
}

// startClientCheck starts the built program and gives the address that it prints.
func startClientCheck(t *testing.T, arguments ...string) *clientCheckRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	c := &clientCheckRun{t: t, command: exec.CommandContext(ctx, chaosBinary, append([]string{"client-check", "--listen", "127.0.0.1:0"}, arguments...)...)}
	c.command.Dir = t.TempDir()
	c.command.Env = []string{"HOME=" + c.command.Dir, "PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1"}
	c.command.Stdout = &c.stdout
	stderr, err := c.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for c.address == "" && lines.Scan() {
		_, c.address, _ = strings.Cut(lines.Text(), "connect the client to ")
	}
	if c.address == "" {
		t.Fatal("it prints no address")
	}
	c.said.Go(func() {
		for lines.Scan() { // what it waits for
		}
	})
	return c
}

// end waits for the program, and gives its exit status and what it printed.
func (c *clientCheckRun) end() (int, string) {
	c.t.Helper()
	c.said.Wait()
	err := c.command.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() < 0) {
		c.t.Fatalf("%v\n%s", err, c.stdout.String())
	}
	return c.command.ProcessState.ExitCode(), c.stdout.String()
}

// The simulated extension of the harness is a client like any other: it passes.
func TestClientCheckPassesTheSimulatedExtension(t *testing.T) {
	t.Parallel()
	check := startClientCheck(t, "--json", "--key-file", keyFile(t, "the.key-1"), "--timeout", "1m")
	quiet, err := fault.Parse("none")
	if err != nil {
		t.Fatal(err)
	}
	book := invariant.NewBook(nil)
	world := &extension.World{
		ACP: check.address, Key: "the.key-1", Dice: fault.NewDice(1), Faults: quiet, Book: book, Calls: ledger.NewCalls(book), Sessions: ledger.NewSessions(book),
		Doings: ledger.NewTally(), Traffic: &peer.Traffic{}, Secret: func(string) {},
		Limits: extension.Limits{Tunnel: time.Minute, Orphan: time.Minute, Keepalive: time.Minute, Pong: time.Minute, Write: time.Minute},
	}
	world.Begin(1)
	one := extension.New(world, 1, 0, 1)
	ctx, stop := context.WithCancel(t.Context())
	var living sync.WaitGroup
	living.Go(func() { one.Run(ctx) })
	code, stdout := check.end()
	stop()
	living.Wait()
	world.Let()
	var report checkReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("exit %d, %v in %.500s", code, err, stdout)
	}
	if code != 0 || report.Failed != 0 || report.Passed < 50 {
		t.Errorf("exit %d, %d passed: %s", code, report.Passed, report.explain())
	}
}

// A client that is broken is named on stdout, for people too, and in the exit status.
func TestClientCheckNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	check := startClientCheck(t, "--step", "2s")
	socket, err := wire.Open(t.Context(), wire.Dial{URL: check.address, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Reset()
	if err := socket.Text([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Read(); err != nil {
		t.Fatal(err)
	}
	if err := socket.Text([]byte(`[{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}]`)); err != nil {
		t.Fatal(err)
	}
	code, stdout := check.end()
	for _, part := range []string{"\nframes\n", "  FAIL     no batch is sent\n           expected: one message a frame\n", "  skipped  session/new has its params ", " 1 failed, "} {
		if !strings.Contains(stdout, part) {
			t.Errorf("%q is not in\n%s", part, stdout)
		}
	}
	if code != 2 {
		t.Errorf("exit %d", code)
	}
}

// Nobody is 3, wrong usage is 1; each is one line.
func TestClientCheckWithoutAClient(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := runChaos(t, patience, "client-check", "--listen", "127.0.0.1:0", "--timeout", "50ms", "--log-level", "error")
	if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "no client came within 50ms") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, arguments := range [][]string{
		{}, {"--listen", ""}, {"--listen", "8080"}, {"--listen", "0.0.0.0:0"}, {"--listen", ":0"}, {"--listen", "example.com:0"}, {"--listen", "127.0.0.1:nobody"}, {"--listen", taken.Addr().String()},
		{"--listen", "127.0.0.1:0", "stray"}, {"--listen", "127.0.0.1:0", "--key-file", t.TempDir()}, {"--listen", "127.0.0.1:0", "--arguments", "{}"},
		{"--listen", "127.0.0.1:0", "--tool", "a", "--arguments", "[]"}, {"--listen", "127.0.0.1:0", "--tool", "a", "--arguments", "{"}, {"--listen", "127.0.0.1:0", "--patience", "0s"},
		{"--listen", "127.0.0.1:0", "--step", "soon"}, {"--listen", "127.0.0.1:0", "--log-level", "loud"},
	} {
		code, stdout, stderr := runChaos(t, patience, append([]string{"client-check"}, arguments...)...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "acpod-chaos: ") {
			t.Errorf("%q: exit %d, %q, %q", arguments, code, stdout, stderr)
		}
	}
	code, stdout, _ = runChaos(t, patience, "client-check", "--help")
	if code != 0 || !slices.ContainsFunc(strings.Split(stdout, "\n"), func(line string) bool {
		return strings.TrimSpace(line) == "acpod-chaos client-check --listen 127.0.0.1:8080"
	}) {
		t.Errorf("--help: exit %d, %s", code, stdout)
	}
}
