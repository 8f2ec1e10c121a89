package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// A line that is no UTF-8 needs three times its room to be mended. Without it, whoever waits for the line is told.
func TestALineForWhoseMendingThereIsNoRoomIsToldOf(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 3<<20, "good", func(c *Config) { c.LineWait = 200 * time.Millisecond })
	b.ready()

	first := b.ask("long-not-utf8", `"response"`)
	before, _ := b.answer(b.ask("echo", "7")) // stands behind it on the wire
	told := false
	for _, m := range before {
		if a, ok := m.(kernel.Answer); ok && a.Ticket == first {
			_, told = errors.AsType[*kernel.Overloaded](a.Err)
		}
	}
	if !told {
		t.Fatalf("the request is not told that there was no room for its answer; before the next came %+v", before)
	}

	before, a := b.answer(b.ask("long-not-utf8", `"update"`))
	if len(before) != 1 || a.Err != nil {
		t.Fatalf("before its answer (%v) came %+v", a.Err, before)
	}
	if s, ok := before[0].(Skipped); !ok || s.Bytes < 1<<20 {
		t.Errorf("of the update came %+v", before[0])
	}

	before, a = b.answer(b.ask("long-not-utf8", `"request"`))
	if texts := b.texts(before); a.Err != nil || len(texts) != 1 || !strings.HasPrefix(texts[0], `answer "q" {"code":-32000`) {
		t.Errorf("the agent's question was answered %q, %v", texts, a.Err)
	}
	if n := b.refused(ScopeLong); n != 3 {
		t.Errorf("%d lines are counted", n)
	}
}
