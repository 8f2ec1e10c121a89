package store

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/acpod/acpod/actors/session"
)

// writerEnv makes this test program the writer that is killed: "<folder> <seed> <step at which it kills itself, or 0>".
const writerEnv = "ACPOD_STORE_WRITER"

// versionOf is a record as it is after so many changes.
func versionOf(id string, v int) session.Durable {
	d := durable(v)
	d.ID, d.Servers = id, []string{"katashiro", strings.Repeat("s", v%7*900)}
	return d
}

func versionIn(d session.Durable) int { return int(d.Updated.Sub(start) / time.Second) }

// writer opens the store and creates, takes, puts, releases and deletes records until it is killed. Each operation is told on stdout before it
// begins and after it was acknowledged: "begin <id> <version, 0 = no record>" and "done <id>".
func writer(spec string) {
	var dir string
	var seed, last uint64
	if _, err := fmt.Sscan(spec, &dir, &seed, &last); err != nil {
		panic(err)
	}
	var steps atomic.Uint64
	s, err := Open(dir, Options{at: func(point) error {
		if steps.Add(1) == last {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	if err != nil {
		panic(err)
	}
	known, err := s.List(context.Background(), "laptop", anna, 1000)
	if err != nil {
		panic(err)
	}
	const loops = 6
	var all sync.WaitGroup
	for n := range loops {
		var mine []*kept
		for i, d := range known {
			if i%loops == n {
				mine = append(mine, &kept{id: d.ID, v: versionIn(d)})
			}
		}
		all.Go(func() { churn(s, rand.New(rand.NewPCG(seed, uint64(n))), fmt.Sprintf("%d-%d", seed, n), mine) })
	}
	all.Wait()
}

// kept is a record as its writer has it.
type kept struct {
	id    string
	v     int
	lease session.Lease // zero = nobody has it
}

func churn(s *Files, dice *rand.Rand, prefix string, mine []*kept) {
	do := func(id string, v int, err func() error) {
		_, _ = fmt.Fprintf(os.Stdout, "begin %s %d\n", id, v)
		if err := err(); err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(os.Stdout, "done %s\n", id)
	}
	ctx := context.Background()
	for n := 0; ; n++ {
		if len(mine) < 3 {
			k := &kept{id: fmt.Sprintf("sess_%s-%d", prefix, n), v: 1}
			do(k.id, 1, func() (err error) { k.lease, err = s.Create(ctx, versionOf(k.id, 1)); return err })
			mine = append(mine, k)
			continue
		}
		i := dice.IntN(len(mine))
		k := mine[i]
		if k.lease == (session.Lease{}) {
			do(k.id, k.v, func() (err error) { _, k.lease, err = s.Take(ctx, k.id); return err })
			continue
		}
		switch v := k.v + 1; dice.IntN(5) {
		case 0:
			do(k.id, 0, func() error { return s.Delete(ctx, k.lease) })
			mine = append(mine[:i], mine[i+1:]...)
		case 1:
			do(k.id, v, func() error { return s.Release(ctx, k.lease, versionOf(k.id, v)) })
			k.v, k.lease = v, session.Lease{}
		default:
			do(k.id, v, func() error { return s.Put(ctx, k.lease, versionOf(k.id, v)) })
			k.v = v
		}
	}
}

// told is what the writer said of one record: the version that was acknowledged, and the one that was under way.
type told struct {
	acknowledged, underWay int // 0 = no record
	open                   bool
}

func TestAWriterThatIsKilledLosesAndTearsNothing(t *testing.T) {
	dir, book := t.TempDir(), map[string]*told{}
	acknowledged := 0
	for seed := range uint64(50) {
		acknowledged += killOne(t, dir, seed, book)
		verify(t, dir, seed, book)
		if t.Failed() {
			return
		}
	}
	if acknowledged < 500 {
		t.Errorf("only %d operations were acknowledged: the moments are too early", acknowledged)
	}
}

// killOne runs one writer until its moment: a step of a change that it is killed at, or so many acknowledgements and some microseconds.
func killOne(t *testing.T, dir string, seed uint64, book map[string]*told) (acknowledged int) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 50))
	step, acks, pause := 0, 1+dice.IntN(60), time.Duration(dice.IntN(2000))*time.Microsecond
	if seed%2 == 0 {
		step = 1 + dice.IntN(300)
	}
	writer := exec.Command(os.Args[0], "-test.run=^$")
	writer.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", writerEnv, dir, seed, step))
	writer.Stderr = os.Stderr
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = writer.Process.Kill() }
	overdue := time.AfterFunc(time.Minute, kill)
	defer overdue.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !hear(t, book, lines.Text()) {
			continue
		}
		if acknowledged++; step == 0 && acknowledged == acks {
			defer time.AfterFunc(pause, kill).Stop()
		}
	}
	_ = writer.Wait()
	if status, ok := writer.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("seed %d: the writer ended by itself: %v", seed, writer.ProcessState)
	}
	return acknowledged
}

func hear(t *testing.T, book map[string]*told, line string) (done bool) {
	t.Helper()
	part := strings.Fields(line)
	if len(part) < 2 {
		t.Fatalf("%q", line)
	}
	of := book[part[1]]
	if of == nil {
		of = &told{}
		book[part[1]] = of
	}
	if part[0] == "done" {
		of.acknowledged, of.open = of.underWay, false
		return true
	}
	v, err := strconv.Atoi(part[2])
	if err != nil {
		t.Fatal(err)
	}
	of.underWay, of.open = v, true
	return false
}

// verify opens the folder as the next pod does, and compares it with what the writers said.
func verify(t *testing.T, dir string, seed uint64, book map[string]*told) {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if left := append(inFolder(t, dir, "*"+tempSuffix), inFolder(t, dir, "*"+aside+"*")...); len(left) > 0 {
		t.Errorf("seed %d: left behind: %q", seed, left)
	}
	list, err := s.List(t.Context(), "laptop", anna, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range list {
		of := book[d.ID]
		if of == nil {
			t.Errorf("seed %d: %s: nobody wrote it", seed, d.ID)
			continue
		}
		found[d.ID] = true
		v := versionIn(d)
		if diff := gocmp.Diff(versionOf(d.ID, v), d); diff != "" || v == 0 {
			t.Errorf("seed %d: %s is torn: %s", seed, d.ID, diff)
		}
		if v != of.acknowledged && (!of.open || v != of.underWay) {
			t.Errorf("seed %d: %s: version %d, acknowledged was %d", seed, d.ID, v, of.acknowledged)
		}
		of.acknowledged, of.open = v, false
		if _, _, err := s.Take(t.Context(), d.ID); err != nil {
			t.Errorf("seed %d: the lease of %s is not free: %v", seed, d.ID, err)
		}
	}
	for id, of := range book {
		if found[id] {
			continue
		}
		if removing := of.open && of.underWay == 0; of.acknowledged != 0 && !removing {
			t.Errorf("seed %d: %s is lost, version %d was acknowledged", seed, id, cmp.Or(of.acknowledged, of.underWay))
		}
		delete(book, id)
	}
}
