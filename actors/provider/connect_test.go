package provider

import (
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
)

func TestNothingIsConnectedBeforeItIsUsed(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	play(t, with(s), func(w *world) {
		w.pass(time.Hour)
		if s.dials() != 0 || w.state() != capability.Idle {
			t.Fatalf("%d connections, %v", s.dials(), w.state())
		}
		o := w.call("buy")
		if o.err != nil || o.result != `{"content":[],"called":"buy"}` {
			t.Fatalf("%+v", o)
		}
		if w.state() != capability.Ready || len(w.tools().List.All()) != 1 || s.dials() != 1 {
			t.Errorf("%v, %d connections", w.state(), s.dials())
		}
		call := s.last().heard("tools/call")[0]
		if want := `{"name":"buy","_meta":{"progressToken":3},"arguments":{"n":1}}`; call.params != want {
			t.Errorf("sent %s, want %s", call.params, want)
		}
		if got := s.last().heard("initialize")[0].params; got != `{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"acpod","version":"dev"}}` {
			t.Errorf("initialize %s", got)
		}
	})
}
