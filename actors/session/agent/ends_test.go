package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestEarlyEndsSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		role   string
		change func(*Config)
		want   []string
		as     any
	}{
		"crash before initialize": {"crash-before", nil, []string{"code 4", `first | cannot find <b>the key</b>\x1b[31m`}, new(*Exited)},
		"never answers":           {"silent", func(c *Config) { c.StartTimeout = 500 * time.Millisecond }, []string{"no answer to initialize within 500ms", "agent.start_timeout", `\x1b[31mthe cloud`}, nil},
		"refuses":                 {"refuses", nil, []string{"-32000", "log in", "agent.command"}, new(*jsonrpc.Error)},
		"another version":         {"version-2", nil, []string{"another protocol version", "2"}, nil},
		"a version that is text":  {"version-string", nil, []string{"another protocol version"}, nil},
		"a flood for an answer":   {"chatty-start", nil, []string{"bytes, more than"}, nil},
		"no such program":         {"good", func(c *Config) { c.Command = []string{"/no/<such>\nprogram"} }, []string{`/no/<such>\nprogram`, "no such file"}, nil},
		"no command":              {"good", func(c *Config) { c.Command = nil }, []string{"no command"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := launch(t, c.role, c.change)
			cause := b.ended()
			var failed *StartError
			if !errors.As(cause, &failed) {
				t.Fatalf("it ended with %v", cause)
			}
			for _, want := range c.want {
				if !strings.Contains(cause.Error(), want) {
					t.Errorf("%q is not in %q", want, cause)
				}
			}
			if strings.ContainsAny(cause.Error(), "\n\x1b") || len(cause.Error()) > 2048 {
				t.Errorf("not one bounded line: %q", cause)
			}
			if c.as != nil && !errors.As(cause, c.as) {
				t.Errorf("it wraps no %T", c.as)
			}
			for _, m := range b.rest() {
				if _, ok := m.(Ready); ok {
					t.Error("it was ready")
				}
			}
		})
	}
}

func TestAnAgentThatPrintsItsEnvironmentShowsNoSecret(t *testing.T) {
	b := launch(t, "print-env", func(c *Config) {
		c.Env = append(c.Env, "OPENAB_SESSION_TOKEN=abcdef0123", "SOME_API_KEY=sk-456789", "SHORT_KEY=1", "OTHER=visible")
		c.Secrets = []string{"visible"}
	})
	shown := b.ended().Error() + b.log.String()
	if strings.Contains(shown, "abcdef0123") || strings.Contains(shown, "sk-456789") || strings.Contains(shown, "visible") {
		t.Errorf("shown: %s", shown)
	}
	if !strings.Contains(shown, "OPENAB_SESSION_TOKEN=[masked]") || !strings.Contains(shown, "SHORT_KEY=1") {
		t.Errorf("not shown: %s", shown)
	}
}

func TestACrashAfterTheHandshakeIsAnExit(t *testing.T) {
	b := launch(t, "crash-after", nil)
	for came := false; !came; { // the exit comes in the control lane, so it may overtake
		_, came = b.next().(Ready)
	}
	var exited *Exited
	if cause := b.ended(); !errors.As(cause, &exited) || exited.Code != 5 {
		t.Errorf("it ended with %v", cause)
	}
}

func TestACrashInTheMiddleOfAPromptAnswersAllAfterTheLastWords(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	hang := b.ask("hang", "")
	crash := b.ask("crash", "3")
	var got []string
	var exit kernel.Exited // comes in the control lane, so it may overtake
	for len(got) < 3 || exit.Ref.IsZero() {
		switch m := b.next().(type) {
		case kernel.Exited:
			exit = m
		case Update:
			got = append(got, b.texts([]kernel.Msg{m})[0])
		case kernel.Answer:
			var exited *Exited
			if !errors.As(m.Err, &exited) || exited.Code != 3 || exited.Signal != 0 || !strings.Contains(exited.Stderr, `panic: oh no\a`) {
				t.Errorf("an open request was answered %+v", m)
			}
			if m.Ticket != hang && m.Ticket != crash {
				t.Errorf("an answer to %v", m.Ticket)
			}
			got = append(got, "answer")
		}
	}
	if fmt.Sprint(got) != "[last words answer answer]" {
		t.Errorf("the owner got %v", got)
	}
	if _, ok := errors.AsType[*Exited](b.ended()); !ok || runs(r.PID) {
		t.Errorf("it ended with %v", b.agent.Cause())
	}
	if exit.Ref != b.agent || !errors.Is(exit.Cause, b.agent.Cause()) || !exit.Next.IsZero() {
		t.Errorf("the parent got %+v", exit)
	}
}

func TestASignalIsTold(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	hang := b.ask("hang", "")
	b.do("echo", "1")
	_ = syscall.Kill(r.PID, syscall.SIGKILL)
	_, a := b.answer(hang)
	var exited *Exited
	if !errors.As(a.Err, &exited) || exited.Code != -1 || exited.Signal != syscall.SIGKILL {
		t.Errorf("the answer is %+v", a)
	}
}

func TestAnAgentThatClosesItsStdoutIsEnded(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	_, a := b.answer(b.ask("close-stdout", ""))
	var exited *Exited
	if !errors.As(a.Err, &exited) || exited.Reason != "it closed its stdout" {
		t.Errorf("the answer is %+v", a)
	}
}

func TestAnAgentThatIgnoresEverythingIsKilled(t *testing.T) {
	b := launch(t, "obstinate", func(c *Config) { c.StopGrace = 200 * time.Millisecond })
	r := b.ready()
	hang := b.ask("hang", "")
	b.do("echo", "1")
	stop := errors.New("closed")
	b.agent.Stop(stop)
	if _, a := b.answer(hang); !errors.Is(a.Err, stop) {
		t.Errorf("the open request was answered %+v", a)
	}
	if b.ended(); runs(r.PID) {
		t.Error("it lives on")
	}
}

func TestWhatAnAgentLeftBehindIsEnded(t *testing.T) {
	for _, end := range []string{"stop", "leave"} {
		t.Run(end, func(t *testing.T) {
			b := launch(t, "good", func(c *Config) { c.StopGrace = 300 * time.Millisecond })
			r := b.ready()
			b.ask("fork", "")
			noted, ok := b.next().(Noted)
			helper, err := strconv.Atoi(string(noted.Params))
			if !ok || err != nil || !runs(helper) || helper == r.PID {
				t.Fatalf("the helper says %+v", noted)
			}
			if end == "leave" {
				_, a := b.answer(b.ask("leave", ""))
				if _, ok := errors.AsType[*Exited](a.Err); !ok {
					t.Errorf("the answer is %+v", a)
				}
			} else {
				b.agent.Stop(nil)
			}
			b.ended()
			kerneltest.Eventually(t, "the helper is gone", func() bool { return !runs(helper) })
		})
	}
}

func TestAnAgentThatDoesNotReadIsStopped(t *testing.T) {
	b := launch(t, "good", func(c *Config) { c.StdinTimeout, c.StopGrace = 300*time.Millisecond, 200*time.Millisecond })
	r := b.ready()
	b.do("deaf", "")
	_, a := b.answer(b.ask("echo", strconv.Quote(strings.Repeat("x", 1<<20))))
	var exited *Exited
	if !errors.As(a.Err, &exited) || !strings.Contains(exited.Reason, "did not read its stdin") {
		t.Errorf("the answer is %+v", a)
	}
	if b.ended(); runs(r.PID) {
		t.Error("it lives on")
	}
}

func TestTheGuardianKnowsTheGroup(t *testing.T) {
	g := guardian(t)
	b := launch(t, "good", func(c *Config) { c.Guardian = g })
	r := b.ready()
	if groups := g.Groups(); len(groups) != 1 || groups[0].PGID != r.PID {
		t.Errorf("it knows %v", groups)
	}
	b.agent.Stop(nil)
	b.ended()
	if groups := g.Groups(); len(groups) != 0 {
		t.Errorf("it still knows %v", groups)
	}
}

func TestAStopDuringTheHandshakeLeavesNothing(t *testing.T) {
	g := guardian(t)
	for range 20 {
		b := launch(t, "silent", func(c *Config) { c.Guardian, c.StopGrace = g, 5*time.Second })
		b.agent.Stop(nil) // before, while or after it is started
		b.ended()
		if groups := g.Groups(); len(groups) != 0 {
			t.Fatalf("left: %v", groups)
		}
	}
}
