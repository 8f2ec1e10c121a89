package extension

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Turns are how callers call the tools of a session that has the demo agent: they have it prompted, one prompt at a time. It may be
// used from any goroutine.
type Turns struct {
	p       *peer.Peer
	session string
	behind  bool // there may be something on the way of an earlier turn. For who has taken the agent

	taken sync.Mutex // by a turn
	mu    sync.Mutex
	said  strings.Builder // of the present turn
	open  map[string]bool // the tool calls of the present turn: whether one was reported to begin, and not to end
}

// ErrTurn says that the agent did not end its turn as asked: the text says how.
var ErrTurn = errors.New("the turn did not end with end_turn")

// Take takes the agent for one turn; false: it has one.
func (t *Turns) Take() bool { return t.taken.TryLock() }

// Free ends what Take began.
func (t *Turns) Free() { t.taken.Unlock() }

// Call has the agent call a tool and gives the text that it streams, and how many tool calls it reported with their beginning and, behind
// that, their end.
func (t *Turns) Call(ctx context.Context, tool string, arguments []byte) (text string, reported int, err error) {
	if t.behind { // the answer to one more prompt comes behind all that was kept for this client
		if _, err := t.Say(ctx, "Go on."); err != nil {
			return "", 0, err
		}
		t.behind = false
	}
	if _, err := t.Say(ctx, fmt.Sprintf("/call %s %s", tool, arguments)); err != nil {
		return "", 0, err
	}
	text, reported = t.heard()
	return text, reported, nil
}

// heard is what came of the present turn.
func (t *Turns) heard() (text string, reported int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, open := range t.open {
		if !open {
			reported++
		}
	}
	return t.said.String(), reported
}

// Say prompts the agent and gives the text that it streams.
func (t *Turns) Say(ctx context.Context, line string) (text string, err error) {
	t.mu.Lock()
	t.said.Reset()
	t.open = map[string]bool{}
	t.mu.Unlock()
	params := jsonrpc.AppendString([]byte(`{"sessionId":`), t.session)
	params = jsonrpc.AppendString(append(params, `,"prompt":[{"type":"text","text":`...), line)
	reply, err := t.p.Call(ctx, acp.MethodSessionPrompt, append(params, "}]}"...), 3*Patience)
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	if err != nil {
		return "", err
	}
	var end struct {
		StopReason string `json:"stopReason"`
	}
	if err := json.Unmarshal(reply.Result, &end); err != nil || end.StopReason != "end_turn" {
		return "", fmt.Errorf("%w: %.80s", ErrTurn, reply.Result)
	}
	text, _ = t.heard()
	return text, nil
}

// Hear takes what the agent says, on the goroutine that reads the socket: the answer to the prompt comes behind it.
func (t *Turns) Hear(params []byte) {
	var update struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			SessionUpdate string         `json:"sessionUpdate"`
			ToolCallID    string         `json:"toolCallId"`
			Status        string         `json:"status"`
			Content       jsontext.Value `json:"content"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &update) != nil || update.SessionID != t.session {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch id := update.Update.ToolCallID; update.Update.SessionUpdate {
	case "agent_message_chunk":
		var content struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(update.Update.Content, &content) == nil {
			t.said.WriteString(content.Text)
		}
	case "tool_call":
		t.open[id] = true
	case "tool_call_update":
		if s := update.Update.Status; t.open[id] && (s == "completed" || s == "failed") {
			t.open[id] = false
		}
	}
}

// NewTurns is for the session with that id, on a socket that owns it; resumed says that the session has had another before.
func NewTurns(p *peer.Peer, session string, resumed bool) *Turns {
	return &Turns{p: p, session: session, behind: resumed, open: map[string]bool{}}
}
