package main

import (
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/prompter"
)

// A client that reads late lets its agent wait: the pod keeps little of what is said meanwhile, and all of it arrives.
func TestAnAgentWaitsForAClientThatReadsLate(t *testing.T) {
	t.Parallel()
	b := newAgentBed(t)
	s := b.session(t)
	open(t, s)
	turn := prompter.NewUnread("late", 4*time.Second)
	answer := s.Prompt(turn)
	most := s.Unread(t.Context(), turn, b.pod.Used)
	if most < 256<<10 || most > prompter.UnreadInPod {
		t.Errorf("the pod kept %d bytes of the session while its client did not read, want what is let out of the pipe, 1 MiB, and at most %d", most, prompter.UnreadInPod)
	}
	if end, err := s.Wait(t.Context(), answer); err != nil || end != "end_turn" {
		t.Fatalf("the turn ended with %q (%v)", end, err)
	}
	book := s.Heard(turn.Key, false)
	chunks, _ := turn.Chunks()
	book.End(chunks)
	book.Filled(turn.Fill())
	if wrong := book.Wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	t.Logf("at most %d bytes of %d were kept", most, turn.Fill())
	closed(t, s)
}
