package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// speaker is an outbox and an agent that fills it.
type speaker struct {
	outbox
	t       *testing.T
	credits *agent.Credits
	client  *narrow
}

func newSpeaker(t *testing.T, limit, spare int64) *speaker {
	s := &speaker{t: t, credits: agent.NewCredits(), client: &narrow{}}
	s.outbox = outbox{session: testID, account: kernel.NewAccount("session_bytes", limit), spare: spare, wake: func() {}, refused: func(string) {}, client: s.client}
	return s
}

func (s *speaker) say(update string, w weight) {
	s.t.Helper()
	frame := updateFrame(update)
	lease, err := s.account.Acquire(int64(cap(frame)) + itemBytes)
	if err != nil {
		s.t.Fatalf("the agent's line found no room: %v", err)
	}
	credit, err := s.credits.Take(canceled(), len(frame)) // it does not wait
	if err != nil {
		s.t.Fatal(err)
	}
	s.push(newUpdate(frame, lease, credit, w))
}

// heard lets the client read all.
func (s *speaker) heard() []string {
	s.client.room = 1
	for s.flush(); len(s.client.queue) > 0; s.flush() {
		s.client.write()
	}
	said := s.client.written
	s.client.written, s.client.room = nil, 0
	return said
}

func (s *speaker) rest() {
	s.t.Helper()
	if lines, bytes := s.credits.Taken(); lines != 0 || bytes != 0 || s.account.Used() != 0 || s.bytes != 0 || len(s.queue) != 0 {
		s.t.Errorf("at rest %d lines, %d bytes are out, %d paid for, %d items", lines, bytes, s.account.Used(), len(s.queue))
	}
}

// image is an update that becomes one with no other, of about n bytes.
func image(i, n int) string {
	return fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"%d%s"}}`, i, strings.Repeat("A", n))
}

// What became one gives its lines back, and so the agent writes on; its bytes it gives back only when it has left.
func TestTextThatBecomesOneTakesOneLine(t *testing.T) {
	s := newSpeaker(t, 32<<20, 16<<20)
	bytes := int64(0)
	for range 2 * agent.CreditLines {
		update := chunk(acp.UpdateAgentMessage, "", "twenty characters ..")
		bytes += int64(len(updateFrame(update)))
		s.say(update, plain)
	}
	if lines, n := s.credits.Taken(); lines != 1 || n != bytes {
		t.Errorf("%d lines with %d bytes are out, want 1 with %d", lines, n, bytes)
	}
	if got := s.heard(); len(got) != 1 {
		t.Errorf("the client got %d frames", len(got))
	}
	s.rest()
}

// After a cancel the agent does not wait. For a client that is there nothing is dropped while the account has room, and what
// stays free is enough for the agent's longest line.
func TestAfterACancelNothingIsDroppedWhileThereIsRoom(t *testing.T) {
	const limit, spare = 4 << 20, 2 << 20
	s := newSpeaker(t, limit, spare)
	s.open = true
	s.credits.Open()
	for i := 0; s.account.Used() < limit-spare-3000; i++ { // in many more than 256 frames, and more than 1 MiB
		s.say(image(i, 2000), plain)
	}
	n := len(s.queue)
	if s.missed != 0 || n < agent.CreditLines || s.bytes < agent.CreditBytes {
		t.Fatalf("%d are kept, %d missed", n, s.missed)
	}
	for i := range 10 {
		s.say(image(1e6+i, 2000), plain)
		if s.account.Used() > limit-spare {
			t.Fatalf("%d bytes are left for the agent's next line", limit-s.account.Used())
		}
	}
	got := s.heard()
	if !strings.Contains(got[0], `"method":"_acpod/dropped"`) || !strings.Contains(got[0], `"scope":"session_bytes"`) {
		t.Fatalf("the client is told %q", got[0])
	}
	lost := 0
	if _, err := fmt.Sscanf(got[0][strings.Index(got[0], `"updates":`):], `"updates":%d,`, &lost); err != nil || lost+len(got)-1 != n+10 {
		t.Errorf("%d frames came and %d are told of, of %d", len(got)-1, lost, n+10)
	}
	if !strings.Contains(got[len(got)-1], "1000009") || strings.Contains(strings.Join(got[1:], ""), `"_acpod/dropped"`) {
		t.Error("the last words are not there, or the gap is told twice")
	}
	if s.missed != 0 {
		t.Errorf("%d of what it was told of are told again", s.missed)
	}
	s.rest()
}

// A gap stands where something is missing; the ends of tool calls before it stay.
func TestAGapIsToldInItsPlace(t *testing.T) {
	s := newSpeaker(t, 32<<10, 16<<10)
	s.open = true
	s.credits.Open()
	s.say(`{"sessionUpdate":"tool_call_update","toolCallId":"first","status":"completed"}`, terminal)
	for i := range 3 {
		s.say(image(i, 4000), plain)
	}
	s.say(`{"sessionUpdate":"tool_call_update","toolCallId":"second","status":"completed"}`, terminal)
	s.say(image(3, 4000), plain)
	s.say(image(4, 4000), plain)
	var order []string
	for _, frame := range s.heard() {
		for _, word := range []string{"first", "second", methodDropped, `"3A`, `"4A`} {
			if strings.Contains(frame, word) {
				order = append(order, word)
			}
		}
	}
	if want := []string{"first", methodDropped, "second", `"3A`, `"4A`}; !slices.Equal(order, want) {
		t.Errorf("the client got %q, want %q", order, want)
	}
	s.rest()
}

// A client that is lost before it read of a gap leaves that to the account of the next.
func TestAGapThatNobodyReadCountsAsMissed(t *testing.T) {
	s := newSpeaker(t, 32<<20, 16<<20)
	s.skip(gap{updates: 1, bytes: 5000, scope: "agent_line_bytes"})
	s.client.room = 1
	s.flush()
	for _, way := range []string{"on its way", "queued"} {
		for _, q := range s.client.queue {
			q.lease.Release()
			q.done(false)
		}
		s.client.queue = nil
		s.detach(true)
		if s.missed != 1 || s.missedBytes != 5000 || len(s.queue) != 0 {
			t.Errorf("%s: %d updates, %d bytes missed, %d kept", way, s.missed, s.missedBytes, len(s.queue))
		}
		s.missed, s.missedBytes, s.outbox.client, s.client.room = 0, 0, s.client, 0
		s.skip(gap{updates: 1, bytes: 5000, scope: "agent_line_bytes"})
	}
	s.heard()
	s.outbox.client = nil
	s.skip(gap{updates: 1, bytes: 7, scope: "agent_line_bytes"})
	if s.missed != 1 || s.missedBytes != 7 {
		t.Errorf("without a client: %d updates, %d bytes", s.missed, s.missedBytes)
	}
	s.rest()
}

// For a client that is away text becomes one before anything is dropped, and only then: what fits is kept as it came.
func TestTextIsPutTogetherBeforeItIsDropped(t *testing.T) {
	s := newSpeaker(t, 32<<20, 16<<20)
	s.detach(true)
	for i := range keptFrames {
		s.say(chunk(acp.UpdateAgentMessage, "", fmt.Sprint(i, ",")), plain)
	}
	if len(s.queue) != keptFrames {
		t.Fatalf("%d frames are kept of %d that fit", len(s.queue), keptFrames)
	}
	for i := range 3 * keptFrames {
		s.say(chunk(acp.UpdateAgentMessage, "", fmt.Sprint(keptFrames+i, ",")), plain)
	}
	if s.missed != 0 || len(s.queue) > keptFrames {
		t.Fatalf("%d missed, %d frames", s.missed, len(s.queue))
	}
	want := ""
	for i := range 4 * keptFrames {
		want += fmt.Sprint(i, ",")
	}
	s.attach(s.client)
	if got, _ := told(t, s.heard()); len(got) != 1 || got[0] != "agent_message_chunk : "+want {
		t.Errorf("%d runs of words: %.300q", len(got), got)
	}
	s.rest()
}

// … and what is dropped then is counted as what it was: updates and their bytes, not frames that were put together.
func TestWhatIsDroppedIsCountedAsItWasSaid(t *testing.T) {
	for _, test := range []struct {
		size   int
		n      int64
		merged bool
	}{{1000, 3000, false}, {20, 100_000, true}} {
		s := newSpeaker(t, 32<<20, 16<<20)
		s.detach(true)
		text := strings.Repeat("#", test.size)
		update := chunk(acp.UpdateAgentMessage, "", text)
		each := int64(len(updateFrame(update)))
		for range test.n {
			s.say(update, plain)
		}
		s.attach(s.client)
		got := s.heard()
		kept := int64(strings.Count(strings.Join(got, ""), "#") / test.size)
		if s.missed == 0 || s.missed != test.n-kept || s.missedBytes != each*(test.n-kept) || (int64(len(got)) < kept) != test.merged {
			t.Errorf("%d of %d were kept in %d frames, %d updates with %d bytes are missed", kept, test.n, len(got), s.missed, s.missedBytes)
		}
		if test.merged && kept*int64(test.size) < keptBytes/2 || !test.merged && kept*each < keptBytes-each {
			t.Errorf("only %d of %d bytes are kept", kept, test.n)
		}
		s.missed = 0
		s.rest()
	}
}

// News of the pod's own that a slow client does not read are not kept without end; the latest is the one that counts.
func TestNewsForASlowClientAreBounded(t *testing.T) {
	s := newSpeaker(t, 32<<20, 16<<20)
	for i := range 5 * newsFrames {
		lease, _ := s.account.Acquire(100)
		s.push(newFrame(methodFrame(acp.MethodServers, testID, fmt.Appendf(nil, `,"n":%d}`, i)), lease, fleeting))
	}
	got := s.heard()
	if len(got) != newsFrames || !strings.Contains(got[len(got)-1], fmt.Sprint(`"n":`, 5*newsFrames-1)) || s.missed != 0 {
		t.Errorf("%d news came, the last %s", len(got), got[len(got)-1])
	}
	s.rest()
}

// What was being written when its socket broke was not read by anybody, unless it was all of it: it is said again, first.
func TestWhatWasBeingWrittenIsKeptOnceItIsKnownNotToHaveLeft(t *testing.T) {
	for _, test := range []struct {
		name   string
		fate   []bool // of the frame, once it is known
		kept   []string
		missed int64
	}{
		{"it did not leave", []bool{false}, []string{"0A", "1A", "2A"}, 0},
		{"it left", []bool{true}, []string{"1A", "2A"}, 0},
		{"nobody knows when the next client comes", nil, []string{"1A", "2A"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSpeaker(t, 32<<20, 16<<20)
			s.client.room = 2
			s.say(image(0, 100), plain)
			s.say(image(1, 100), plain)
			writing, queued := s.client.queue[0], s.client.queue[1]
			s.client.queue = nil
			queued.lease.Release()
			queued.done(false)
			s.detach(true)
			s.say(image(2, 100), plain)
			for _, written := range test.fate {
				writing.done(written)
			}
			writing.lease.Release()
			s.resolve(true)
			if s.missed != test.missed {
				t.Errorf("%d missed, want %d", s.missed, test.missed)
			}
			s.attach(s.client)
			got := s.heard()
			for i, want := range test.kept {
				if i >= len(got) || len(got) != len(test.kept) || !strings.Contains(got[i], want) {
					t.Fatalf("the next client got %.300q, want %q", got, test.kept)
				}
			}
			if test.fate == nil {
				writing.done(false)
			}
			s.rest()
		})
	}
}
