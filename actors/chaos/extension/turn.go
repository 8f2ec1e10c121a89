package extension

import (
	"context"
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

	taken sync.Mutex // by a turn
	mu    sync.Mutex
	said  strings.Builder // of the present turn
}

// ErrTurn says that the agent did not end its turn as asked: the text says how.
var ErrTurn = errors.New("the turn did not end with end_turn")

// Take takes the agent for one turn; false: it has one.
func (t *Turns) Take() bool { return t.taken.TryLock() }

// Free ends what Take began.
func (t *Turns) Free() { t.taken.Unlock() }

// Call has the agent call a tool and gives the text that it streams.
func (t *Turns) Call(ctx context.Context, tool string, arguments []byte) (text string, err error) {
	return t.Say(ctx, fmt.Sprintf("/call %s %s", tool, arguments))
}

// Say prompts the agent and gives the text that it streams.
func (t *Turns) Say(ctx context.Context, line string) (text string, err error) {
	t.mu.Lock()
	t.said.Reset()
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
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.String(), nil
}

// Hear takes what the agent says, on the goroutine that reads the socket: the answer to the prompt comes behind it.
func (t *Turns) Hear(params []byte) {
	var update struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			SessionUpdate string `json:"sessionUpdate"`
			Content       struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &update) != nil || update.SessionID != t.session || update.Update.SessionUpdate != "agent_message_chunk" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said.WriteString(update.Update.Content.Text)
}

// NewTurns is for the session with that id, on a socket that owns it.
func NewTurns(p *peer.Peer, session string) *Turns { return &Turns{p: p, session: session} }
