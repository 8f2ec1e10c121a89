package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/prompter"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// agentBed is a pod whose agents are simulated, and the books of what it does.
type agentBed struct {
	t      *testing.T
	pod    *pod.Pod
	folder string
	book   *invariant.Book
	world  prompter.World
	count  int
}

// canary is a secret in the agents' environment: no log, tree or metric may show it.
const canary = "cnry-environment-7d21f0c394"

// bedConfig is the pod's config; its agents are the built acpod-chaos. more are lines of [agent] that win over the usual ones.
func bedConfig(t *testing.T, folder string, more ...string) string {
	t.Helper()
	lines, limits, err := prompter.Prepare(folder, chaosBinary, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range more {
		key, _, _ := strings.Cut(line, " = ")
		if !strings.Contains(lines, key+" = ") {
			lines += line + "\n"
			continue
		}
		all := strings.Split(lines, "\n")
		at := slices.IndexFunc(all, func(l string) bool { return strings.HasPrefix(l, key+" = ") })
		all[at] = line
		lines = strings.Join(all, "\n")
	}
	return "[pod]\ndrain_timeout = \"5s\"\n[acp]\nlisten = \"127.0.0.1:0\"\n[agent]\nenv = { CHAOS_CANARY_TOKEN = \"" + canary + "\", GORACE = \"halt_on_error=1\" }\n" + lines +
		"[limits]\n" + limits + "[mcp]\nlisten = \"127.0.0.1:0\"\n[debug]\nlisten = \"127.0.0.1:0\"\n"
}

// newAgentBed starts the pod; at the end of the test everything that holds for each run is checked.
func newAgentBed(t *testing.T, more ...string) *agentBed {
	t.Helper()
	return newAgentBedOf(t, acpodBinary, more...)
}

func newAgentBedOf(t *testing.T, program string, more ...string) *agentBed {
	t.Helper()
	folder := t.TempDir()
	b := &agentBed{t: t, folder: folder}
	b.plan("")
	b.use(startProgram(t, program, bedConfig(t, folder, more...)))
	b.plan("") // Prepare has written one
	return b
}

func (b *agentBed) use(p *pod.Pod) {
	b.pod = p
	b.book = invariant.NewBook(func(breach invariant.Breach) {
		events := p.Events(breach.Words...)
		b.t.Errorf("%s: %s\nevents: %.400q", breach.Name, breach.Text, events[max(0, len(events)-8):])
	})
	b.world = prompter.World{Book: b.book, Calls: ledger.NewCalls(b.book), Open: func(ctx context.Context, _ string) (*wire.Socket, error) {
		return wire.Open(ctx, wire.Dial{URL: p.ACP()})
	}}
	b.t.Cleanup(b.leftovers)
}

// plan replaces what agents do wrong that start from now on.
func (b *agentBed) plan(strikes ...string) {
	b.t.Helper()
	plan, err := agent.ParsePlan("seed 1\nline 1048576\ndelay 1s\nsecret CHAOS_CANARY_TOKEN\n" + strings.Join(strikes, "\n"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := plan.Write(filepath.Join(b.folder, "plan")); err != nil {
		b.t.Fatal(err)
	}
}

func (b *agentBed) records() agent.Records {
	return agent.Records{Folder: filepath.Join(b.folder, "records")}
}

// session gives a connected client with no session yet. One that calls has its calls answered after a while, so that they are in flight.
func (b *agentBed) session(t *testing.T) *prompter.Session {
	t.Helper()
	b.count++
	s := prompter.NewSession(b.world, b.count)
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.HangUp)
	return s
}

// open wants session/new to work.
func open(t *testing.T, s *prompter.Session) {
	t.Helper()
	if err := s.Open(t.Context()); err != nil {
		t.Fatalf("session/new: %v", err)
	}
}

// take does one turn to its end, and wants of it what it may come to.
func (b *agentBed) take(t *testing.T, s *prompter.Session, turn *prompter.Turn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	answer := s.Prompt(turn)
	if turn.Cancel >= 0 {
		b.ready(t, s, turn)
		s.Cancel()
	}
	end, err := s.Wait(ctx, answer)
	if err != nil {
		t.Fatalf("%s: turn %s (%s): %v", invariant.AnsweredOnce, turn.Key, turn.Strike, err)
	}
	if !turn.May(end) {
		t.Errorf("turn %s (%s) ended with %q, want %q", turn.Key, turn.Strike, end, turn.Ends)
	}
	book := s.Heard(turn.Key, false)
	if end == "end_turn" {
		chunks, _ := turn.Chunks()
		book.End(chunks)
	}
	if wrong := book.Wrong(); len(wrong) > 0 {
		t.Errorf("turn %s (%s): %q", turn.Key, turn.Strike, wrong)
	}
	return end
}

// ready waits until a turn that is to be cancelled has come to where its fault is.
func (b *agentBed) ready(t *testing.T, s *prompter.Session, turn *prompter.Turn) {
	t.Helper()
	switch chunks, _ := turn.Chunks(); {
	case turn.Cancel == 0: // in the very next frame
	case turn.Strike.Stage == agent.AtCancel, turn.Strike.Stage == agent.AtAnswer:
		awaitThat(t, "the last chunk before the cancel", func() bool { return s.Count(turn.Key) == chunks })
	case turn.Strike != agent.Strike{}:
		b.struck(t, turn.Strike, 1)
	default:
		awaitThat(t, "a chunk before the cancel", func() bool { return s.Count(turn.Key) > 0 })
	}
}

// sound wants the session to serve a plain turn. Where the agent of the turn before is dying, the first may still reach it.
func (b *agentBed) sound(t *testing.T, s *prompter.Session, key string, dying bool) {
	t.Helper()
	turn := prompter.NewTurn(key, agent.Strike{}, 20, 300, 0)
	if dying {
		turn.Ends = append(turn.Ends, prompter.AgentExited)
	}
	if end := b.take(t, s, turn); end != "end_turn" {
		b.take(t, s, prompter.NewTurn(key+"-again", agent.Strike{}, 20, 300, 0))
	}
}

// closed ends the session for good.
func closed(t *testing.T, s *prompter.Session) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("session/close: %v", err)
	}
}

// struck waits until a strike has happened so often: some happen after the answer.
func (b *agentBed) struck(t *testing.T, strike agent.Strike, atLeast int) {
	t.Helper()
	awaitThat(t, "the fault "+strike.String(), func() bool {
		all, err := b.records().Struck()
		if err != nil {
			t.Fatal(err)
		}
		return all[strike] >= atLeast
	})
}

// awaitThat polls for what other processes do.
func awaitThat(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// leftovers is what holds at the end of each run, when no session is open: nothing lives but the guardian, every account is at rest,
// every record of the log is one line without anybody's control characters, and no secret is shown.
func (b *agentBed) leftovers() {
	t := b.t
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var living []agent.Recorded
	var unrest string
	for {
		var err error
		living, err = b.records().Living()
		if err != nil {
			t.Fatal(err)
		}
		root, err := b.pod.Tree(ctx)
		if err != nil {
			t.Fatalf("the tree: %v; the pod's log ends %q", err, b.pod.LogTail(10))
		}
		if unrest = root.Unrest(); unrest == "" && len(living) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			t.Errorf("at the end %v live; unrest: %s", living, unrest)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	if children := b.pod.Children(); len(children) > 1 {
		t.Errorf("processes %v are left", children)
	}
	b.look(t)
	metrics, err := b.pod.MetricsText(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.shown("the metrics", strings.ReplaceAll(string(metrics), "\n", " "))
	log, err := os.ReadFile(filepath.Join(b.pod.Dir(), "pod.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		line = strings.TrimSuffix(line, "\n")
		b.shown("a line of the log", line)
		var record struct {
			Msg string `json:"msg"`
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("a line of the log is no record: %v in %.300q", err, line)
		}
		if strings.HasPrefix(record.Msg, agent.Forged) {
			t.Errorf("an agent has forged a record: %.300q", line)
		}
	}
}

// look wants the tree to be free of it too, while there is an agent that has told its name.
func (b *agentBed) look(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tree, err := b.pod.TreeText(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.shown("the tree", strings.TrimSuffix(string(tree), "\n"))
}

// shown wants a text that people look at to be free of what attacks a terminal, and of the secret.
func (b *agentBed) shown(where, text string) {
	b.t.Helper()
	if strings.Contains(text, canary) {
		b.t.Errorf("%s shows the secret of an agent's environment: %.300q", where, around(text, canary))
	}
	if at := strings.IndexFunc(text, attacks); at >= 0 {
		b.t.Errorf("%s has a character that attacks whoever looks at it: %.300q", where, text[max(0, at-100):min(len(text), at+100)])
	}
}

func around(text, part string) string {
	at := strings.Index(text, part)
	return text[max(0, at-100):min(len(text), at+len(part)+50)]
}

// attacks tells characters that move a cursor, change a title or turn the direction of reading.
func attacks(r rune) bool {
	switch {
	case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029, r == unicode.ReplacementChar:
		return true
	}
	return false
}

// reasonOf is the pod's reason in an error of session/new, or its code.
func reasonOf(err error) string {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return ""
	case !ok:
		return err.Error()
	case refused.Reason() != "":
		return refused.Reason()
	}
	return fmt.Sprintf("error %d", refused.Code)
}
