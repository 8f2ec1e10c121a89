package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// spawnAgent starts the process. Its token is an obligation of the agent's generation: whatever ends that, revokes it. Without tools, it starts
// all the same.
func (x *session) spawnAgent(p delivery.Prepared) {
	cfg := x.s.cfg.Agent
	cfg.Dir, cfg.Client = x.folders.Cwd, x.caps.raw
	x.facade = facadeReport{state: facadeOff}
	x.delivering.mode, x.delivering.note = p.Mode, p.Reason
	known, _ := x.s.learned.Now()
	if err := x.reachable(known); err != nil && p.State == delivery.Ready {
		p.State, p.Reason = delivery.Failed, err.Error()
	}
	switch p.State {
	case delivery.Ready:
		x.mint()
		cfg.Env = append(slices.Clone(cfg.Env), delivery.TokenVariable+"="+x.token.text)
	case delivery.Failed, delivery.Bypass:
		x.noTools(string(p.State), p.Reason)
	}
	who := &identity{pids: x.s.pids, entry: pidEntry{x.token.sha, x.id}}
	cfg.Started = who.started
	spec := x.s.agentSpec(cfg, x.c.Self(), "agent")
	inner, token := spec.New, x.token
	spec.New = func() kernel.Behavior { return &incarnation{Behavior: inner(), s: x.s, token: token, who: who} }
	ref, err := x.c.Spawn(spec)
	if err != nil {
		x.revoke()
		x.conv = conversation{}
		x.agentFailed(fmt.Errorf("the agent was not started: %w", err))
		return
	}
	x.conv = conversation{phase: starting, ref: ref}
}

// noTools says that the agent starts without them, or goes on so, and why.
func (x *session) noTools(state, reason string) {
	x.facade = facadeReport{state: state, reason: reason}
	x.c.Log().Error("the session has no tools", "session", acp.SessionTag(x.id), "state", state, "reason", reason)
}

// incarnation is one generation of an agent with what it owes beside the process: its token, and who the process is known to be.
type incarnation struct {
	kernel.Behavior
	s     *Sessions
	token token
	who   *identity
}

// Start implements kernel.Starter.
func (i *incarnation) Start(c *kernel.Ctx) error {
	if i.token.text != "" {
		text, tokens := i.token.text, i.s.tokens
		c.Own("token", func(context.Context, error) { tokens.Revoke(text) })
		c.Own("pid", func(context.Context, error) { i.who.end() })
	}
	i.s.agents.Add(1)
	c.Own("agent", func(context.Context, error) { i.s.agents.Add(-1) })
	if starter, ok := i.Behavior.(kernel.Starter); ok {
		return starter.Start(c)
	}
	return nil
}

// leave asks an agent to end, after all that it was told before.
type leave struct{}

// Receive implements kernel.Behavior.
func (i *incarnation) Receive(c *kernel.Ctx, m kernel.Msg) error {
	if _, ok := m.(leave); ok {
		return errStopAgent
	}
	return i.Behavior.Receive(c, m)
}

// Stop implements kernel.Stopper. The session has revoked the token, unless it was abandoned.
func (i *incarnation) Stop(c *kernel.Ctx, cause error) {
	if i.token.text != "" {
		i.s.tokens.Revoke(i.token.text)
	}
	if stopper, ok := i.Behavior.(kernel.Stopper); ok {
		stopper.Stop(c, cause)
	}
}
