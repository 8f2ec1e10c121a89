package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
)

// deaf is a server whose links take nothing, as the stdin of a child that has exited.
func deaf() (*fakeServer, Config) {
	s := newFakeServer("buy")
	cfg := with(s)
	dial := cfg.Dial
	cfg.Dial = func(r mcpjson.Resolved, modern bool) (link.Link, error) {
		l, err := dial(r, modern)
		l.(*fakeLink).busy = fmt.Errorf("%w: its stdin is closed", link.ErrUnsent)
		return l, err
	}
	return s, cfg
}

func TestAChildThatExitsAtOnceIsToldByItsExit(t *testing.T) {
	s, cfg := deaf()
	play(t, cfg, func(w *world) {
		o := w.call("buy")
		if o.ended {
			t.Fatalf("%+v: told before the end of the link", o)
		}
		s.last().die(&link.ExitError{How: "exited with code 7", Stderr: "no config"})
		w.pass(0)
		if text := unsent(t, o).Error(); !strings.Contains(text, "exited with code 7") || !strings.Contains(text, "no config") {
			t.Error(text)
		}
		if reason := w.tools().Reason; !strings.Contains(reason, "exited with code 7") || strings.ContainsAny(reason, "\n\\") {
			t.Error(reason)
		}
	})
}

func TestAServerThatTakesNothingAndLivesOnIsGivenUp(t *testing.T) {
	s, cfg := deaf()
	play(t, cfg, func(w *world) {
		o := w.call("buy")
		w.pass(lastWord - time.Millisecond)
		if o.ended {
			t.Fatalf("%+v", o)
		}
		w.pass(time.Millisecond)
		if text := unsent(t, o).Error(); !strings.Contains(text, "its stdin is closed") {
			t.Error(text)
		}
		if s.last().ctx.Err() == nil || w.state() != capability.Failed {
			t.Error("its link was left")
		}
	})
}
