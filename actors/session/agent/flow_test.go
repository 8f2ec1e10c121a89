package agent

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
	"github.com/acpod/acpod/runtime/process"
)

func guardian(t *testing.T) *process.Guardian {
	t.Helper()
	g, err := process.StartGuardian(process.GuardianOptions{Command: roleOf("guardian"), Env: []string{"GORACE=atexit_sleep_ms=0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kerneltest.Deadline)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// take takes n updates without giving anything back.
func (b *bench) take(n int) []Update {
	b.t.Helper()
	var got []Update
	for len(got) < n {
		m := b.raw()
		u, ok := m.(Update)
		if !ok {
			b.t.Fatalf("%T instead of an update", m)
		}
		got = append(got, u)
	}
	return got
}

// still waits until the reader stands: what it has taken does not grow for a while.
func (b *bench) still(r Ready) (lines int, bytes int64) {
	b.t.Helper()
	lines, bytes = r.Credits.Taken()
	same := 0
	kerneltest.Eventually(b.t, "the reader stands", func() bool {
		l, n := r.Credits.Taken()
		if same++; l != lines {
			lines, bytes, same = l, n, 0
		}
		return lines > 0 && same > 100
	})
	return lines, bytes
}

func TestTheReaderWaitsForCredits(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	ticket := b.ask("late", "1000") // short lines: their number is the bound
	if lines, _ := b.still(r); lines != CreditLines {
		t.Fatalf("%d lines are out", lines)
	}
	got := b.take(CreditLines)
	if n := b.probe.Pending(); n != 0 {
		t.Fatalf("%d more came", n)
	}
	giveBack(got[0])
	giveBack(got[0]) // a credit counts once
	if got = append(got, b.take(1)...); b.probe.Pending() != 0 {
		t.Error("one credit let more than one line pass")
	}
	r.Credits.Open()
	got = append(got, b.take(1000-len(got))...)
	if m, ok := b.raw().(kernel.Answer); !ok || m.Ticket != ticket {
		t.Errorf("then came %+v", m)
	} else {
		giveBack(m)
	}
	for _, u := range got {
		giveBack(u)
	}
	if lines, bytes := r.Credits.Taken(); lines != 0 || bytes != 0 {
		t.Errorf("%d lines with %d bytes are out at rest", lines, bytes)
	}
	r.Credits.Shut()
	b.ask("late", "1000")
	if lines, _ := b.still(r); lines != CreditLines {
		t.Errorf("after Shut %d lines are out", lines)
	}
	r.Credits.Open()
}

func TestTheReaderWaitsForCreditsInBytes(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	ticket := b.ask("wide", "1000")
	lines, bytes := b.still(r)
	if bytes > CreditBytes || bytes < CreditBytes-(9<<10) || lines >= CreditLines {
		t.Errorf("%d lines with %d bytes are out", lines, bytes)
	}
	before, _ := b.answer(ticket)
	if len(b.texts(before)) != 1000 {
		t.Errorf("%d updates came", len(before))
	}
}

func TestALongLinePassesAlone(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	first := b.ask("long-update", strconv.Itoa(3<<20))
	second := b.ask("long-update", strconv.Itoa(3<<20))
	u := b.take(1)[0]
	if m := b.raw().(kernel.Answer); m.Ticket != first {
		t.Fatalf("then came %+v", m)
	} else {
		giveBack(m)
	}
	if lines, bytes := b.still(r); lines != 1 || bytes < 3<<20 {
		t.Errorf("%d lines with %d bytes are out", lines, bytes)
	}
	giveBack(u)
	if before, _ := b.answer(second); len(b.texts(before)) != 1 {
		t.Errorf("then came %v", before)
	}
}

func TestAStopWaitsForNoCredit(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	b.ask("late", "600")
	b.still(r)
	b.agent.Stop(nil)
	b.ended()
	n := len(b.texts(b.rest()))
	if n != 600 {
		t.Errorf("%d of the last words came", n)
	}
}

func TestBackPressureReachesThePipe(t *testing.T) {
	const limit = 3 << 20
	b := launchIn(t, kernel.Options{}, limit, "good", nil)
	r := b.ready()
	r.Credits.Open() // so that only the account bounds
	ticket := b.ask("flood", "8000")
	var held []Update
	for used := int64(0); used < limit*8/10; used = b.owner.Account().Used() {
		if m, ok := b.raw().(Update); ok {
			held = append(held, m)
		}
	}
	if b.owner.Account().Used() > limit {
		t.Error("the account is over its limit")
	}
	for _, u := range held {
		giveBack(u)
	}
	before, a := b.answer(ticket)
	if n := len(held) + len(b.texts(before)); a.Err != nil || n != 8000 {
		t.Errorf("%d updates came, %v", n, a.Err)
	}
}

func TestEveryLineIsPaidFor(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 8<<20, "good", nil)
	b.ready()
	b.ask("long-update", strconv.Itoa(1<<20))
	u := b.take(1)[0]
	if u.Held.Size() < 1<<20 || b.owner.Account().Used() < u.Held.Size() {
		t.Errorf("the lease has %d bytes, the account %d", u.Held.Size(), b.owner.Account().Used())
	}
	giveBack(u)
}

func TestLearnAsksOnceAndLeavesNothing(t *testing.T) {
	g := guardian(t)
	cfg := func(role string) Config {
		return Config{Command: roleOf(role), Env: []string{"GORACE=atexit_sleep_ms=0"}, Guardian: g, StopGrace: 5 * time.Second, StartTimeout: kerneltest.Deadline}
	}
	for _, role := range []string{"good", "noisy", "obstinate"} {
		c := cfg(role)
		if role == "obstinate" {
			c.StopGrace = 100 * time.Millisecond
		}
		info, err := Learn(t.Context(), c)
		if err != nil || info.Name != "fake" {
			t.Errorf("%s: %+v, %v", role, info, err)
		}
	}
	for _, role := range []string{"crash-before", "version-2", "refuses"} {
		_, err := Learn(t.Context(), cfg(role))
		if _, ok := errors.AsType[*StartError](err); !ok {
			t.Errorf("%s: %v", role, err)
		}
	}
	if _, err := Learn(t.Context(), Config{Command: []string{"/nothing"}}); err == nil {
		t.Error("nothing was learned from")
	}
	slow := cfg("silent")
	slow.StartTimeout = 200 * time.Millisecond
	if _, err := Learn(t.Context(), slow); err == nil || errors.As(err, new(*Exited)) {
		t.Errorf("a silent one: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	if _, err := Learn(ctx, cfg("silent")); !errors.Is(err, gaveUp) {
		t.Errorf("a caller that gave up: %v", err)
	}
	if groups := g.Groups(); len(groups) != 0 {
		t.Errorf("left: %v", groups)
	}
}
