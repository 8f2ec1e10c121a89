package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What a parent does concerns a whole process, so each of these runs in one of its own.
func TestAsAParentOfOrphans(t *testing.T) {
	for name := range parentRoles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			argv := roleOf("parent", name)
			said, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if err != nil || strings.TrimSpace(string(said)) != "well" {
				t.Errorf("%v:\n%s", err, said)
			}
		})
	}
}

// parentRoles are run as subreapers.
var parentRoles = map[string]func(*Parent) error{
	"a storm of orphans costs no exit status":                                  storm,
	"an orphan that left its group is known by its mark":                       knownByMark,
	"an orphan is ended when all whose it could be have ended":                 endedWithSuspects,
	"what left its group is noted while its parents live, and ended with them": notedEarly,
	"an orphan of nobody is ended at the close":                                endedAtClose,
	"what a child uses is summed up":                                           summedUp,
	"nobody is judged while a child is being made":                             notJudged,
	before: leftAlone,
}

const before = "who was there before is left alone, and orphans that may be theirs"

func asParent(name string) int {
	if name == before {
		sleeper = exec.Command("/bin/sleep", "600")
		if err := sleeper.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	p, err := StartParent(nil, slog.New(slog.DiscardHandler))
	if err == nil {
		err = parentRoles[name](p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err = errors.Join(err, p.Close(ctx)); err != nil {
		fmt.Println(err)
		return 1
	}
	if left := exec.Command("/bin/sh", "-c", "exit 5").Run(); left == nil || left.Error() != "exit status 5" {
		fmt.Println("after the close:", left)
		return 1
	}
	fmt.Println("well")
	return 0
}

// storm starts many children at once, each of which leaves an orphan that ends a little later.
func storm(*Parent) error {
	const rounds, width = 8, 12
	var failed sync.Map
	for range rounds {
		var wait sync.WaitGroup
		for i := range width {
			wait.Go(func() {
				p, err := Start(Spec{Argv: []string{"/bin/sh", "-c", "(sleep 0.0" + strconv.Itoa(i%4) + " &) ; exit " + strconv.Itoa(i)}, Env: []string{"PATH=/bin:/usr/bin"}})
				if err != nil {
					failed.Store(err.Error(), true)
					return
				}
				<-p.Exited()
				if got := p.Exit(); got != (Exit{Code: i}) {
					failed.Store(fmt.Sprintf("child %d %v", i, got), true)
				}
				_ = p.Stdout().Close()
				_, _ = p.Stop(context.Background())
			})
		}
		wait.Wait()
	}
	var err error
	failed.Range(func(what, _ any) bool { err = errors.Join(err, errors.New(what.(string))); return true })
	return errors.Join(err, within("all orphans are collected", func() bool {
		t, err := system.table()
		for _, s := range t {
			if s.ppid == os.Getpid() {
				return false
			}
		}
		return err == nil
	}))
}

func within(what string, ok func() bool) error {
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %s", patience, what)
		}
	}
	return nil
}

// abandoned starts a child that leaves an orphan outside of its group, lets it end, and gives both.
func abandoned(mark string) (p *Process, orphan member, err error) {
	p, _, orphan, err = wrapped(mark, "abandons")
	if err != nil {
		return nil, orphan, err
	}
	if err := p.Send([]byte("\n"), nil); err != nil {
		return nil, orphan, err
	}
	<-p.Exited()
	return p, orphan, within("the orphan is ours", func() bool { s, err := readStat(orphan.pid); return err == nil && s.ppid == os.Getpid() })
}

func wrapped(mark, then string) (*Process, *bufio.Reader, member, error) {
	p, err := Start(Spec{Argv: roleOf("wrapper", "obeys-term", then), Env: []string{mark}, Mark: mark, Kind: "kind"})
	if err != nil {
		return nil, nil, member{}, err
	}
	out := bufio.NewReader(p.Stdout())
	line, err := out.ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "up ")))
	s, bad := readStat(pid)
	return p, out, member{pid, s.start}, errors.Join(err, bad)
}

func knownByMark(*Parent) error {
	one, ofOne, err := abandoned("TOKEN=one")
	if err != nil {
		return err
	}
	two, ofTwo, err := abandoned("TOKEN=two")
	if err != nil {
		return err
	}
	if _, err := one.Stop(context.Background()); err != nil || ofOne.runs() {
		return fmt.Errorf("the marked orphan lives on, %w", err)
	}
	if !ofTwo.runs() {
		return errors.New("another's orphan was ended")
	}
	if _, err := two.Stop(context.Background()); err != nil || ofTwo.runs() {
		return fmt.Errorf("the second orphan lives on, %w", err)
	}
	return nil
}

func endedWithSuspects(p *Parent) error {
	other, _, _, err := wrapped("", "stays")
	if err != nil {
		return err
	}
	one, orphan, err := abandoned("")
	if err != nil {
		return err
	}
	p.look() // as it would by itself every few seconds
	if p.Strangers() != 1 {
		return fmt.Errorf("%d strangers", p.Strangers())
	}
	if _, err := one.Stop(context.Background()); err != nil {
		return err
	}
	p.look()
	if !orphan.runs() {
		return errors.New("it was ended while it could belong to a child that runs")
	}
	if _, err := other.Stop(context.Background()); err != nil {
		return err
	}
	return within("the orphan is ended", func() bool { return !orphan.runs() })
}

// notJudged has an orphan that could be of a child which has begun and is not known yet.
func notJudged(p *Parent) error {
	between := func(by int) {
		ours.mu.Lock()
		defer ours.mu.Unlock()
		ours.between += by
	}
	between(1)
	one, orphan, err := abandoned("")
	if err != nil {
		return err
	}
	if _, err := one.Stop(context.Background()); err != nil {
		return err
	}
	if p.look(); p.Strangers() != 0 || ours.isQuiet() {
		return fmt.Errorf("%d strangers are judged, quiet: %v", p.Strangers(), ours.isQuiet())
	}
	between(-1)
	if p.look(); p.Strangers() != 1 {
		return fmt.Errorf("%d strangers", p.Strangers())
	}
	return within("the orphan is ended", func() bool { return !orphan.runs() })
}

func notedEarly(p *Parent) error {
	one, _, helper, err := wrapped("", "escapes")
	if err != nil {
		return err
	}
	p.look()
	other, _, _, err := wrapped("", "stays") // began after the helper, so it is no suspect, and lives on
	if err != nil {
		return err
	}
	member{one.PID(), one.Group().Start}.signal(syscall.SIGKILL)
	<-one.Exited()
	if !helper.runs() {
		return errors.New("the helper went with its parent: the test shows nothing")
	}
	if r, err := one.Stop(context.Background()); err != nil || helper.runs() {
		return fmt.Errorf("the helper lives on: %+v, %w", r, err)
	}
	_, err = other.Stop(context.Background())
	return err
}

var sleeper *exec.Cmd // of the program that this process was before

func leftAlone(p *Parent) error {
	one, orphan, err := abandoned("")
	if err != nil {
		return err
	}
	_, marked, err := abandoned("TOKEN=one")
	if err != nil {
		return err
	}
	for _, child := range ours.processes() {
		if _, err := child.Stop(context.Background()); err != nil {
			return err
		}
	}
	p.look()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = p.Close(ctx)
	if _, known := ours.others()[member{sleeper.Process.Pid, startOf(sleeper.Process.Pid)}]; !known || !runs(sleeper.Process.Pid) || !orphan.runs() {
		err = errors.Join(err, fmt.Errorf("one of before is known: %v, lives: %v; an orphan that may be its lives: %v", known, runs(sleeper.Process.Pid), orphan.runs()))
	}
	if marked.runs() || runs(one.PID()) {
		err = errors.Join(err, errors.New("an orphan that is known by its mark lives on"))
	}
	orphan.signal(syscall.SIGKILL)
	_ = sleeper.Process.Kill()
	if state, bad := sleeper.Process.Wait(); bad != nil || state.ExitCode() != -1 {
		err = errors.Join(err, fmt.Errorf("who was there before: %v, %w", state, bad))
	}
	return err
}

func startOf(pid int) uint64 {
	s, _ := readStat(pid)
	return s.start
}

func endedAtClose(p *Parent) error {
	one, orphan, err := abandoned("")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Close(ctx); err != nil || orphan.runs() {
		return fmt.Errorf("it lives on after the close, %w", err)
	}
	_, err = one.Stop(context.Background())
	return err
}

func summedUp(p *Parent) error {
	if total := Totals()["kind"]; total != (Total{}) {
		return fmt.Errorf("before anything ran: %+v", total)
	}
	one, _, _, err := wrapped("", "escapes")
	if err != nil {
		return err
	}
	p.look()
	total := Totals()["kind"]
	if total.Children != 1 || total.Processes != 2 || total.RSS < 1<<20 || total.Usage != one.Usage() {
		return fmt.Errorf("%+v, the child %+v", total, one.Usage())
	}
	if _, err := one.Stop(context.Background()); err != nil {
		return err
	}
	after := Totals()["kind"]
	if after.Children != 0 || after.Processes != 0 || after.RSS != 0 || after.CPU < total.CPU {
		return fmt.Errorf("after its end: %+v, before: %+v", after, total)
	}
	return nil
}
