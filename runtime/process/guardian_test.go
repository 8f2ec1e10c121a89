package process

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hold starts a holder and reads what it tells: the pid of its guardian (0 for none) and of all that it started.
func hold(t *testing.T, records string, roles ...string) (pod *exec.Cmd, guardian int, pids []int) {
	t.Helper()
	argv := roleOf("holder", append([]string{records}, roles...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := readLines(out)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, pid := range append(pids, guardian) {
			if pid > 1 && runs(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		said.drain(t)
	})
	if records != "-" {
		guardian = said.pid(t, "guardian")
	}
	for range roles {
		leader, speaker := said.pid(t, "child"), said.pid(t, "up")
		if pids = append(pids, leader); speaker != leader {
			pids = append(pids, speaker)
		}
	}
	if line := said.next(t); line != "ready" {
		t.Fatalf("the holder says %q", line)
	}
	return cmd, guardian, pids
}

func TestAfterAKillOfThePodNothingLives(t *testing.T) {
	pod, guardian, pids := hold(t, t.TempDir(), "obeys-term", "obeys-nothing", "wrapper:obeys-nothing", "escaped:obeys-nothing")
	if len(pids) != 6 || !runs(guardian) {
		t.Fatalf("it runs %v and the guardian %d", pids, guardian)
	}
	killed := time.Now()
	if err := pod.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(pids, guardian) {
		eventually(t, "a process of the pod is gone", func() bool { return !runs(pid) })
	}
	t.Logf("all were gone after %v", time.Since(killed).Round(10*time.Millisecond))
}

func TestWithoutAGuardianPdeathsigEndsTheLeaders(t *testing.T) {
	pod, _, pids := hold(t, "-", "obeys-nothing")
	if err := pod.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the leader is gone", func() bool { return !runs(pids[0]) })
}

// TestASweepEndsWhatBothOtherNetsMissed kills pod and guardian together, so that a helper without its leader is left.
func TestASweepEndsWhatBothOtherNetsMissed(t *testing.T) {
	records := t.TempDir()
	pod, guardian, pids := hold(t, records, "wrapper:obeys-nothing", "escaped:obeys-nothing")
	leader, helper, escaped := pids[0], pids[1], pids[3]

	if swept, err := Sweep(records); err != nil || len(swept) != 0 || !runs(leader) || !runs(helper) {
		t.Fatalf("the sweep of a living pod's record ended %v, %v", swept, err)
	}
	_ = syscall.Kill(guardian, syscall.SIGSTOP) // or it would be replaced before the pod is dead
	_ = pod.Process.Kill()
	_ = syscall.Kill(guardian, syscall.SIGKILL)
	_ = pod.Wait()
	eventually(t, "guardian and leader are gone", func() bool { return !runs(guardian) && !runs(leader) })
	eventually(t, "the other leader is gone", func() bool { return !runs(pids[2]) })
	if !runs(helper) || !runs(escaped) {
		t.Fatal("a helper is gone: the test shows nothing")
	}
	swept, err := Sweep(records)
	if err != nil || len(swept) != 2 {
		t.Fatalf("the sweep ended %v, %v", swept, err)
	}
	if runs(helper) || runs(escaped) {
		t.Errorf("the helper lives on: %v, the one that left its group: %v", runs(helper), runs(escaped))
	}
	if left, _ := filepath.Glob(filepath.Join(records, "*")); len(left) != 0 {
		t.Errorf("records are left: %v", left)
	}
}

func TestASweepKnowsStrangers(t *testing.T) {
	records := t.TempDir()
	p, out := start(t, Spec{}, "obeys-term")
	out.pid(t, "up")
	stranger := p.Group()
	stranger.Start-- // what a reused number looks like
	write := func(name, boot string) {
		if err := os.WriteFile(filepath.Join(records, name+recordSuffix), []byte("boot "+boot+"\n"+addLine(stranger)+"add 1 0 0\nadd 0 0 0\nadd 7"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("reused", bootID())
	stranger.Start++
	write("other-boot", "00000000-0000-0000-0000-000000000000")
	swept, err := Sweep(records)
	if err != nil || len(swept) != 0 {
		t.Errorf("the sweep ended %v, %v", swept, err)
	}
	if !runs(p.PID()) {
		t.Error("a stranger was ended")
	}
	if swept, err := Sweep(filepath.Join(records, "none")); err != nil || swept != nil {
		t.Errorf("the sweep of nothing: %v, %v", swept, err)
	}
}

func guard(t *testing.T, records string) *Guardian {
	t.Helper()
	g, err := StartGuardian(GuardianOptions{Command: roleOf("guardian"), Records: records, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeGuardian(t, g) })
	return g
}

func closeGuardian(t *testing.T, g *Guardian) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestADeadGuardianIsReplacedAndToldAgain(t *testing.T) {
	records := t.TempDir()
	g := guard(t, records)
	p, out := start(t, Spec{Guardian: g}, "wrapper", "obeys-nothing", "stays")
	helper := out.pid(t, "up")
	first, _ := g.Status()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another guardian runs", func() bool { pid, starts := g.Status(); return starts == 2 && pid != first && runs(pid) })
	if groups := g.Groups(); len(groups) != 1 || groups[0] != p.Group() {
		t.Fatalf("the book has %v", groups)
	}
	second, _ := g.Status()
	closeGuardian(t, g) // which leaves the rest to the guardian
	if runs(helper) || runs(p.PID()) || runs(second) {
		t.Errorf("helper %v, leader %v, guardian %v", runs(helper), runs(p.PID()), runs(second))
	}
	if left, _ := filepath.Glob(filepath.Join(records, "*")); len(left) != 0 {
		t.Errorf("records are left: %v", left)
	}
}

func TestAGuardianThatHangsIsReplaced(t *testing.T) {
	g := guard(t, "")
	first, _ := g.Status()
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stranger := Group{PGID: 1 << 29, Start: 1, SID: 1}   // no process has that number
	eventually(t, "another guardian runs", func() bool { // when the pipe is full
		for range 500 {
			g.Add(stranger)
			g.Remove(stranger)
		}
		_, starts := g.Status()
		return starts > 1
	})
	if runs(first) {
		t.Error("the first one could wake and end groups that live on rightly")
	}
}

func TestAGroupThatWasTakenBackIsLeftAlone(t *testing.T) {
	g := guard(t, "")
	p, out := start(t, Spec{}, "obeys-term")
	out.pid(t, "up")
	g.Add(p.Group())
	g.Remove(p.Group())
	g.Remove(p.Group())
	closeGuardian(t, g)
	closeGuardian(t, g)
	if !runs(p.PID()) {
		t.Error("it was ended")
	}
}

func TestAStoppedProcessIsInNoBook(t *testing.T) {
	g := guard(t, t.TempDir())
	p, out := start(t, Spec{Guardian: g}, "obeys-eof")
	out.pid(t, "up")
	if groups := g.Groups(); len(groups) != 1 || groups[0] != p.Group() || p.Group().Start == 0 {
		t.Fatalf("the book has %v", groups)
	}
	stopped(t, p)
	if groups := g.Groups(); len(groups) != 0 {
		t.Errorf("the book has %v", groups)
	}
}

func TestAGuardianThatCannotStartIsAnError(t *testing.T) {
	for name, o := range map[string]GuardianOptions{
		"no command":         {},
		"no such program":    {Command: []string{"/nothing"}},
		"another program":    {Command: roleOf("exit", "0")},
		"no folder possible": {Command: roleOf("guardian"), Records: "/dev/null/records"},
	} {
		if g, err := StartGuardian(o); err == nil {
			t.Errorf("%s: it started", name)
			closeGuardian(t, g)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not one line: %v", name, err)
		}
	}
}

func TestNoGuardianGuardsNothing(t *testing.T) {
	var g *Guardian
	g.Add(Group{PGID: 2})
	g.Remove(Group{PGID: 2})
	if pid, starts := g.Status(); pid != 0 || starts != 0 || g.Groups() != nil || g.Close(context.Background()) != nil {
		t.Error("a nil guardian does something")
	}
}

// TestAnInterruptedGuardianGuardsOn sends what a Ctrl-C and a service manager send to all processes.
func TestAnInterruptedGuardianGuardsOn(t *testing.T) {
	g := guard(t, "")
	p, out := start(t, Spec{Guardian: g}, "obeys-term")
	out.pid(t, "up")
	pid, _ := g.Status()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	closeGuardian(t, g)
	if _, starts := g.Status(); starts != 1 || runs(p.PID()) {
		t.Errorf("%d guardians were started, the child runs: %v", starts, runs(p.PID()))
	}
}

func TestARecordDoesNotGrow(t *testing.T) {
	r, err := newRecord(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close(true)
	known := book{{PGID: 4, Start: 5, SID: 6}: {}}
	for range 10_000 {
		r.append(addLine(Group{PGID: 2, Start: 3, SID: 4}), known)
		r.append(removeLine(Group{PGID: 2, Start: 3, SID: 4}), known)
	}
	info, err := r.f.Stat()
	if err != nil || info.Size() > recordCompact+100 {
		t.Errorf("the record has %d bytes, %v", info.Size(), err)
	}
	if _, err := r.f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	groups := readRecord(r.f)
	if len(groups) != 1 || groups[0].PGID != 4 {
		t.Errorf("it says %v", groups)
	}
	var none *record
	none.append("x", nil)
	none.close(true)
	if err := errors.Join(r.rewrite(nil)); err != nil {
		t.Error(err)
	}
}
