package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// ended is how a line ends the turn before its end.
type ended struct{ reason acp.StopReason }

func (ended) Error() string { return "the turn ends here" }

// Prompt does what each line says, in order.
func (a *Agent) Prompt(_ context.Context, request acp.PromptRequest) (acp.PromptResponse, error) {
	session, turn := a.turn(request.SessionId)
	if session == nil {
		return acp.PromptResponse{}, unknownSession(errors.New("open it with session/new first"))
	}
	defer a.answered(session, turn)
	text, shown := read(request.Prompt)
	a.transcripts.add(session.id, roleUser, text)
	script := script{agent: a, session: session, turn: turn}
	err := script.run(turn.ctx, shown, text)
	var end ended
	var refused *refusedTurn
	switch {
	case errors.As(err, &refused): // also of a cancelled turn
		return acp.PromptResponse{}, refused.err
	case turn.ctx.Err() != nil:
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case errors.As(err, &end):
		return acp.PromptResponse{StopReason: end.reason}, nil
	case err != nil:
		return acp.PromptResponse{}, err
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func (s script) run(ctx context.Context, shown []string, text string) error {
	for _, one := range shown {
		if err := s.stream(ctx, one+"\n"); err != nil {
			return err
		}
	}
	for line := range strings.Lines(text) {
		if err := s.line(ctx, strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// read gives the lines of a prompt, and what to say of the blocks that are no text.
func read(blocks []acp.ContentBlock) (text string, shown []string) {
	var lines []string
	for _, block := range blocks {
		switch {
		case block.Text != nil:
			lines = append(lines, block.Text.Text)
		case block.ResourceLink != nil:
			lines = append(lines, "["+block.ResourceLink.Name+"]("+block.ResourceLink.Uri+")")
		case block.Image != nil:
			shown = append(shown, fmt.Sprintf("[image %s %d bytes]", block.Image.MimeType, decodedSize(block.Image.Data)))
		case block.Audio != nil:
			shown = append(shown, fmt.Sprintf("[audio %s %d bytes]", block.Audio.MimeType, decodedSize(block.Audio.Data)))
		case block.Resource != nil && block.Resource.Resource.TextResourceContents != nil:
			one := block.Resource.Resource.TextResourceContents
			shown = append(shown, fmt.Sprintf("[resource %s %d bytes]", one.Uri, len(one.Text)))
		case block.Resource != nil && block.Resource.Resource.BlobResourceContents != nil:
			one := block.Resource.Resource.BlobResourceContents
			shown = append(shown, fmt.Sprintf("[resource %s %d bytes]", one.Uri, decodedSize(one.Blob)))
		}
	}
	return strings.Join(lines, "\n"), shown
}

// turn finds the one that arrived opened for this prompt.
func (a *Agent) turn(id acp.SessionId) (*conversation, *turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	session := a.sessions[id]
	if session == nil {
		return nil, nil
	}
	for _, turn := range session.turns {
		if !turn.taken {
			turn.taken = true
			return session, turn
		}
	}
	return nil, nil
}

func (a *Agent) answered(session *conversation, answered *turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, turn := range session.turns {
		if turn == answered {
			turn.cancel()
			session.turns = append(session.turns[:i:i], session.turns[i+1:]...)
			return
		}
	}
}
