package process

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestWhatIsSentArrivesWholeAndInOrder(t *testing.T) {
	p, out := start(t, Spec{}, "cat")
	long := strings.Repeat("x", 1<<20) // many times the pipe
	var done atomic.Int32
	for _, line := range []string{"first", long, "last"} {
		if err := p.Send([]byte(line+"\n"), func() { done.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"first", long, "last"} {
		if got := out.next(t); got != want {
			t.Fatalf("got %d bytes, want %d", len(got), len(want))
		}
	}
	eventually(t, "each piece is reported as written, once", func() bool { return done.Load() == 3 })
	if r := stopped(t, p); r.Step != StepEOF || r.Exit != (Exit{}) || r.Alive {
		t.Errorf("the stop was %+v", r)
	}
	if err := p.Send([]byte("late"), nil); !errors.Is(err, ErrStdinClosed) {
		t.Errorf("a piece after the stop: %v", err)
	}
}

func TestWhatWasQueuedBeforeAStopIsStillWritten(t *testing.T) {
	p, out := start(t, Spec{}, "cat")
	for range 100 {
		if err := p.Send([]byte("line\n"), nil); err != nil {
			t.Fatal(err)
		}
	}
	stopped(t, p)
	n := 0
	for range out.ch {
		n++
	}
	if n != 100 {
		t.Errorf("%d lines came back", n)
	}
}

func TestTheEndOfTheLeaderIsKnownWithoutACall(t *testing.T) {
	for role, want := range map[string]Exit{"exit": {Code: 3}, "die": {Code: -1, Signal: syscall.SIGKILL}} {
		t.Run(role, func(t *testing.T) {
			p, _ := start(t, Spec{}, role, "3")
			if role == "die" && p.Exit().Code > 0 {
				t.Error("an exit code before the end")
			}
			select {
			case <-p.Exited():
			case <-time.After(patience):
				t.Fatal("nobody noticed")
			}
			if got := p.Exit(); got != want {
				t.Errorf("it %v, want: it %v", got, want)
			}
			if r := stopped(t, p); r.Step != StepNone || r.Exit != want {
				t.Errorf("the stop was %+v", r)
			}
			if role == "exit" && p.StderrTail(100) != "the last words" {
				t.Errorf("stderr ends %q", p.StderrTail(100))
			}
		})
	}
}

func TestAStopClimbsAsFarAsItMust(t *testing.T) {
	for _, c := range []struct {
		role string
		eof  time.Duration
		term time.Duration
		want Step
		exit Exit
	}{
		{"obeys-eof", patience, patience, StepEOF, Exit{}},
		{"obeys-term", 20 * time.Millisecond, patience, StepTerm, Exit{Code: -1, Signal: syscall.SIGTERM}},
		{"obeys-nothing", 20 * time.Millisecond, 50 * time.Millisecond, StepKill, Exit{Code: -1, Signal: syscall.SIGKILL}},
	} {
		t.Run(c.role, func(t *testing.T) {
			p, out := start(t, Spec{EOFGrace: c.eof, TermGrace: c.term}, c.role)
			out.pid(t, "up")
			r := stopped(t, p)
			if r.Step != c.want || r.Exit != c.exit || r.Alive || r.Reason != "" {
				t.Errorf("the stop was %+v", r)
			}
			if again := stopped(t, p); again != r {
				t.Errorf("a second stop says %+v", again)
			}
		})
	}
}

func TestAKillSkipsTheGraces(t *testing.T) {
	p, out := start(t, Spec{EOFGrace: time.Hour, TermGrace: time.Hour}, "obeys-nothing")
	out.pid(t, "up")
	ctx, cancel := context.WithCancelCause(context.Background())
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	if _, err := p.Stop(ctx); !errors.Is(err, gaveUp) {
		t.Fatalf("a stop whose caller has no time: %v", err)
	}
	p.Kill() // while the ladder waits for the end of stdin
	if r := stopped(t, p); r.Step != StepKill {
		t.Errorf("the stop was %+v", r)
	}
}

func TestTheWholeGroupIsEnded(t *testing.T) {
	for _, c := range []struct {
		helper, then string
		want         Step
	}{
		{"obeys-term", "leaves", StepTerm},
		{"obeys-nothing", "leaves", StepKill},
		{"obeys-term", "stays", StepTerm},
		{"obeys-nothing", "stays", StepKill},
	} {
		t.Run(c.helper+" "+c.then, func(t *testing.T) {
			p, out := start(t, Spec{EOFGrace: patience, TermGrace: 200 * time.Millisecond}, "wrapper", c.helper, c.then)
			helper := out.pid(t, "up")
			if helper == p.PID() {
				t.Fatal("the helper is the leader")
			}
			if c.then == "leaves" {
				if err := p.Send([]byte("\n"), nil); err != nil {
					t.Fatal(err)
				}
				<-p.Exited()
				if !runs(helper) {
					t.Fatal("the helper went with its leader: the test shows nothing")
				}
			}
			if r := stopped(t, p); r.Step != c.want || r.Alive {
				t.Errorf("the stop was %+v", r)
			}
			if runs(helper) {
				t.Error("the helper lives on")
			}
			out.drain(t) // stdout ends although its reader is behind
		})
	}
}

// Nothing tells whose the helper is: it is in no group of ours, its parent has ended, and this process is no subreaper.
func TestStdoutEndsAlthoughAProcessThatNobodyKnowsHoldsIt(t *testing.T) {
	p, out := start(t, Spec{}, "wrapper", "obeys-term", "abandons")
	helper := out.pid(t, "up")
	defer func() { _ = syscall.Kill(helper, syscall.SIGKILL) }()
	if err := p.Send([]byte("\n"), nil); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	stopped(t, p)
	out.drain(t)
	if !runs(helper) {
		t.Error("the helper is known: the test shows nothing")
	}
}

func TestWhoLeftTheGroupIsEndedWithIt(t *testing.T) {
	for helper, want := range map[string]Step{"obeys-term": StepTerm, "obeys-nothing": StepKill} {
		t.Run(helper, func(t *testing.T) {
			p, out := start(t, Spec{TermGrace: 200 * time.Millisecond}, "wrapper", helper, "escapes")
			pid := out.pid(t, "up")
			if s, err := readStat(pid); err != nil || s.pgrp == p.PID() || s.sid == p.Group().SID {
				t.Fatalf("the helper did not leave: %+v, %v", s, err)
			}
			if r := stopped(t, p); r.Step != want || r.Alive {
				t.Errorf("the stop was %+v", r)
			}
			if runs(pid) {
				t.Error("the helper lives on")
			}
		})
	}
}

func TestAChildThatDoesNotReadIsStopped(t *testing.T) {
	p, out := start(t, Spec{StdinTimeout: 100 * time.Millisecond, TermGrace: 50 * time.Millisecond, EOFGrace: time.Hour}, "obeys-nothing")
	out.pid(t, "up")
	var done atomic.Int32
	for range 3 {
		if err := p.Send(make([]byte, 1<<20), func() { done.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-p.Gone():
	case <-time.After(patience):
		t.Fatal("it lives on")
	}
	if r := stopped(t, p); r.Step != StepKill || !strings.Contains(r.Reason, "did not read its stdin") || r.Reason != p.Reason() {
		t.Errorf("the stop was %+v", r)
	}
	if n, bytes := p.Waiting(); done.Load() != 3 || n != 0 || bytes != 0 {
		t.Errorf("%d pieces were let go, %d with %d bytes still wait", done.Load(), n, bytes)
	}
}

func TestAChildThatClosesItsStdinIsStopped(t *testing.T) {
	p, out := start(t, Spec{}, "closes-stdin")
	out.pid(t, "up")
	if err := p.Send([]byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Gone():
	case <-time.After(patience):
		t.Fatal("it lives on")
	}
	if r := stopped(t, p); r.Step != StepTerm || r.Reason != "it closed its stdin" {
		t.Errorf("the stop was %+v", r)
	}
}

func TestTheQueueOfStdinIsBounded(t *testing.T) {
	p, out := start(t, Spec{StdinBytes: 100 << 10, StdinTimeout: time.Hour}, "obeys-nothing")
	out.pid(t, "up")
	if err := p.Send(make([]byte, 1<<20), nil); err != nil {
		t.Fatalf("a piece over the limit passes alone: %v", err)
	}
	err := p.Send(make([]byte, 1), nil)
	var full *StdinFull
	if !errors.As(err, &full) || full.Limit != 100<<10 || full.Used != 1<<20 || full.Size != 1 {
		t.Fatalf("a piece behind it: %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("not one line: %v", err)
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	dir := t.TempDir()
	plainFile := filepath.Join(dir, "plain")
	if err := os.WriteFile(plainFile, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"no command":            {Spec{}, "no command"},
		"missing":               {Spec{Argv: []string{dir + "/nothing"}}, "no such file"},
		"a folder":              {Spec{Argv: []string{dir}}, "not an executable file"},
		"not executable":        {Spec{Argv: []string{plainFile}}, "not an executable file"},
		"no program":            {Spec{Argv: []string{garbage}}, "exec format error"},
		"not in PATH":           {Spec{Argv: []string{"garbage"}, Env: []string{"PATH=/nowhere:."}, Dir: dir}, "not found in PATH"},
		"our PATH is not asked": {Spec{Argv: []string{"sh"}}, "not found in PATH"},
		"no such folder":        {Spec{Argv: roleOf("cat"), Dir: dir + "/none"}, "no such file"},
		"markup and newlines":   {Spec{Argv: []string{"/<b>\n\x1b[31m"}}, `/<b>\n\x1b[31m`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(c.spec)
			if err == nil {
				p.Kill()
				stopped(t, p)
				t.Fatal("it started")
			}
			var failed *StartError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestAProgramIsFoundAsTheChildSees(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(roleOf("cat")[0], filepath.Join(dir, "tool")); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]Spec{
		"by the PATH of its environment": {Argv: []string{"tool", "role=exit", "7"}, Env: []string{"PATH=/nowhere:" + dir}},
		"below its folder":               {Argv: []string{"./tool", "role=exit", "7"}, Dir: dir},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(spec)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, p.Stdout())
			_ = p.Stdout().Close()
			<-p.Exited()
			if r := stopped(t, p); r.Exit.Code != 7 {
				t.Errorf("it %v", r.Exit)
			}
		})
	}
}

func TestAChildInheritsNothing(t *testing.T) {
	t.Setenv("SECRET_OF_THE_POD", "s3cr3t")
	leak, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leak.Close() }()
	argv := roleOf("starter")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{leak}
	cmd.Env = append(os.Environ(), "ANOTHER=one")
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(said)); got != "ONLY=this" {
		t.Errorf("the child has:\n%s", got)
	}
}

// TestAThreadThatEndsTakesNoChildWithIt starts a child from a goroutine whose thread dies: PDEATHSIG follows threads.
func TestAThreadThatEndsTakesNoChildWithIt(t *testing.T) {
	type result struct {
		p   *Process
		err error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p, err := Start(Spec{Argv: roleOf("cat")})
		started <- result{p, err}
	}()
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer func() { _ = r.p.Stdout().Close() }()
	for range 20 { // let threads come and go
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread()
		}()
		<-ended
	}
	if err := r.p.Send([]byte("alive\n"), nil); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := r.p.Stdout().Read(buf); err != nil || string(buf[:n]) != "alive\n" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if rep := stopped(t, r.p); rep.Exit != (Exit{}) {
		t.Errorf("it %v", rep.Exit)
	}
}

func TestStderrIsDrainedAndOnlyItsEndIsKept(t *testing.T) {
	p, _ := start(t, Spec{}, "say", strings.Repeat("e", 1023)+"\n", "1024")
	select {
	case <-p.Exited():
	case <-time.After(patience):
		t.Fatal("it is stuck in a full pipe")
	}
	stopped(t, p)
	tail, total := p.Stderr()
	if total != 1<<20 || len(tail) != DefaultStderrBytes {
		t.Errorf("%d bytes were drained, %d kept", total, len(tail))
	}
}

func TestLinesOfStderrAreLoggedEscapedBoundedAndMasked(t *testing.T) {
	var log bytes.Buffer
	spec := Spec{Secrets: []string{"t0ken"}, Log: slog.New(slog.NewJSONHandler(&log, nil))}
	text := "plain\n<b>markup</b>\x1b[31m\rred\nmy t0ken is t0ken\n" + strings.Repeat("y", 5000) + "\n\xff\xfe\nno newline"
	p, _ := start(t, spec, "say", text, "1")
	<-p.Exited()
	stopped(t, p)
	type record struct {
		Line    string `json:"line"`
		Skipped int    `json:"skipped_bytes"`
	}
	var got []record
	for line := range strings.Lines(log.String()) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []record{
		{Line: "plain"}, {Line: `<b>markup</b>\x1b[31m\rred`}, {Line: "my [masked] is [masked]"},
		{Line: strings.Repeat("y", stderrLine) + "…", Skipped: 5000 - stderrKept}, {Line: `\xff\xfe`}, {Line: "no newline"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %+v", got)
	}
	if strings.Contains(p.StderrTail(4096), "t0ken") {
		t.Error("the tail shows the secret")
	}
	if tail := p.StderrTail(40); !strings.HasSuffix(tail, "no newline") || len(tail) > 40 {
		t.Errorf("the tail is %q", tail)
	}
}

func TestAFloodOfStderrIsNotLoggedWhole(t *testing.T) {
	var log bytes.Buffer
	p, _ := start(t, Spec{Log: slog.New(slog.NewTextHandler(&log, nil))}, "say", "flood\n", "100000")
	<-p.Exited()
	stopped(t, p)
	if n := strings.Count(log.String(), "\n"); n > 20000 || !strings.Contains(log.String(), "not_logged") && !strings.Contains(log.String(), "not logged") {
		t.Errorf("%d records were written", n)
	}
}
