package demo

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"

	acp "github.com/coder/acp-go-sdk"
)

// What the SDK has no name for: newer methods of ACP, and this agent's own.
const (
	methodDelete   = "session/delete"
	methodSetTitle = "session/set_title"
	methodEcho     = "_demo/echo"
	methodFail     = "_demo/fail"
	methodNote     = "_demo/note"
	methodNoted    = "_demo/noted"
)

// offerMore adds to the answer of initialize what the SDK cannot say.
func (a *Agent) offerMore(result jsontext.Value) jsontext.Value {
	var offered map[string]any
	if a.does[plain] || json.Unmarshal(result, &offered) != nil {
		return result
	}
	capabilities, _ := offered["agentCapabilities"].(map[string]any)
	ofSessions, _ := capabilities["sessionCapabilities"].(map[string]any)
	if ofSessions == nil {
		return result
	}
	ofSessions["delete"], ofSessions["title"] = map[string]any{}, map[string]any{}
	more, err := json.Marshal(offered)
	if err != nil {
		return result
	}
	return more
}

// beyond answers what the SDK does not know. True says that it was that.
func (a *Agent) beyond(message arrival) bool {
	switch message.Method {
	case methodEcho:
		_ = a.out.frame(`{"jsonrpc":"2.0","id":`, string(message.ID), `,"result":`, string(message.Params), `}`)
	case methodFail:
		_ = a.out.frame(`{"jsonrpc":"2.0","id":`, string(message.ID), `,"error":`, string(message.Params), `}`)
	case methodNote:
		_ = a.out.frame(`{"jsonrpc":"2.0","method":"`, methodNoted, `","params":`, string(message.Params), `}`)
	case methodDelete, methodSetTitle, acp.AgentMethodSessionFork:
		if a.does[plain] {
			return false // the SDK knows none of them
		}
		a.asides.Go(func() { a.aside(message) })
	default:
		return false
	}
	return true
}

func (a *Agent) aside(message arrival) {
	var params struct {
		SessionID  acp.SessionId  `json:"sessionId"`
		Cwd        string         `json:"cwd"`
		MCPServers jsontext.Value `json:"mcpServers"`
		Title      jsontext.Value `json:"title"`
	}
	result, err := "{}", json.Unmarshal(message.Params, &params)
	if err == nil {
		switch message.Method {
		case methodDelete:
			err = a.remove(params.SessionID)
		case methodSetTitle:
			err = a.out.frame(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`, string(params.SessionID),
				`","update":{"sessionUpdate":"session_info_update","title":`, string(params.Title), `}}}`)
		case acp.AgentMethodSessionFork:
			result, err = a.fork(params.SessionID, params.Cwd, params.MCPServers, message.Params)
		}
	}
	if err == nil {
		_ = a.out.frame(`{"jsonrpc":"2.0","id":`, string(message.ID), `,"result":`, result, `}`)
		return
	}
	var refused *acp.RequestError
	if !errors.As(err, &refused) {
		refused = acp.NewInvalidParams(map[string]any{"reason": err.Error()})
	}
	if answer, err := json.Marshal(refused); err == nil {
		_ = a.out.frame(`{"jsonrpc":"2.0","id":`, string(message.ID), `,"error":`, string(answer), `}`)
	}
}

func (a *Agent) remove(id acp.SessionId) error {
	a.close(id)
	if err := a.transcripts.remove(id); err != nil {
		return unknownSession(err)
	}
	return nil
}

// fork opens a session that starts with what another was told.
func (a *Agent) fork(from acp.SessionId, folder string, servers, params jsontext.Value) (string, error) {
	if _, err := a.known(from); err != nil {
		return "", err
	}
	var declared []acp.McpServer
	if len(servers) > 0 {
		if err := json.Unmarshal(servers, &declared); err != nil {
			return "", err
		}
	}
	session := &conversation{id: newID(), params: params}
	if err := a.transcripts.copy(from, session.id); err != nil {
		return "", unknownSession(err)
	}
	a.open(session, folder, declared)
	result, err := json.Marshal(acp.NewSessionResponse{SessionId: session.id, Modes: a.modes(session), ConfigOptions: a.options(session)})
	return string(result), err
}
