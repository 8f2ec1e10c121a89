package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// fill takes all room that is left, and gives it back.
func fill(t *testing.T, a *kernel.Account) (free func()) {
	t.Helper()
	lease, err := a.Acquire(a.Limit() - a.Used())
	if err != nil {
		t.Fatal(err)
	}
	return lease.Release
}

func TestAMessageWaitsForRoomInTheMailboxAndNotForEver(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	cfg := with(s)
	cfg.Bytes = 64 << 10
	play(t, cfg, func(w *world) {
		answer := func(m said) {
			raw := jsonrpc.AppendResult(nil, m.id, []byte(`{"content":[]}`))
			frame, _ := jsonrpc.Scan(raw)
			lease, err := s.last().to.Account().Acquire(int64(len(raw)))
			if err != nil {
				t.Error(err)
			}
			free := fill(t, s.last().to.Account())
			go s.last().to.Message(raw, frame, jsonrpc.ID{}, lease)
			w.pass(2 * time.Second)
			time.AfterFunc(time.Second, free)
		}
		a := w.call("buy")
		answer(s.heard("tools/call")[0])
		w.pass(500 * time.Millisecond)
		if a.ended {
			t.Error("it did not wait")
		}
		w.pass(time.Second)
		if !a.ended || a.err != nil || a.result != `{"content":[]}` {
			t.Errorf("%+v", a)
		}

		b := w.call("buy")
		raw := jsonrpc.AppendResult(nil, s.heard("tools/call")[1].id, []byte(`{"content":[]}`))
		frame, _ := jsonrpc.Scan(raw)
		lease, err := s.last().to.Account().Acquire(int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		free := fill(t, s.last().to.Account())
		go s.last().to.Message(raw, frame, jsonrpc.ID{}, lease)
		w.pass(roomTimeout)
		full, ok := errors.AsType[*kernel.Overloaded](b.err)
		if !ok || full.Scope != Scope || w.refused("undelivered") != 1 {
			t.Errorf("%+v", b)
		}
		free()
	})
}

func TestACallForWhichThereIsNoRoomIsRefused(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	cfg := with(s)
	cfg.Bytes = 64 << 10
	play(t, cfg, func(w *world) {
		w.discover()
		account := s.last().to.Account()
		lease, err := account.Acquire(account.Limit() - account.Used() - callBytes/2)
		if err != nil {
			t.Fatal(err)
		}
		full, is := errors.AsType[*kernel.Overloaded](unsent(t, w.call("buy")))
		if !is || full.Scope != Scope {
			t.Errorf("%v", full)
		}
		lease.Release()
		if o := w.call("buy"); o.err != nil {
			t.Error(o.err)
		}
	})
}

func TestAFaultOfOurOwnEndsTheConnectionAndAnswersEverybody(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	cfg := with(s)
	cfg.Set.MaxConnected = 1
	play(t, cfg, func(w *world) {
		a := w.call("buy")
		b := w.call("buy", func(c *capability.Call) { c.Progress = func([]byte) { panic("a fault") } })
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4,"progress":1}}`)
		w.pass(time.Minute)
		for _, o := range []*outcome{a, b} {
			var unsent *capability.NotSent
			if o.ends != 1 || o.err == nil || errors.As(o.err, &unsent) {
				t.Errorf("%+v", o)
			}
		}
		if s.running() != 0 || w.node("shop").Gen == 0 || w.k.Account().Used() != 0 {
			t.Errorf("%d connections, %d bytes", s.running(), w.k.Account().Used())
		}
		s.set(func() { s.answer = ok })
		if o := w.call("buy"); o.err != nil || s.dials() != 2 {
			t.Errorf("%v", o.err)
		}
	})
}

func TestAChangeOfWhichTheNewsFoundNoRoomIsSeen(t *testing.T) {
	s := newFakeServer("buy")
	cfg := with(s)
	cfg.Bytes = 64 << 10
	play(t, cfg, func(w *world) {
		w.discover()
		s.set(func() { s.tools += `,{"name":"sell"}` })
		raw := jsonrpc.AppendNotification(nil, "notifications/tools/list_changed", nil)
		frame, _ := jsonrpc.Scan(raw)
		lease, err := s.last().to.Account().Acquire(int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(roomTimeout+time.Second/2, fill(t, s.last().to.Account()))
		go s.last().to.Message(raw, frame, jsonrpc.ID{}, lease)
		w.pass(time.Minute)
		if n := len(w.tools().List.All()); n != 2 || w.refused("undelivered") != 1 {
			t.Errorf("%d tools, %d undelivered", n, w.refused("undelivered"))
		}
	})
}
