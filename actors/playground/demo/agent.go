package demo

import (
	"context"
	"crypto/rand"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// Agent answers the methods of ACP. Its methods are called by the SDK, requests each on a goroutine of its own.
type Agent struct {
	conn        *acp.AgentSideConnection
	tap         *tap
	out         io.Writer
	err         io.Writer
	transcripts transcripts
	version     string

	mu       sync.Mutex
	sessions map[acp.SessionId]*conversation
	opened   []jsontext.Value // parameters of session/new as they came, in wire order, not yet taken
}

// conversation is one session of the client.
type conversation struct {
	id      acp.SessionId
	params  jsontext.Value // of session/new, for /new
	servers []server
	turns   []turn // prompts that have arrived and are not answered, in wire order
	calls   int
}

// turn is one prompt between its arrival and its answer.
type turn struct {
	ctx    context.Context
	cancel context.CancelFunc
	taken  bool
}

var _ acp.Agent = (*Agent)(nil)
var _ acp.AgentLoader = (*Agent)(nil)

// arrived is told of each message in wire order, before the SDK sees it: a prompt opens its turn here and a cancel ends
// the turns that came before it, whatever order the SDK's goroutines run in.
func (a *Agent) arrived(message arrival) {
	switch message.Method {
	case acp.AgentMethodSessionNew:
		a.mu.Lock()
		a.opened = append(a.opened, message.Params)
		a.mu.Unlock()
	case acp.AgentMethodSessionPrompt, acp.AgentMethodSessionCancel:
		var of struct {
			SessionID acp.SessionId `json:"sessionId"`
		}
		if json.Unmarshal(message.Params, &of) != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		session := a.sessions[of.SessionID]
		switch {
		case session == nil:
		case message.Method == acp.AgentMethodSessionPrompt:
			ctx, cancel := context.WithCancel(context.Background())
			session.turns = append(session.turns, turn{ctx: ctx, cancel: cancel})
		default:
			for _, turn := range session.turns {
				turn.cancel()
			}
		}
	}
}

// Initialize offers load, resume and close; text and links are all it reads.
func (a *Agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "acpod-demo", Version: a.version, Title: acp.Ptr("acpod demo agent")},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:     true,
			McpCapabilities: acp.McpCapabilities{Http: true},
			SessionCapabilities: acp.SessionCapabilities{
				Resume: &acp.SessionResumeCapabilities{}, Close: &acp.SessionCloseCapabilities{},
			},
		},
		AuthMethods: []acp.AuthMethod{},
	}, nil
}

// NewSession opens a conversation and, like many agents, lists the tools of its servers before it answers.
func (a *Agent) NewSession(ctx context.Context, request acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	a.mu.Lock()
	var params jsontext.Value
	if len(a.opened) > 0 {
		params, a.opened = a.opened[0], a.opened[1:]
	}
	a.mu.Unlock()
	id := acp.SessionId("demo-" + strings.ToLower(rand.Text()))
	a.open(&conversation{id: id, params: params}, request.McpServers)
	return acp.NewSessionResponse{SessionId: id}, nil
}

// LoadSession replays the transcript as updates, then answers.
func (a *Agent) LoadSession(ctx context.Context, request acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	entries, err := a.transcripts.read(request.SessionId)
	if err != nil {
		return acp.LoadSessionResponse{}, unknownSession(err)
	}
	for _, entry := range entries {
		update := acp.UpdateAgentMessageText(entry.Text)
		if entry.Role == roleUser {
			update = acp.UpdateUserMessageText(entry.Text)
		}
		if err := a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: request.SessionId, Update: update}); err != nil {
			return acp.LoadSessionResponse{}, err
		}
	}
	a.open(&conversation{id: request.SessionId}, request.McpServers)
	return acp.LoadSessionResponse{}, nil
}

// ResumeSession opens a conversation again without a word of what was said.
func (a *Agent) ResumeSession(_ context.Context, request acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	if _, err := a.transcripts.read(request.SessionId); err != nil {
		return acp.ResumeSessionResponse{}, unknownSession(err)
	}
	a.open(&conversation{id: request.SessionId}, request.McpServers)
	return acp.ResumeSessionResponse{}, nil
}

func unknownSession(err error) error {
	return &acp.RequestError{Code: -32002, Message: "no such session", Data: map[string]any{"reason": err.Error()}}
}

func (a *Agent) open(session *conversation, declared []acp.McpServer) {
	session.servers = connect(declared)
	a.mu.Lock()
	former := a.sessions[session.id]
	a.sessions[session.id] = session
	a.mu.Unlock()
	a.transcripts.start(session.id)
	if former != nil {
		a.end(former)
	}
}

// CloseSession cancels what runs and lets the servers go.
func (a *Agent) CloseSession(_ context.Context, request acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	a.mu.Lock()
	session := a.sessions[request.SessionId]
	delete(a.sessions, request.SessionId)
	a.mu.Unlock()
	if session == nil {
		return acp.CloseSessionResponse{}, unknownSession(errors.New("never opened or closed before"))
	}
	a.end(session)
	return acp.CloseSessionResponse{}, nil
}

// end cancels what runs in a conversation and lets its servers go.
func (a *Agent) end(session *conversation) {
	a.mu.Lock()
	for _, turn := range session.turns {
		turn.cancel()
	}
	a.mu.Unlock()
	for _, server := range session.servers {
		server.close()
	}
}

// Cancel has nothing left to do: arrived has ended the turn when the message came.
func (a *Agent) Cancel(context.Context, acp.CancelNotification) error { return nil }

// Prompt does what each line says, in order.
func (a *Agent) Prompt(_ context.Context, request acp.PromptRequest) (acp.PromptResponse, error) {
	session, ctx := a.take(request.SessionId)
	if session == nil {
		return acp.PromptResponse{}, unknownSession(errors.New("open it with session/new first"))
	}
	defer a.answered(session, ctx)
	var text []string
	for _, block := range request.Prompt {
		switch {
		case block.Text != nil:
			text = append(text, block.Text.Text)
		case block.ResourceLink != nil:
			text = append(text, "["+block.ResourceLink.Name+"]("+block.ResourceLink.Uri+")")
		}
	}
	a.transcripts.add(session.id, roleUser, strings.Join(text, "\n"))
	script := script{agent: a, session: session}
	for line := range strings.Lines(strings.Join(text, "\n")) {
		err := script.line(ctx, strings.TrimRight(line, "\r\n"))
		if ctx.Err() != nil {
			return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		}
		if err != nil {
			return acp.PromptResponse{}, err
		}
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// take finds the turn that arrived opened for this prompt.
func (a *Agent) take(id acp.SessionId) (*conversation, context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	session := a.sessions[id]
	if session == nil {
		return nil, nil
	}
	for i := range session.turns {
		if !session.turns[i].taken {
			session.turns[i].taken = true
			return session, session.turns[i].ctx
		}
	}
	return nil, nil
}

func (a *Agent) answered(session *conversation, ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range session.turns {
		if session.turns[i].ctx == ctx {
			session.turns[i].cancel()
			session.turns = append(session.turns[:i:i], session.turns[i+1:]...)
			return
		}
	}
}

func (a *Agent) hangUp() {
	a.mu.Lock()
	sessions := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	for _, session := range sessions {
		a.end(session)
	}
}

func (a *Agent) say(ctx context.Context, session acp.SessionId, update acp.SessionUpdate) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: session, Update: update})
}

// What this agent does not offer is answered as the protocol says.

// Authenticate is not offered.
func (a *Agent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, acp.NewMethodNotFound(acp.AgentMethodAuthenticate)
}

// ListSessions is not offered.
func (a *Agent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

// SetSessionConfigOption is not offered.
func (a *Agent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

// SetSessionMode is not offered.
func (a *Agent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

func badLine(format string, values ...any) string {
	return "error: " + fmt.Sprintf(format, values...) + "\n"
}
