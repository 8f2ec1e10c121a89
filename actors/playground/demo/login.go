package demo

import (
	"context"
	"os"
	"path/filepath"

	acp "github.com/coder/acp-go-sdk"
)

// loginMethod is the one way to log in: nothing is asked.
const loginMethod = "demo"

// logins are offered only by an agent that wants one.
func (a *Agent) logins() []acp.AuthMethod {
	if !a.does[login] {
		return []acp.AuthMethod{}
	}
	return []acp.AuthMethod{{Agent: &acp.AuthMethodAgent{Id: loginMethod, Name: "Log in to nothing"}}}
}

// Whether somebody is logged in is a file, as it is for agents: it holds for the processes after this one.
func (a *Agent) loginFile() string { return filepath.Join(a.transcripts.dir, "login") }

func (a *Agent) loggedIn() bool {
	_, err := os.Stat(a.loginFile())
	return a.does[login] && err == nil
}

// Authenticate logs in.
func (a *Agent) Authenticate(_ context.Context, request acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	if !a.does[login] {
		return acp.AuthenticateResponse{}, acp.NewMethodNotFound(acp.AgentMethodAuthenticate)
	}
	if request.MethodId != loginMethod {
		return acp.AuthenticateResponse{}, acp.NewInvalidParams(map[string]any{"reason": "no such method"})
	}
	if err := os.MkdirAll(a.transcripts.dir, 0o700); err != nil {
		return acp.AuthenticateResponse{}, acp.NewInternalError(nil)
	}
	if err := os.WriteFile(a.loginFile(), nil, 0o600); err != nil {
		return acp.AuthenticateResponse{}, acp.NewInternalError(nil)
	}
	return acp.AuthenticateResponse{}, nil
}

// UnstableLogout logs out. The SDK's name is older than the protocol's.
func (a *Agent) UnstableLogout(context.Context, acp.UnstableLogoutRequest) (acp.UnstableLogoutResponse, error) {
	if !a.loggedIn() {
		return acp.UnstableLogoutResponse{}, acp.NewMethodNotFound(acp.AgentMethodLogout)
	}
	if err := os.Remove(a.loginFile()); err != nil {
		return acp.UnstableLogoutResponse{}, acp.NewInternalError(nil)
	}
	return acp.UnstableLogoutResponse{}, nil
}
