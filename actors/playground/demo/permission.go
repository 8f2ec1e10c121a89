package demo

import (
	"context"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

func (s script) ask(ctx context.Context, capability string) error {
	s.agent.mu.Lock()
	mode := s.session.mode
	s.agent.mu.Unlock()
	if mode == modeAuto {
		return s.stream(ctx, "choice: allow (nobody was asked)\n")
	}
	return s.permission(ctx, ctx, capability, allowOrReject)
}

// askDeaf leaves its question open when the turn is cancelled, as some agents do, and hangs until somebody answers it.
func (s script) askDeaf(ctx context.Context, capability string) error {
	return s.permission(ctx, context.WithoutCancel(ctx), capability, allowOrReject)
}

var allowOrReject = []acp.PermissionOption{
	{Kind: acp.PermissionOptionKindAllowOnce, Name: "Allow", OptionId: "allow"},
	{Kind: acp.PermissionOptionKindRejectOnce, Name: "Reject", OptionId: "reject"},
}

// askOf offers an option of each kind, named after it, in the order given.
func (s script) askOf(ctx context.Context, rest string) error {
	kinds, capability, _ := strings.Cut(rest, " ")
	var options []acp.PermissionOption
	for kind := range strings.SplitSeq(kinds, ",") {
		options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKind(kind), Name: kind, OptionId: acp.PermissionOptionId(kind)})
	}
	return s.permission(ctx, ctx, strings.TrimSpace(capability), options)
}

func (s script) permission(ctx, waiting context.Context, capability string, options []acp.PermissionOption) error {
	about := acp.ToolCallUpdate{ToolCallId: s.nextCall(), Title: acp.Ptr("The demo agent asks"), Status: acp.Ptr(acp.ToolCallStatusPending)}
	if capability != "" {
		about.Title, about.RawInput = acp.Ptr("execute_capability "+capability), map[string]any{"name": capability}
	}
	answer, err := s.agent.conn.RequestPermission(waiting, acp.RequestPermissionRequest{SessionId: s.session.id, ToolCall: about, Options: options})
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
