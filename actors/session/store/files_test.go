package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestTheFolderTellsNothingAndIsForTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.MkdirAll(filepath.Join(dir, folderName), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{})
	create(t, s, durable(1))
	err := filepath.WalkDir(filepath.Join(dir, folderName), func(path string, f os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := f.Info()
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[f.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if strings.Contains(path, "00000001") {
			t.Errorf("%s shows the session", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(inFolder(t, dir, "*.json")); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestRecordsOutliveTheirPod(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	idle(t, s, durable(1))
	held := create(t, s, durable(2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	bad := (*session.RecordError)(nil)
	if err := s.Put(t.Context(), held, durable(2)); !errors.As(err, &bad) && !errors.Is(err, session.ErrLeaseLost) {
		t.Errorf("after it was closed: %v", err)
	}
	s = open(t, dir, Options{})
	if f := s.Figures(); f.Records != 2 || f.Held != 0 {
		t.Errorf("%+v", f)
	}
	for n := 1; n <= 2; n++ {
		if d, _ := take(t, s, n); cmp.Diff(durable(n), d) != "" {
			t.Errorf("%+v", d)
		}
	}
	if err := s.Put(t.Context(), held, durable(2)); !errors.Is(err, session.ErrLeaseLost) {
		t.Errorf("with the lease of the pod before: %v", err)
	}
}

func TestTwoPodsHaveARecordOneAfterTheOther(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir, Options{}), open(t, dir, Options{})
	ctx := t.Context()
	l := create(t, one, durable(1))
	held := (*session.HeldError)(nil)
	if _, _, err := two.Take(ctx, id(1)); !errors.As(err, &held) || held.Owner != one.pod.name {
		t.Fatalf("while the other has it: %v", err)
	}
	if n, err := two.Sweep(ctx, start.Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("it was swept: %d, %v", n, err)
	}
	if err := one.Release(ctx, l, durable(1)); err != nil {
		t.Fatal(err)
	}
	_, theirs := take(t, two, 1)
	if _, _, err := one.Take(ctx, id(1)); !errors.As(err, &held) {
		t.Errorf("%v", err)
	}
	// What the first one believes to hold, the second one has: somebody removed the mark of its life.
	if err := two.Release(ctx, theirs, durable(1)); err != nil {
		t.Fatal(err)
	}
	_, mine := take(t, one, 1)
	if err := os.Rename(one.pod.file.Name(), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	_, theirs = take(t, two, 1)
	if theirs.Generation <= mine.Generation {
		t.Errorf("generation %d after %d", theirs.Generation, mine.Generation)
	}
	if err := one.Put(ctx, mine, durable(1)); !errors.Is(err, session.ErrLeaseLost) {
		t.Errorf("an older lease: %v", err)
	}
	if err := two.Put(ctx, theirs, durable(1)); err != nil {
		t.Error(err)
	}
	if err := os.Rename(filepath.Join(dir, "away"), one.pod.file.Name()); err != nil {
		t.Fatal(err)
	}
}

func TestAPodSeesWhatAnotherOneWrote(t *testing.T) {
	dir := t.TempDir()
	clock := start
	one := open(t, dir, Options{Now: func() time.Time { return clock }})
	two := open(t, dir, Options{})
	idle(t, one, durable(1))
	create(t, two, durable(2))
	idle(t, two, durable(3))
	clock = clock.Add(time.Minute)
	if got := listed(t, one, "laptop", anna); got != "3 2 1" {
		t.Errorf("%q", got)
	}
	_, l := take(t, two, 1)
	if err := two.Delete(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(time.Minute)
	if got := listed(t, one, "laptop", anna); got != "3 2" {
		t.Errorf("%q", got)
	}
	if n, err := one.Sweep(t.Context(), start.Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestManyTakeOneRecordAndOneLeaseHolds(t *testing.T) {
	dir := t.TempDir()
	pods := []*Files{open(t, dir, Options{}), open(t, dir, Options{})}
	idle(t, pods[0], durable(1))
	var all sync.WaitGroup
	var mu sync.Mutex
	leases, owners := map[session.Lease]bool{}, map[string]bool{}
	for n := range 16 {
		all.Go(func() {
			_, l, err := pods[n%2].Take(t.Context(), id(1))
			held := (*session.HeldError)(nil)
			switch {
			case errors.As(err, &held), errors.Is(err, errMoved):
			case err != nil:
				t.Error(err)
			default:
				mu.Lock()
				defer mu.Unlock()
				if leases[l] {
					t.Errorf("generation %d was given twice", l.Generation)
				}
				leases[l], owners[l.Owner] = true, true
			}
		})
	}
	all.Wait()
	holding := 0
	for l := range leases {
		for _, pod := range pods {
			if pod.Put(t.Context(), l, durable(1)) == nil {
				holding++
			}
		}
	}
	if len(owners) != 1 || holding != 1 {
		t.Errorf("%d pods have it, %d leases hold", len(owners), holding)
	}
}

func TestAChangeThatCannotBeWrittenLeavesTheOldRecordWhole(t *testing.T) {
	dir := t.TempDir()
	var fails point
	var cause error
	s := open(t, dir, Options{at: func(p point) error {
		if p == fails {
			return cause
		}
		return nil
	}})
	ctx := t.Context()
	l := create(t, s, durable(1))
	idle(t, s, durable(2))
	newer := durable(1)
	newer.Agent = "another"
	for n, p := range []point{atCreate, atWrite, atSync, atRename} {
		for _, why := range []error{syscall.ENOSPC, syscall.EROFS} {
			fails, cause = p, why
			bad := (*session.RecordError)(nil)
			check := func(what string, err error) {
				if !errors.As(err, &bad) || !errors.Is(err, why) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "make room in ") {
					t.Errorf("%s, %v at %s: %v", what, why, p, err)
				}
			}
			check("put", s.Put(ctx, l, newer))
			_, err := s.Create(ctx, durable(10+n))
			check("create", err)
			_, _, err = s.Take(ctx, id(2))
			check("take", err)
			fails = ""
			if got := inFolder(t, dir, "*.tmp"); len(got) > 0 {
				t.Errorf("%v at %s leaves %q", why, p, got)
			}
			if got := listed(t, s, "laptop", anna); got != "2 1" {
				t.Errorf("%v at %s: %q", why, p, got)
			}
			if r, _, err := s.read(nameOf(id(1))); err != nil || cmp.Diff(durable(1), r.Durable) != "" {
				t.Errorf("%v at %s: %+v, %v", why, p, r, err)
			}
		}
	}
	fails, cause = atRemove, syscall.EROFS
	bad := (*session.RecordError)(nil)
	if err := s.Delete(ctx, l); !errors.As(err, &bad) || bad.Do != "remove" {
		t.Errorf("%v", err)
	}
	fails = ""
	if err := s.Put(ctx, l, newer); err != nil {
		t.Errorf("the lease is lost with the room: %v", err)
	}
	if got := s.Figures().Failed; got < 24 {
		t.Errorf("%d failures are counted", got)
	}
}

func TestWhatTheFolderDidNotSyncIsNotAcknowledged(t *testing.T) {
	var failing bool
	s := open(t, t.TempDir(), Options{at: func(p point) error {
		if failing && p == atFolder {
			return syscall.EIO
		}
		return nil
	}})
	l := create(t, s, durable(1))
	idle(t, s, durable(2))
	failing = true
	if _, err := s.Create(t.Context(), durable(3)); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	if _, _, err := s.Take(t.Context(), id(2)); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	if err := s.Put(t.Context(), l, durable(1)); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	failing = false
	if got := listed(t, s, "laptop", anna); got != "2 1" {
		t.Errorf("%q", got)
	}
	take(t, s, 2)
	if err := s.Put(t.Context(), l, durable(1)); err != nil {
		t.Error(err)
	}
	if f := s.Figures(); f.Held != 2 || f.Records != 2 {
		t.Errorf("%+v", f)
	}
}

func TestAReleaseThatCannotBeWrittenLetsGoAllTheSame(t *testing.T) {
	full := false
	s := open(t, t.TempDir(), Options{at: func(p point) error {
		if full && p == atWrite {
			return syscall.ENOSPC
		}
		return nil
	}})
	l := create(t, s, durable(1))
	full = true
	if err := s.Release(t.Context(), l, durable(1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if f := s.Figures(); f.Held != 0 {
		t.Errorf("%+v", f)
	}
	if n, err := s.Sweep(t.Context(), start.Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

// The order is what a crash of the machine is survived by.
func TestARecordIsOnTheDiskBeforeItsNameAndTheNameBeforeTheAnswer(t *testing.T) {
	var steps []string
	s := open(t, t.TempDir(), Options{at: func(p point) error { steps = append(steps, string(p)); return nil }})
	steps = nil
	l := create(t, s, durable(1))
	if got := fmt.Sprint(steps); got != "[temp write write sync rename folder done]" {
		t.Errorf("a record: %s", got)
	}
	steps = nil
	if err := s.Delete(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(steps); got != "[remove folder done]" {
		t.Errorf("the end of one: %s", got)
	}
}

func TestManyWritersShareASyncOfTheFolder(t *testing.T) {
	var mu sync.Mutex
	counts := map[point]int{}
	gate := make(chan struct{})
	s := open(t, t.TempDir(), Options{at: func(p point) error {
		mu.Lock()
		counts[p]++
		first := p == atFolder && counts[p] == 2 // after that of Open
		mu.Unlock()
		if first {
			<-gate
		}
		return nil
	}})
	const many = 12
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() { create(t, s, durable(n)) })
	}
	kerneltest.Eventually(t, "all but those of the first sync wait", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.queue)+len(s.index.byName) == many
	})
	close(gate)
	all.Wait()
	if got := counts[atFolder] - 1; got > 4 {
		t.Errorf("%d syncs of the folder for %d records", got, many)
	}
	if f := s.Figures(); f.Records != many || f.Held != many {
		t.Errorf("%+v", f)
	}
}
