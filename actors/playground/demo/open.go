package demo

import (
	"context"
	"crypto/rand"
	"encoding/json/jsontext"
	"errors"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// NewSession opens a conversation and, like many agents, lists the tools of its servers before it answers.
func (a *Agent) NewSession(ctx context.Context, request acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	params := a.take(acp.AgentMethodSessionNew)
	if a.does[login] && !a.loggedIn() {
		return acp.NewSessionResponse{}, acp.NewAuthRequired(nil)
	}
	for _, entry := range request.McpServers {
		switch {
		case entry.Http != nil && a.does[refuseHTTP]:
			return acp.NewSessionResponse{}, acp.NewInvalidParams(map[string]any{"reason": "no http entry is taken"})
		case entry.Http != nil && a.does[muteHTTP]:
			<-ctx.Done()
			return acp.NewSessionResponse{}, ctx.Err()
		}
	}
	session := &conversation{id: newID(), params: params}
	if a.does[early] {
		if err := a.say(ctx, session.id, acp.UpdateAgentMessageText("early\n")); err != nil {
			return acp.NewSessionResponse{}, err
		}
	}
	a.open(session, request.Cwd, request.McpServers)
	return acp.NewSessionResponse{SessionId: session.id, Modes: a.modes(session), ConfigOptions: a.options(session)}, nil
}

func newID() acp.SessionId { return acp.SessionId("demo-" + strings.ToLower(rand.Text())) }

// LoadSession replays the transcript as updates, then answers.
func (a *Agent) LoadSession(ctx context.Context, request acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	params := a.take(acp.AgentMethodSessionLoad)
	entries, err := a.known(request.SessionId)
	if err == nil {
		err = a.replay(ctx, request.SessionId, entries)
	}
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	session := &conversation{id: request.SessionId, params: params}
	a.open(session, request.Cwd, request.McpServers)
	return acp.LoadSessionResponse{Modes: a.modes(session), ConfigOptions: a.options(session)}, nil
}

// ResumeSession opens a conversation again without a word of what was said, unless it misbehaves.
func (a *Agent) ResumeSession(ctx context.Context, request acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	params := a.take(acp.AgentMethodSessionResume)
	entries, err := a.known(request.SessionId)
	if err == nil && a.does[replays] {
		err = a.replay(ctx, request.SessionId, entries)
	}
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	session := &conversation{id: request.SessionId, params: params}
	a.open(session, request.Cwd, request.McpServers)
	return acp.ResumeSessionResponse{Modes: a.modes(session), ConfigOptions: a.options(session)}, nil
}

// known reads the transcript of a session that is to be opened again.
func (a *Agent) known(id acp.SessionId) ([]entry, error) {
	if a.does[forgets] {
		return nil, unknownSession(errors.New("this agent forgets"))
	}
	if a.does[flaky] && a.transcripts.firstTry(id) {
		return nil, acp.NewInternalError(map[string]any{"reason": "the first try fails"})
	}
	entries, err := a.transcripts.read(id)
	if err != nil {
		return nil, unknownSession(err)
	}
	return entries, nil
}

func (a *Agent) replay(ctx context.Context, id acp.SessionId, entries []entry) error {
	for _, entry := range entries {
		update := acp.UpdateAgentMessageText(entry.Text)
		switch entry.Role {
		case roleUser:
			update = acp.UpdateUserMessageText(entry.Text)
		case roleFolder:
			continue
		}
		if err := a.say(ctx, id, update); err != nil {
			return err
		}
	}
	return nil
}

func unknownSession(err error) error {
	return &acp.RequestError{Code: -32002, Message: "no such session", Data: map[string]any{"reason": err.Error()}}
}

// take gives the parameters, as they came, of what opens a session.
func (a *Agent) take(method string) jsontext.Value {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := a.opened[method]
	if len(waiting) == 0 {
		return nil
	}
	a.opened[method] = waiting[1:]
	return waiting[0]
}

func (a *Agent) open(session *conversation, folder string, declared []acp.McpServer) {
	if a.does[noHTTP] {
		declared = withoutHTTP(declared)
	}
	session.servers = connect(declared)
	session.mode, session.pace = modeAsk, paceFast
	a.mu.Lock()
	former := a.sessions[session.id]
	a.sessions[session.id] = session
	a.mu.Unlock()
	a.transcripts.start(session.id, folder)
	if former != nil {
		a.end(former)
	}
}

func withoutHTTP(declared []acp.McpServer) (taken []acp.McpServer) {
	for _, entry := range declared {
		if entry.Http == nil {
			taken = append(taken, entry)
		}
	}
	return taken
}

// ListSessions lists the transcripts, the one last written first.
func (a *Agent) ListSessions(_ context.Context, request acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	if a.does[plain] {
		return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
	}
	found := []acp.SessionInfo{}
	for _, one := range a.transcripts.list() {
		if request.Cwd == nil || *request.Cwd == one.Cwd {
			found = append(found, one)
		}
	}
	return acp.ListSessionsResponse{Sessions: found}, nil
}

// CloseSession cancels what runs and lets the servers go.
func (a *Agent) CloseSession(_ context.Context, request acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	if !a.close(request.SessionId) {
		return acp.CloseSessionResponse{}, unknownSession(errors.New("never opened or closed before"))
	}
	return acp.CloseSessionResponse{}, nil
}

func (a *Agent) close(id acp.SessionId) bool {
	a.mu.Lock()
	session := a.sessions[id]
	delete(a.sessions, id)
	a.mu.Unlock()
	if session == nil {
		return false
	}
	a.end(session)
	return true
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
