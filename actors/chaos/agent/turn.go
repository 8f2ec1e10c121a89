package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// turn is one prompt from its arrival to its answer.
type turn struct {
	session   *conversation
	id        jsonrpc.ID
	script    Script
	key       string
	reason    string
	failure   int
	armed     []Strike // guarded by the armoury
	ctx       context.Context
	end       func()
	cancelled atomic.Bool

	chunks, chunked int // how many the script asks for, how many were said
}

// noKey is the key of a turn whose script names none.
const noKey = "none"

// prompt opens a turn in the reader, so that a cancel in the next line finds it.
func (a *agent) prompt(id jsonrpc.ID, params []byte) {
	session := a.find(sessionOf(params))
	if session == nil {
		a.out.failure(id, acp.UnknownSession(sessionOf(params)))
		return
	}
	script, err := ParseScript(textOf(params))
	if err != nil {
		a.out.failure(id, jsonrpc.BadParams("this agent takes scripts: %v", err))
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	t := &turn{session: session, id: id, script: script, key: noKey, reason: acp.StopEndTurn, ctx: ctx, end: cancel}
	for _, step := range script {
		switch {
		case step.Do == "turn" && t.key == noKey:
			t.key = step.Text
		case step.Do == "chunks":
			t.chunks += step.N
		case step.Do == "fault":
			a.faults.arm(t, step.Strike)
		}
	}
	session.mu.Lock()
	busy := session.turn != nil
	if !busy {
		session.turn = t
	}
	session.mu.Unlock()
	if busy { // a pod never asks for two at once
		cancel()
		a.out.failure(id, &jsonrpc.Error{Code: jsonrpc.InvalidRequest, Message: "a prompt is in progress already"})
		return
	}
	a.working.Go(func() { a.run(t) })
}

func textOf(params []byte) string {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return ""
	}
	raw, _ := o.Get("prompt")
	blocks, err := jsonrpc.Elements(raw)
	if err != nil {
		return ""
	}
	var text []string
	for _, block := range blocks {
		if one, err := jsonrpc.ParseObject(block); err == nil {
			said, _ := one.Text("text") // "" for a block that is no text
			text = append(text, said)
		}
	}
	return strings.Join(text, "\n")
}

// run does what the script says and answers.
func (a *agent) run(t *turn) {
	defer t.end()
	if again := t.session.again.Swap(nil); again != nil { // a third time, when another answer is awaited
		a.out.line(*again)
	}
	a.strike(AtPrompt, t)
	var err error
	for _, step := range t.script {
		if err = a.step(t, step); err != nil || t.ctx.Err() != nil {
			break
		}
	}
	if a.ctx.Err() != nil && !t.cancelled.Load() {
		return // the process ends
	}
	t.session.mu.Lock()
	t.session.turn = nil // whoever has read the answer may prompt again
	t.session.mu.Unlock()
	switch {
	case t.cancelled.Load() || t.ctx.Err() != nil:
		a.reply(AtCancel, t, t.id, stopped(acp.StopCancelled))
	case err != nil:
		a.out.failure(t.id, jsonrpc.InternalError(jsonrpc.ReasonInternal, err.Error()))
	case t.failure != 0:
		a.out.failure(t.id, &jsonrpc.Error{Code: t.failure, Message: "the script wants this turn to fail"})
	default:
		a.reply(AtAnswer, t, t.id, stopped(t.reason))
	}
	a.strike(AtAnswered, t)
}

func stopped(reason string) string { return `{"stopReason":` + quote(reason) + `}` }

// step does one line. An error ends the turn with it.
func (a *agent) step(t *turn, s Step) error {
	switch s.Do {
	case "turn":
		t.key = s.Text
	case "chunks":
		return a.chunk(t, acp.UpdateAgentMessage, s, &t.chunked, t.chunks)
	case "thoughts":
		said := 0
		return a.chunk(t, acp.UpdateAgentThought, s, &said, s.N)
	case "fill":
		for range s.N {
			if t.ctx.Err() != nil {
				return t.ctx.Err()
			}
			a.out.update(t.session.id, textBody(acp.UpdateAgentThought, Filler(t.key, s.Bytes)))
		}
	case "call":
		arguments := `{"name":` + quote(s.Text) + `}`
		if s.JSON != "" {
			arguments = `{"name":` + quote(s.Text) + `,"arguments":` + s.JSON + `}`
		}
		return a.use(t, "execute_capability", s.Text, arguments)
	case "search":
		arguments := `{}`
		if s.Text != "" {
			arguments = `{"query":` + quote(s.Text) + `}`
		}
		return a.use(t, "search_capabilities", s.Text, arguments)
	case "ask":
		return a.ask(t)
	case "sleep":
		return pause(t.ctx, s.For)
	case "end":
		t.reason = s.Text
	case "fail":
		t.failure = s.N
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// chunk says a row of chunks; in its middle a fault may strike, between two or within one.
func (a *agent) chunk(t *turn, kind string, s Step, said *int, total int) error {
	for i := range s.N {
		if t.ctx.Err() != nil {
			return t.ctx.Err()
		}
		*said++
		line := updateLine(t.session.id, textBody(kind, Chunk(t.key, *said, total, s.Bytes)))
		if i == s.N/2 {
			if crash, struck := a.faults.take(AtLine, Crash, t); struck {
				a.out.raw(line[:len(line)/2])
				a.crash(crash)
			}
			a.strike(AtChunk, t)
		}
		a.out.line(line)
	}
	return nil
}

func (a *agent) note(t *turn, word, value string) {
	a.out.update(t.session.id, textBody(acp.UpdateAgentMessage, Note(t.key, word, value)))
}

// callUnderWay is how long a call is given to come to who executes it before its agent fails: long for a machine that does nothing else.
const callUnderWay = 100 * time.Millisecond

func (s *conversation) nextCall() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	return fmt.Sprintf("call-%d", s.used)
}

// use calls a tool of the facade and reports it as ACP wants, before and after.
func (a *agent) use(t *turn, tool, about, arguments string) error {
	id, title := t.session.nextCall(), strings.TrimSpace(tool+" "+about)
	if _, struck := a.faults.take(AtPrompt, Hostile, t); struck {
		title = hostileText
	}
	a.out.update(t.session.id, `{"sessionUpdate":"tool_call","toolCallId":"`+id+`","title":`+quote(title)+`,"kind":"execute","status":"in_progress"}`)
	type outcome struct {
		text string
		err  error
	}
	came := make(chan outcome, 1)
	flying := make(chan struct{})
	a.working.Go(func() {
		text, err := t.session.facade.call(t.ctx, tool, arguments, flying)
		came <- outcome{text, err}
	})
	<-flying
	if a.faults.armed(AtCall, t) { // the pod has it: what happens now happens to a call that is executed
		_ = pause(t.ctx, callUnderWay)
	}
	a.strike(AtCall, t)
	got := <-came
	if t.ctx.Err() != nil {
		return t.ctx.Err() // the client marks an open call cancelled by itself
	}
	status, said := "completed", got.text
	if got.err != nil {
		status, said = "failed", "lost: "+got.err.Error()
	} else if strings.HasPrefix(said, "error") {
		status = "failed"
	}
	a.out.update(t.session.id, `{"sessionUpdate":"tool_call_update","toolCallId":"`+id+`","status":"`+status+`"}`)
	a.note(t, tool, strings.TrimSpace(about+" "+said))
	return nil
}

// ask is a permission request; the note tells the option that was chosen, or cancelled.
func (a *agent) ask(t *turn) error {
	title := "the simulated agent asks"
	if _, struck := a.faults.take(AtAsk, Hostile, t); struck {
		title = hostileText
	}
	pad := 0
	if s, struck := a.faults.take(AtAsk, Oversize, t); struck {
		pad = a.size(s)
	}
	_, came := a.out.request(acp.MethodPermission, `{"sessionId":`+quote(t.session.id)+`,"toolCall":{"toolCallId":"`+t.session.nextCall()+
		`","title":`+quote(title)+`,"status":"pending"},"options":[{"optionId":"allow","name":`+quote(title)+`,"kind":"allow_once"},`+
		`{"optionId":"reject","name":"Reject","kind":"reject_once"}]}`, pad)
	a.strike(AtAsk, t)
	select {
	case answer := <-came:
		choice := "error"
		if answer.failed == nil {
			choice = chosen(answer.result)
		}
		a.note(t, "choice", choice)
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

var errNoOutcome = errors.New("no outcome")

func chosen(result []byte) string {
	choice, err := outcomeOf(result)
	if err != nil {
		return "unreadable"
	}
	return choice
}

func outcomeOf(result []byte) (string, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", err
	}
	raw, ok := o.Get("outcome")
	if !ok {
		return "", errNoOutcome
	}
	if o, err = jsonrpc.ParseObject(raw); err != nil {
		return "", err
	}
	if option, err := o.Text("optionId"); err == nil && option != "" {
		return option, nil
	}
	return o.Text("outcome")
}
