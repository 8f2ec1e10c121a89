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
	turn    *turn
	word    string // of the current line
}

func (s script) stream(ctx context.Context, text string) error {
	s.agent.transcripts.add(s.session.id, roleAgent, text)
	return s.agent.say(ctx, s.session.id, acp.UpdateAgentMessageText(text))
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

func (s script) emit(ctx context.Context, rest string) error {
	return s.sized(ctx, rest, func(n int) error { return s.stream(ctx, strings.Repeat("e", n)) })
}

func (s script) crash(context.Context, string) error {
	os.Exit(exitOfCrash)
	return nil
}

func (s script) hang(context.Context, string) error {
	s.agent.tap.stick()
	signal.Ignore(syscall.SIGTERM)
	select {} // the turn is never answered, cancelled or not
}

func (s script) garbage(context.Context, string) error {
	_, err := s.agent.out.Write([]byte("this line is not JSON {\n"))
	return err
}

func (s script) opened(ctx context.Context, _ string) error {
	return s.stream(ctx, masked(string(s.session.params))+"\n")
}

func (s script) stderr(ctx context.Context, rest string) error {
	return s.sized(ctx, rest, s.complain)
}

func (s script) complain(n int) error {
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
func (s script) fork(ctx context.Context, _ string) error {
	child := exec.Command("sleep", "3600")
	if err := child.Start(); err != nil {
		return s.stream(ctx, badLine("no grandchild: %v", err))
	}
	go func() { _ = child.Wait() }() // no zombie while the agent lives
	return s.stream(ctx, fmt.Sprintf("forked: %d\n", child.Process.Pid))
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
