package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

const (
	floodChunk   = 1 << 10   // bytes of one update of /flood
	biggestChunk = 128 << 20 // bytes that /emit and /stderr write at most
	exitOfCrash  = 3
)

// script runs the lines of one prompt.
type script struct {
	agent   *Agent
	session *conversation
}

// line does what one line of the prompt says:
//
//	/search WORDS       search_capabilities, the names found
//	/call NAME {json}   execute_capability, its content; images as [image TYPE N bytes]; an error result as "error: …"
//	/ask                session/request_permission with allow and reject, the choice
//	/sleep 2s           waits, cancellable
//	/flood N            N updates of 1 KiB
//	/emit N             one update of N bytes
//	/crash              exits 3
//	/hang               ignores SIGTERM, stops reading, never answers
//	/garbage            a line on standard output that is not JSON
//	/stderr N           N bytes on standard error
//	/fork               leaves a grandchild
//	/new                the parameters of session/new, tokens masked
func (s script) line(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "":
		return nil
	case "/search":
		return s.search(ctx, rest)
	case "/call":
		return s.call(ctx, rest)
	case "/ask":
		return s.ask(ctx)
	case "/sleep":
		return s.sleep(ctx, rest)
	case "/flood":
		return s.flood(ctx, rest)
	case "/emit":
		return s.sized(ctx, rest, func(n int) error { return s.stream(ctx, strings.Repeat("e", n)) })
	case "/crash":
		os.Exit(exitOfCrash)
		return nil
	case "/hang":
		s.agent.tap.stick()
		signal.Ignore(syscall.SIGTERM)
		select {} // the turn is never answered, cancelled or not
	case "/garbage":
		_, err := s.agent.out.Write([]byte("this line is not JSON {\n"))
		return err
	case "/stderr":
		return s.sized(ctx, rest, s.stderr)
	case "/fork":
		return s.fork(ctx)
	case "/new":
		return s.stream(ctx, masked(string(s.session.params))+"\n")
	}
	return s.stream(ctx, "echo: "+line+"\n")
}

func (s script) stream(ctx context.Context, text string) error {
	s.agent.transcripts.add(s.session.id, roleAgent, text)
	return s.agent.say(ctx, s.session.id, acp.UpdateAgentMessageText(text))
}

func (s script) sleep(ctx context.Context, rest string) error {
	duration, err := time.ParseDuration(rest)
	if err != nil || duration < 0 {
		return s.stream(ctx, badLine("/sleep takes a duration like 2s, not %q", rest))
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s script) flood(ctx context.Context, rest string) error {
	return s.sized(ctx, rest, func(n int) error {
		for i := range n {
			label := fmt.Sprintf("%08d ", i)
			text := label + strings.Repeat("f", floodChunk-len(label))
			if err := s.agent.say(ctx, s.session.id, acp.UpdateAgentMessageText(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sized reads a count and does something that often or that big.
func (s script) sized(ctx context.Context, rest string, do func(int) error) error {
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 || n > biggestChunk {
		return s.stream(ctx, badLine("a number from 0 to %d is needed, not %q", biggestChunk, rest))
	}
	return do(n)
}

func (s script) stderr(n int) error {
	chunk := []byte(strings.Repeat("s", 1<<10-1) + "\n")
	for n > 0 {
		written, err := s.agent.err.Write(chunk[:min(n, len(chunk))])
		if err != nil {
			return err
		}
		n -= written
	}
	return nil
}

// fork leaves a process behind that outlives the agent unless somebody ends the whole group.
func (s script) fork(ctx context.Context) error {
	child := exec.Command("sleep", "3600")
	if err := child.Start(); err != nil {
		return s.stream(ctx, badLine("no grandchild: %v", err))
	}
	go func() { _ = child.Wait() }() // no zombie while the agent lives
	return s.stream(ctx, fmt.Sprintf("forked: %d\n", child.Process.Pid))
}

func (s script) ask(ctx context.Context) error {
	id := s.nextCall()
	title := acp.Ptr("The demo agent asks")
	answer, err := s.agent.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: s.session.id,
		ToolCall:  acp.ToolCallUpdate{ToolCallId: id, Title: title, Status: acp.Ptr(acp.ToolCallStatusPending)},
		Options: []acp.PermissionOption{
			{Kind: acp.PermissionOptionKindAllowOnce, Name: "Allow", OptionId: "allow"},
			{Kind: acp.PermissionOptionKindRejectOnce, Name: "Reject", OptionId: "reject"},
		},
	})
	switch {
	case err != nil:
		return s.stream(ctx, badLine("nobody answered: %v", err))
	case answer.Outcome.Selected != nil:
		return s.stream(ctx, "choice: "+string(answer.Outcome.Selected.OptionId)+"\n")
	}
	return s.stream(ctx, "choice: cancelled\n")
}

func (s script) nextCall() acp.ToolCallId {
	s.agent.mu.Lock()
	defer s.agent.mu.Unlock()
	s.session.calls++
	return acp.ToolCallId(fmt.Sprintf("call-%d", s.session.calls))
}

func (s script) search(ctx context.Context, words string) error {
	arguments := map[string]any{}
	if words != "" {
		arguments["query"] = words
	}
	found, err := s.use(ctx, "search_capabilities", words, arguments)
	if err != nil || found.isError {
		return s.told(ctx, found, err)
	}
	var answer struct {
		Capabilities []struct {
			Name string `json:"name"`
		} `json:"capabilities"`
	}
	if err := json.Unmarshal([]byte(found.text), &answer); err != nil {
		return s.stream(ctx, badLine("the search gave no JSON: %v", err))
	}
	if len(answer.Capabilities) == 0 {
		return s.stream(ctx, "nothing found\n")
	}
	for _, capability := range answer.Capabilities {
		if err := s.stream(ctx, capability.Name+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (s script) call(ctx context.Context, rest string) error {
	name, text, _ := strings.Cut(rest, " ")
	if name == "" {
		return s.stream(ctx, badLine("/call takes a name and, if it has any, its arguments as JSON"))
	}
	raw, err := rawArguments(strings.TrimSpace(text))
	if err != nil {
		return s.stream(ctx, badLine("%v", err))
	}
	arguments := map[string]any{"name": name}
	if raw != nil {
		arguments["arguments"] = raw
	}
	given, err := s.use(ctx, "execute_capability", name, arguments)
	return s.told(ctx, given, err)
}

func (s script) told(ctx context.Context, given result, err error) error {
	switch {
	case err != nil && ctx.Err() == nil:
		return s.stream(ctx, badLine("%v", err))
	case err != nil:
		return err
	case given.isError:
		return s.stream(ctx, badLine("%s", given.text))
	}
	return s.stream(ctx, given.text+"\n")
}

// use calls a tool and reports it as ACP wants: a tool_call before, a tool_call_update after.
func (s script) use(ctx context.Context, tool, about string, arguments map[string]any) (result, error) {
	id := s.nextCall()
	start := acp.StartToolCall(id, strings.TrimSpace(tool+" "+about), acp.WithStartKind(acp.ToolKindExecute),
		acp.WithStartStatus(acp.ToolCallStatusInProgress), acp.WithStartRawInput(arguments))
	if err := s.agent.say(ctx, s.session.id, start); err != nil {
		return result{}, err
	}
	given, err := s.session.call(ctx, tool, arguments)
	status := acp.ToolCallStatusCompleted
	if err != nil || given.isError {
		status = acp.ToolCallStatusFailed
	}
	if ctx.Err() != nil {
		return given, ctx.Err() // the client marks an unfinished call cancelled by itself
	}
	if told := s.agent.say(ctx, s.session.id, acp.UpdateToolCall(id, acp.WithUpdateStatus(status))); told != nil {
		return given, told
	}
	return given, err
}
