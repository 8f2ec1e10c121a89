package session

import (
	"context"
	"crypto/sha256"
	"encoding/json/jsontext"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// token is what a session knows of the one token that it has; the zero value is none.
type token struct {
	text   string
	sha    [32]byte
	caller capability.Caller // who comes with it, or from the process that was given it
}

// mint makes the token of this session's next agent. It is revoked by that agent's generation, and before: see revoke.
func (x *session) mint() {
	x.revoke()
	caller := capability.Caller{Desk: x.desk, View: x.view, Tag: acp.SessionTag(x.id), Account: x.c.Account(), Audit: x.s.cfg.Desk.Audit}
	text := x.s.tokens.Mint(caller)
	caller.Token = sha256.Sum256([]byte(text))
	x.token = token{text: text, sha: caller.Token, caller: caller}
}

// revoke ends the token, and the calls made with it, now: before the process that has it is told anything.
func (x *session) revoke() {
	if x.token.text == "" {
		return
	}
	x.s.tokens.Revoke(x.token.text)
	_ = x.desk.Signal(capability.EndCalls{Reason: capability.EndToken, Token: x.token.sha}) // a desk that is gone has ended them
	x.token = token{}
}

// clientToken is `_meta["acpod.dev/facade"]`: with agent.driver = "none" a loopback client calls the facade itself. It keeps
// its token over a resume, because it is the same client. nil = it gets none.
func (x *session) clientToken() jsontext.Value {
	if x.s.cfg.Driver != DriverNone || x.s.cfg.FacadeURL == "" || x.client == nil || !x.client.Loopback() {
		return nil
	}
	if x.token.text == "" {
		x.mint()
		text, tokens := x.token.text, x.s.tokens
		x.c.Own("token", func(context.Context, error) { tokens.Revoke(text) })
	}
	b := jsonrpc.AppendString([]byte(`{"url":`), x.s.cfg.FacadeURL)
	b = jsonrpc.AppendString(append(b, `,"token":`...), x.token.text)
	return append(b, '}')
}
