package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/acpod/acpod/runtime/kernel"
)

// spawnAgent starts the process. Its token is an obligation of the agent's generation: whatever ends that, revokes it.
func (x *session) spawnAgent() {
	cfg := x.s.cfg.Agent
	cfg.Dir, cfg.Client = x.folders.Cwd, x.caps.raw
	x.facade = facadeReport{state: facadeOff}
	if x.s.cfg.FacadeURL != "" {
		if known, _ := x.s.learned.Now(); known != nil && !known.MCP.HTTP {
			x.facade = noHTTP
		} else {
			x.mint()
			cfg.Env = append(slices.Clone(cfg.Env), tokenVariable+"="+x.token.text)
		}
	}
	spec := x.s.agentSpec(cfg, x.c.Self(), "agent")
	inner, token := spec.New, x.token
	spec.New = func() kernel.Behavior { return &incarnation{Behavior: inner(), s: x.s, token: token} }
	ref, err := x.c.Spawn(spec)
	if err != nil {
		x.revoke()
		x.conv = conversation{}
		x.agentFailed(fmt.Errorf("the agent was not started: %w", err))
		return
	}
	x.conv = conversation{phase: starting, ref: ref}
}

var noHTTP = facadeReport{state: facadeFailed, reason: "the agent takes no MCP servers over http (mcpCapabilities.http)"}

// incarnation is one generation of an agent with what it owes beside the process: its token.
type incarnation struct {
	kernel.Behavior
	s     *Sessions
	token token
}

// Start implements kernel.Starter.
func (i *incarnation) Start(c *kernel.Ctx) error {
	if i.token.text != "" {
		text, tokens := i.token.text, i.s.tokens
		c.Own("token", func(context.Context, error) { tokens.Revoke(text) })
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
