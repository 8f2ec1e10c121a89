package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// Lines that end a turn in ways of their own, or wait.

// refusedTurn ends the turn with an error, cancelled or not.
type refusedTurn struct{ err *acp.RequestError }

func (r *refusedTurn) Error() string { return r.err.Error() }

func (s script) sleep(ctx context.Context, rest string) error {
	return s.timed(ctx, rest, func(timer <-chan time.Time) error {
		select {
		case <-timer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func (s script) timed(ctx context.Context, rest string, wait func(<-chan time.Time) error) error {
	duration, err := time.ParseDuration(rest)
	if err != nil || duration < 0 {
		return s.stream(ctx, badLine("%s takes a duration like 2s, not %q", s.word, rest))
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	return wait(timer.C)
}

func (s script) deaf(ctx context.Context, rest string) error {
	return s.timed(ctx, rest, func(timer <-chan time.Time) error {
		<-timer
		return nil
	})
}

func (s script) sour(ctx context.Context, rest string) error {
	err := s.sleep(ctx, rest)
	if ctx.Err() != nil {
		return &refusedTurn{acp.NewInternalError(map[string]any{"reason": "cancelled"})}
	}
	return err
}

func (s script) work(ctx context.Context, rest string) error {
	id := s.nextCall()
	if err := s.agent.say(ctx, s.session.id, acp.StartToolCall(id, "working", acp.WithStartStatus(acp.ToolCallStatusInProgress))); err != nil {
		return err
	}
	if err := s.sleep(ctx, rest); err != nil {
		return err
	}
	return s.agent.say(ctx, s.session.id, acp.UpdateToolCall(id, acp.WithUpdateStatus(acp.ToolCallStatusCompleted)))
}

func (s script) stop(ctx context.Context, reason string) error {
	if reason == "" {
		return s.stream(ctx, badLine("/stop takes a stop reason"))
	}
	return ended{acp.StopReason(reason)}
}

func (s script) fail(ctx context.Context, rest string) error {
	number, message, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(number)
	if err != nil {
		return s.stream(ctx, badLine("/fail takes a code and a text, not %q", rest))
	}
	return &refusedTurn{&acp.RequestError{Code: code, Message: message}}
}

// late is written right behind the answer, in one piece with it.
func (s script) late(_ context.Context, text string) error {
	quoted, err := json.Marshal(text + "\n")
	if err != nil {
		return err
	}
	s.agent.out.behind(s.turn.id, fmt.Appendf(nil,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`,
		s.session.id, quoted))
	return nil
}

func (s script) twice(context.Context, string) error {
	s.agent.out.behind(s.turn.id, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"refusal"}}`, s.turn.id))
	return nil
}
