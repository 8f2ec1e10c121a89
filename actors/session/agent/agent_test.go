package agent

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestAnAgentShakesHandsAndServes(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	if r.Info.Name != "fake" || !r.Info.LoadSession || r.PID < 2 || r.Credits == nil {
		t.Errorf("ready says %+v", r)
	}
	if raw := string(r.Info.Raw); !strings.Contains(raw, `"given":{"protocolVersion":1,"clientCapabilities":{}`) || !strings.Contains(raw, `"unknown":1`) {
		t.Errorf("initialize was asked and answered with %s", raw)
	}
	if _, got := b.do("echo", `{"n":12345678901234567890,"s":"\u003c\ud800"}`); got != `{"n":12345678901234567890,"s":"\u003c\ud800"}` {
		t.Errorf("it came back as %s", got)
	}
	node := b.node()
	if node.Kind != "agent" || node.Attrs["phase"] != "ready" || node.Attrs["pid"] != r.PID || node.Attrs["agent"] != "fake" || len(node.Owes) != 1 || node.Owes[0].Name != "process group" {
		t.Errorf("the tree shows %+v", node)
	}
	if node.Attrs["version"] != `1.2\x1b` && node.Attrs["version"] != `1.2\u001b` {
		t.Errorf("the version is shown as %q", node.Attrs["version"])
	}
	stop := errors.New("enough")
	b.agent.Stop(stop)
	if cause := b.ended(); !errors.Is(cause, stop) || runs(r.PID) {
		t.Errorf("it ended with %v and runs: %v", cause, runs(r.PID))
	}
}

func TestTheEnvironmentIsTheGivenOne(t *testing.T) {
	t.Setenv("SECRET_OF_THE_POD", "s3cr3t")
	b := launch(t, "good", nil)
	b.ready()
	if _, got := b.do("env", ""); strings.Contains(got, "s3cr3t") || !strings.Contains(got, "GIVEN=yes") {
		t.Errorf("it has %s", got)
	}
}

func TestAResponseNeverOvertakesAnUpdate(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	before, _ := b.do("late", "200")
	texts := b.texts(before)
	if len(texts) != 200 {
		t.Fatalf("%d updates came before the answer", len(texts))
	}
	for i, text := range texts {
		if text != strconv.Itoa(i) {
			t.Fatalf("update %d says %q", i, text)
		}
	}
}

func TestTwoRequestsAreAnsweredEach(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	hang := b.ask("hang", "")
	if _, got := b.do("echo", `"x"`); got != `"x"` {
		t.Fatalf("the second was answered %s", got)
	}
	b.tell(Notify{Method: "session/cancel", Params: []byte(`{}`)})
	before, a := b.answer(hang)
	if a.Err != nil || string(a.Msg.(Reply).Result) != `{"stopReason":"cancelled"}` || len(b.texts(before)) != 1 {
		t.Errorf("the first was answered %+v after %v", a, before)
	}
}

func TestASplitCharacterIsNotHarmed(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	before, _ := b.do("split", "")
	if texts := b.texts(before); len(texts) != 1 || texts[0] != "züüü€😀" || b.refused(ScopeUTF8) != 0 {
		t.Errorf("it became %q", texts)
	}
}

func TestBytesThatAreNoUTF8AreReplacedAndCounted(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	before, _ := b.do("not-utf8", "")
	if texts := b.texts(before); len(texts) != 1 || texts[0] != "a\ufffd\ufffdb" || b.refused(ScopeUTF8) != 1 {
		t.Errorf("it became %q, counted %d", texts, b.refused(ScopeUTF8))
	}
}

func TestNoiseIsSkippedCountedAndLoggedBySize(t *testing.T) {
	b := launch(t, "noisy", nil)
	ready := b.ready()
	before, _ := b.do("noise", "")
	if len(before) != 0 {
		t.Errorf("noise reached the owner: %+v", before)
	}
	if n := b.refused(ScopeJunk); n != 3+9 || ready.Noise() != n {
		t.Errorf("%d lines were counted, %d as a sign of life", n, ready.Noise())
	}
	log := b.log.String()
	if !strings.Contains(log, "bytes=12") || strings.Contains(log, "hello") || strings.Contains(log, "npm") {
		t.Errorf("the log says:\n%s", log)
	}
}

func TestALineOf17MiBFailsJustItsRequest(t *testing.T) {
	for _, method := range []string{"long-result", "long-result-id-last"} {
		t.Run(method, func(t *testing.T) {
			b := launch(t, "good", nil)
			r := b.ready()
			hang := b.ask("hang", "")
			_, a := b.answer(b.ask(method, strconv.Itoa(17<<20)))
			var long *LineTooLong
			if !errors.As(a.Err, &long) || long.Limit != DefaultLineBytes || long.Bytes < 17<<20 {
				t.Fatalf("the answer is %+v", a)
			}
			if _, got := b.do("echo", "1"); got != "1" || b.refused(ScopeLong) != 1 || !runs(r.PID) {
				t.Errorf("after it: %s, %d counted", got, b.refused(ScopeLong))
			}
			b.tell(Notify{Method: "session/cancel"})
			if _, a := b.answer(hang); a.Err != nil {
				t.Errorf("another request failed: %v", a.Err)
			}
		})
	}
}

func TestALineOf15MiBPassesWhole(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 24<<20, "good", nil) // the smallest session_bytes that the config allows
	b.ready()
	before, _ := b.do("long-update", strconv.Itoa(15<<20))
	if texts := b.texts(before); len(texts) != 1 || len(texts[0]) != 15<<20 {
		t.Errorf("%d updates", len(texts))
	}
	if _, got := b.do("long-result", strconv.Itoa(15<<20)); len(got) != 15<<20+2 {
		t.Errorf("the result has %d bytes", len(got))
	}
}

func TestAnUpdateThatIsTooLongIsSkipped(t *testing.T) {
	b := launch(t, "good", func(c *Config) { c.LineBytes = 100 << 10 })
	b.ready()
	before, _ := b.do("long-update", strconv.Itoa(200<<10))
	if len(before) != 1 || b.refused(ScopeLong) != 1 {
		t.Fatalf("before the answer came %d messages, %d counted", len(before), b.refused(ScopeLong))
	}
	if m, ok := before[0].(Skipped); !ok || m.Scope != "agent_line_bytes" || m.Bytes <= 200<<10 {
		t.Errorf("its owner is told %+v", before[0])
	}
}

func TestAQuestionThatIsTooLongIsAnswered(t *testing.T) {
	b := launch(t, "good", func(c *Config) { c.LineBytes = 100 << 10 })
	b.ready()
	before, _ := b.do("long-question", strconv.Itoa(200<<10))
	texts := b.texts(before)
	if len(texts) != 1 || !strings.HasPrefix(texts[0], `answer "q" {"code":-32000`) || !strings.Contains(texts[0], `"scope":"agent_line_bytes"`) {
		t.Errorf("the agent heard %q", texts)
	}
}

func TestAnEndlessLineIsSkippedToItsEnd(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 24<<20, "good", nil)
	b.ready()
	if before, _ := b.do("endless", "64"); len(before) != 0 || b.refused(ScopeLong) != 1 {
		t.Errorf("%d messages, %d counted", len(before), b.refused(ScopeLong))
	}
}

func TestALineThatTheAccountCanNeverHoldIsSkipped(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 2<<20, "good", func(c *Config) { c.LineWait = 300 * time.Millisecond })
	b.ready()
	_, a := b.answer(b.ask("long-result", strconv.Itoa(4<<20)))
	var full *kernel.Overloaded
	if !errors.As(a.Err, &full) || full.Scope != "session_bytes" {
		t.Fatalf("the answer is %+v", a)
	}
	if _, got := b.do("echo", "1"); got != "1" || b.refused(ScopeLong) != 1 {
		t.Errorf("after it: %s", got)
	}
}

func TestAMebibyteOfStderrBlocksNobody(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	b.do("stderr", strconv.Itoa(1<<20))
	if !strings.Contains(b.log.String(), "stderr line") {
		t.Error("nothing of it is in the log")
	}
}

func TestQuestionsOfTheAgentKeepTheirIDs(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	for _, id := range []string{`0`, `"0"`, `1`, `"server-discover-probe-1"`, `null`, `-7`, `"\u00e9 \"x\""`} {
		t.Run(id, func(t *testing.T) {
			ticket := b.ask("ask", id)
			called, ok := b.next().(Called)
			if !ok || called.Method != "session/request_permission" || string(called.ID.Raw()) != id || string(called.Params) != `{"of":`+id+`}` {
				t.Fatalf("the owner got %+v", called)
			}
			b.tell(Respond{ID: called.ID, Result: []byte(`{"outcome":1}`)})
			b.tell(Respond{ID: called.ID, Result: []byte(`{"outcome":2}`)})
			before, a := b.answer(ticket)
			if texts := b.texts(before); a.Err != nil || len(texts) != 1 || texts[0] != "answer "+id+` {"outcome":1}` {
				t.Errorf("the agent heard %q", texts)
			}
			kerneltest.Eventually(t, "the second answer was dropped", func() bool { return b.refused(ScopeDuplicate) > 0 })
		})
	}
}

func TestAnErrorIsAnAnswerToo(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	ticket := b.ask("ask", `0`)
	called := b.next().(Called)
	b.tell(Respond{ID: called.ID, Err: jsonrpc.UnknownMethod(called.Method)})
	before, _ := b.answer(ticket)
	if texts := b.texts(before); len(texts) != 1 || !strings.HasPrefix(texts[0], `answer 0 {"code":-32601`) {
		t.Errorf("the agent heard %q", texts)
	}
}

func TestAQuestionWithAnOpenIDIsRefused(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	ticket := b.ask("ask-twice", "")
	called := b.next().(Called)
	before, _ := b.answer(ticket) // of the refusal
	if texts := b.texts(before); len(texts) != 1 || !strings.Contains(texts[0], "-32600") {
		t.Errorf("the agent heard %q", texts)
	}
	b.tell(Respond{ID: called.ID, Result: []byte("{}")})
	if _, got := b.do("echo", "1"); got != "1" || b.refused(ScopeDuplicate) != 0 {
		t.Errorf("%s, %d dropped", got, b.refused(ScopeDuplicate))
	}
}

func TestAnswersToNothingAreCountedAndDropped(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	before, a := b.answer(b.ask("twice", ""))
	if a.Err != nil || string(a.Msg.(Reply).Result) != "1" || len(before) != 0 {
		t.Errorf("the answer is %+v after %v", a, before)
	}
	if u, ok := b.next().(Update); !ok {
		t.Errorf("then came %+v", u)
	}
	if n := b.refused(ScopeUnknown); n != 4 {
		t.Errorf("%d were counted", n)
	}
}

func TestSpellingsOfOurIDAndOfNoErrorAreUnderstood(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	if _, got := b.do("string-id", ""); got != "true" {
		t.Errorf("a number as a string: %s", got)
	}
	if _, got := b.do("both", ""); got != `"fine"` {
		t.Errorf("error null beside a result: %s", got)
	}
}

func TestAnErrorOfTheAgentPassesAsItCame(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	_, a := b.answer(b.ask("fail", ""))
	var e *jsonrpc.Error
	if !errors.As(a.Err, &e) || e.Code != -32603 || string(e.Raw()) != `{"code":-32603, "message":"Internal service failure","data":{"big":9007199254740993}}` {
		t.Errorf("the error is %v", a.Err)
	}
	_, a = b.answer(b.ask("fail-long", strconv.Itoa(1<<20)))
	if !errors.As(a.Err, &e) || e.Code != -7 || !strings.HasPrefix(e.Message, "no") || e.Size() > wholeError {
		t.Errorf("a long error is %v", a.Err)
	}
}

func TestOtherNotificationsAreHandedOn(t *testing.T) {
	b := launch(t, "noisy", nil)
	if early, ok := b.next().(Noted); !ok || early.Method != "_auth/status_update" || string(early.Params) != `{"early":true}` {
		t.Errorf("before the handshake's end came %+v", early)
	}
	b.ready()
	before, _ := b.do("note", "")
	if len(before) != 2 || before[0].(Noted).Method != "_auth/status_update" || before[1].(Noted).Method != "_bare" || before[1].(Noted).Params != nil {
		t.Errorf("the owner got %+v", before)
	}
}

func TestAForgottenRequestIsAnsweredToNobody(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	ticket := b.ask("hang", "")
	b.do("echo", "1") // the agent has it
	kerneltest.Do(t, b.owner, func(c *kernel.Ctx) { c.Cancel(ticket) })
	b.do("echo", "1") // Cancelled came before it
	b.tell(Notify{Method: "session/cancel"})
	before, _ := b.answer(b.ask("echo", "2"))
	if len(b.texts(before)) != 1 || b.refused(ScopeUnknown) != 0 {
		t.Errorf("before the answer: %+v; %d unknown", before, b.refused(ScopeUnknown))
	}
	for _, m := range before {
		if a, ok := m.(kernel.Answer); ok {
			t.Errorf("an answer came: %+v", a)
		}
	}
}

func TestARequestBeforeReadyIsRefused(t *testing.T) {
	b := launch(t, "silent", nil)
	if _, a := b.answer(b.ask("echo", "1")); !errors.Is(a.Err, ErrNotReady) {
		t.Errorf("the answer is %+v", a)
	}
}

func TestTheQueueOfStdinRefuses(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 16<<20, "good", func(c *Config) { c.StdinTimeout, c.StopGrace = time.Hour, 200*time.Millisecond })
	b.ready()
	b.do("deaf", "")
	big := strconv.Quote(strings.Repeat("x", 6<<20))
	b.ask("echo", big)
	b.ask("echo", big)
	_, a := b.answer(b.ask("echo", big))
	var full *kernel.Overloaded
	if !errors.As(a.Err, &full) || full.Scope != "session_bytes" || full.Used < 12<<20 {
		t.Errorf("the answer is %+v", a)
	}
	b.tell(Notify{Method: "x", Params: []byte(big)})
	kerneltest.Eventually(t, "a notification was dropped and counted", func() bool { return b.refused(ScopeStdin) == 1 })
}

func TestAFullAccountRefusesARequestAndLetsACancelThrough(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 1<<20, "good", nil)
	b.ready()
	hang := b.ask("hang", "")
	b.do("echo", "1")
	var full []*kernel.Lease
	for n := int64(512 << 10); n >= 1; {
		if l, err := b.owner.Account().Acquire(n); err == nil {
			full = append(full, l)
		} else {
			n /= 2
		}
	}
	frames := b.agent.Signal(Notify{Method: "session/cancel", Params: []byte("{}")})
	if frames != nil {
		t.Fatalf("the control lane refuses: %v", frames)
	}
	for _, l := range full[:1] {
		l.Release() // what the agent says needs room
	}
	_, a := b.answer(hang)
	for _, l := range full {
		l.Release()
	}
	if a.Err != nil {
		t.Errorf("the answer is %+v", a)
	}
}

// A line for which there is no room is skipped, after a wait; the request that it answered is answered all the same.
func TestAnAnswerForWhichThereIsNoRoomFailsItsRequest(t *testing.T) {
	b := launchIn(t, kernel.Options{}, 1<<20, "good", func(c *Config) { c.LineWait = 300 * time.Millisecond })
	b.ready()
	hang := b.ask("hang", "")
	b.do("echo", "1")
	var taken []*kernel.Lease
	for n := int64(512 << 10); n >= 1; {
		if l, err := b.owner.Account().Acquire(n); err == nil {
			taken = append(taken, l)
		} else {
			n /= 2
		}
	}
	if err := b.agent.Signal(Notify{Method: "session/cancel", Params: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	_, a := b.answer(hang)
	var full *kernel.Overloaded
	if !errors.As(a.Err, &full) || full.Limit != 1<<20 {
		t.Errorf("the answer is %+v", a)
	}
	for _, l := range taken {
		l.Release()
	}
}
