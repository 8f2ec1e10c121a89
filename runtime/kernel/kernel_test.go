package kernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), kerneltest.Deadline)
	t.Cleanup(cancel)
	return ctx
}

func ended(t testing.TB, r kernel.Ref) error {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(kerneltest.Deadline):
		t.Fatalf("%s did not end", r.Path())
	}
	return r.Cause()
}

func TestAMessageArrives(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	r, p := kerneltest.Root(t, k)
	if err := r.Tell("hello"); err != nil {
		t.Fatal(err)
	}
	if m := kerneltest.Await[string](t, p); m != "hello" {
		t.Fatalf("got %q", m)
	}
}

func TestTheZeroRefAnswersStopped(t *testing.T) {
	var r kernel.Ref
	if !r.IsZero() || r.Gen() != 0 || r.Path() != "" || r.Account() != nil || !r.Current().IsZero() {
		t.Error("the zero Ref is not zero")
	}
	_, err := r.Ask(1)
	for what, err := range map[string]error{"tell": r.Tell(1), "signal": r.Signal(1), "ask": err, "cause": r.Cause()} {
		if !errors.Is(err, kernel.ErrStopped) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.Stop(nil)
	r.CountRefusal("x")
	<-r.Done()
	if r != (kernel.Ref{}) {
		t.Error("not comparable")
	}
}

func TestAQuestionIsAnsweredOnce(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	r, p := kerneltest.Root(t, k)
	pend, err := r.Ask("q")
	if err != nil {
		t.Fatal(err)
	}
	defer pend.Drop()
	_, q := kerneltest.AwaitQuestion[string](t, p)
	if !q.Answer("first", nil) || q.Answer("second", nil) || q.Fail(errors.New("third")) {
		t.Error("the first answer does not win")
	}
	m, l, err := pend.Wait(within(t))
	if m != "first" || l != nil || err != nil {
		t.Errorf("%v %v %v", m, l, err)
	}
}

func TestSynctestDrivesTheDefaultClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.Start(t, kernel.Options{})
		r, p := kerneltest.Root(t, k)
		t0 := time.Now()
		kerneltest.Do(t, r, func(c *kernel.Ctx) { c.After(10*time.Second, "late") })
		if p.Next(t); time.Since(t0) != 10*time.Second {
			t.Errorf("the timer came after %v", time.Since(t0))
		}
	})
}
