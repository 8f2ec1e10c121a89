package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long tests wait for what the operating system does. It only ever passes when a test has failed.
const patience = 30 * time.Second

// TestMain makes the test binary play the children of the tests: "role=NAME" as its first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := strings.CutPrefix(os.Args[1], "role="); ok {
			time.AfterFunc(4*time.Minute, func() { os.Exit(99) }) // whatever a failed test leaves
			os.Exit(play(role, os.Args[2:]))
		}
	}
	_ = os.Setenv(quick, "atexit_sleep_ms=0") // the race detector makes each child sleep a second at its end
	goleak.VerifyTestMain(m)
}

const quick = "GORACE"

func roleOf(name string, args ...string) []string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{path, "role=" + name}, args...)
}

func play(role string, args []string) int {
	switch role {
	case "guardian":
		return RunGuardian(os.Stdin)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "exit":
		code, _ := strconv.Atoi(args[0])
		fmt.Fprintln(os.Stderr, "the last words")
		return code
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		return forever()
	case "say":
		n, _ := strconv.Atoi(args[1])
		_, _ = io.WriteString(os.Stderr, strings.Repeat(args[0], n))
	case "env":
		return showEnvironment()
	case "starter": // starts the role env as a pod would, with a descriptor that it was given itself
		p, err := Start(Spec{Argv: roleOf("env"), Env: []string{"ONLY=this"}})
		if err != nil {
			return 1
		}
		_, _ = io.Copy(os.Stdout, p.Stdout())
		_, _ = p.Stop(context.Background())
	case "obeys-eof":
		signal.Ignore(syscall.SIGTERM)
		up()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "obeys-term":
		up()
		return forever()
	case "obeys-nothing":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		up()
		return forever()
	case "closes-stdin":
		_ = os.Stdin.Close()
		up()
		return forever()
	case "wrapper":
		return wrapper(args[0], args[1])
	case "holder":
		return holder(args[0], args[1:])
	case "parent":
		return asParent(args[0])
	}
	return 0
}

func forever() int {
	time.Sleep(time.Hour)
	return 0
}

// up tells that the signals are set by now: one sent before would find the default.
func up() { fmt.Println("up", os.Getpid()) }

func showEnvironment() int {
	fmt.Println(strings.Join(os.Environ(), "\n"))
	for fd := 3; fd < 64; fd++ {
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && !strings.HasPrefix(target, "anon_inode") && !strings.HasPrefix(target, "/sys/") { // the Go runtime's own
			fmt.Println("FD", fd, target)
		}
	}
	return 0
}

// wrapper starts a helper, in its own group or ("escapes", "abandons") outside, which writes to our stdout, and then leaves it
// alone or stays.
func wrapper(helper, then string) int {
	argv := roleOf(helper)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: then == "escapes" || then == "abandons"}
	if err := cmd.Start(); err != nil {
		return 1
	}
	if then == "leaves" || then == "abandons" {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the test has read what the helper said
		return 3
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// holder is a pod: a guardian with records in a folder (none for "-"), and a child for each role. It tells the pids.
func holder(records string, roles []string) int {
	var guardian *Guardian
	if records != "-" {
		var err error
		if guardian, err = StartGuardian(GuardianOptions{Command: roleOf("guardian"), Records: records}); err != nil {
			fmt.Println("error", err)
			return 1
		}
		pid, _ := guardian.Status()
		fmt.Println("guardian", pid)
	}
	for _, role := range roles {
		argv := roleOf(role)
		mark := ""
		if helper, ok := strings.CutPrefix(role, "wrapper:"); ok {
			argv = roleOf("wrapper", helper, "stays")
		} else if helper, ok := strings.CutPrefix(role, "escaped:"); ok {
			argv, mark = roleOf("wrapper", helper, "escapes"), "MARK=of "+role
		}
		p, err := Start(Spec{Argv: argv, Guardian: guardian, Env: []string{quick + "=" + os.Getenv(quick), mark}, Mark: mark})
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
		fmt.Println("child", p.PID())
		fmt.Print(line) // "up <pid>": its own, or that of its helper
	}
	fmt.Println("ready")
	return forever()
}

// start starts a role and ends it at the test's end.
func start(t *testing.T, spec Spec, role string, args ...string) (*Process, *lines) {
	t.Helper()
	spec.Argv = roleOf(role, args...)
	spec.Env = append(spec.Env, quick+"="+os.Getenv(quick))
	p, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	out := readLines(p.Stdout())
	t.Cleanup(func() {
		p.Kill()
		stopped(t, p)
		out.drain(t)
	})
	return p, out
}

// stopped waits for a stop.
func stopped(t *testing.T, p *Process) Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	report, err := p.Stop(ctx)
	if err != nil {
		t.Fatalf("stop: %v", err)
	}
	return report
}

// lines are what a child writes, with a deadline.
type lines struct{ ch chan string }

func readLines(r io.ReadCloser) *lines {
	l := &lines{ch: make(chan string, 1024)}
	go func() {
		defer close(l.ch)
		defer func() { _ = r.Close() }()
		s := bufio.NewScanner(r)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			l.ch <- s.Text()
		}
	}()
	return l
}

func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-l.ch:
		if !ok {
			t.Fatal("stdout has ended")
		}
		return line
	case <-time.After(patience):
		t.Fatal("the child says nothing")
	}
	return ""
}

// pid reads "WORD 123".
func (l *lines) pid(t *testing.T, word string) int {
	t.Helper()
	line := l.next(t)
	pid, err := strconv.Atoi(strings.TrimPrefix(line, word+" "))
	if err != nil {
		t.Fatalf("%q is not %q and a pid", line, word)
	}
	return pid
}

func (l *lines) drain(t *testing.T) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, ok := <-l.ch:
			if !ok {
				return
			}
		case <-deadline:
			t.Fatal("stdout does not end")
		}
	}
}

// runs tells whether a process lives; a zombie does not.
func runs(pid int) bool {
	s, err := readStat(pid)
	return err == nil && !s.dead()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
