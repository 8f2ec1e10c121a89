package capability

import (
	"context"
	"testing"
	"testing/synctest"
)

// A slow caller holds what is its session's, and nothing that all sessions have in common.
func TestAResultIsPaidByTheSessionThatGetsIt(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("buy"))
		type end struct {
			d   *Delivery
			err error
		}
		ends := make(chan end, 1)
		go func() {
			d, err := Execute(context.Background(), w.caller, Request{Name: "buy"})
			ends <- end{d, err}
		}()
		_, q := s.next(t)
		providers := w.k.Account().Child("provider_bytes", 1<<20)
		raw := []byte(`{"content":[]}`)
		lease, err := providers.Acquire(int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		q.Answer(Result{Raw: raw}, lease)
		synctest.Wait()
		got := <-ends
		if got.err != nil {
			t.Fatal(got.err)
		}
		if providers.Used() != 0 || lease.Size() != int64(len(raw)) {
			t.Errorf("%d bytes of a result that its caller has are the providers', %d are paid for", providers.Used(), lease.Size())
		}
		got.d.Done()
	})
}
