package config

import (
	"fmt"
	"os"
)

// cross checks what no key can be judged by alone.
func (l *Loaded) cross() error {
	for _, rule := range []func(*Loaded) error{
		(*Loaded).sizesFit, (*Loaded).doorsHaveKeys, (*Loaded).agentCanRun, (*Loaded).grantsAreDistinct,
	} {
		if err := rule(l); err != nil {
			return err
		}
	}
	return nil
}

// sizesFit: an account must hold the largest single thing that has to pass through it, or that thing can never pass.
func (l *Loaded) sizesFit() error {
	m := l.Limits
	if need := m.AgentLineBytes + m.ResultBytes; m.SessionBytes < need {
		return l.between("limits.session_bytes", "limits.agent_line_bytes", "limits.result_bytes",
			fmt.Sprintf("%s does not hold one agent_line_bytes (%s) and one result_bytes (%s)", m.SessionBytes, m.AgentLineBytes, m.ResultBytes), "at least "+need.String())
	}
	if m.OutboundBytes < m.AgentLineBytes {
		return l.between("limits.outbound_bytes", "limits.agent_line_bytes", "",
			fmt.Sprintf("%s does not hold one agent_line_bytes (%s)", m.OutboundBytes, m.AgentLineBytes), "at least "+m.AgentLineBytes.String())
	}
	return nil
}

// between blames the key that somebody set: the account if it was set, else the part that outgrew its default.
func (l *Loaded) between(account, part, other, problem, allowed string) error {
	at := l.Origin(account)
	for _, path := range []string{part, other} {
		if at == (Origin{}) {
			at = l.Origin(path)
		}
	}
	return &Error{At: at, Key: account, Problem: problem, Allowed: allowed}
}

// doorsHaveKeys: what others can reach asks for a key.
func (l *Loaded) doorsHaveKeys() error {
	if !IsLoopback(l.ACP.Listen) && len(l.Secrets.ACP) == 0 {
		return &Error{At: l.Origin("acp.listen"), Key: "acp.listen", Problem: quote(l.ACP.Listen) + " is not loopback and there is no key",
			Allowed: "a loopback address, or set acp.auth_key, acp.auth_key_file or acp.keys"}
	}
	if l.Debug.Listen != "" && !IsLoopback(l.Debug.Listen) && l.Secrets.Debug == "" {
		return &Error{At: l.Origin("debug.listen"), Key: "debug.listen", Problem: quote(l.Debug.Listen) + " is not loopback and there is no key",
			Allowed: `a loopback address, "" to turn it off, or set debug.auth_key`}
	}
	return nil
}

func (l *Loaded) agentCanRun() error {
	if l.Agent.Driver == "process" && (len(l.Agent.Command) == 0 || l.Agent.Command[0] == "") {
		return &Error{At: l.Origin("agent.command"), Key: "agent.command", Problem: "is empty", Allowed: `a program and its arguments, or agent.driver = "none"`}
	}
	info, err := os.Stat(l.Agent.Workdir)
	if err != nil {
		return &Error{At: l.Origin("agent.workdir"), Key: "agent.workdir", Problem: quote(l.Agent.Workdir) + " cannot be used: " + reason(err), Allowed: "an existing directory"}
	}
	if !info.IsDir() {
		return &Error{At: l.Origin("agent.workdir"), Key: "agent.workdir", Problem: quote(l.Agent.Workdir) + " is not a directory", Allowed: "an existing directory"}
	}
	return nil
}

// grantsAreDistinct: two grants to one name would make the order of the file decide what is allowed.
func (l *Loaded) grantsAreDistinct() error {
	if l.MCP == nil {
		return nil
	}
	seen := map[string]bool{}
	for i, s := range l.MCP.ACPServers {
		if seen[s.Name] {
			path := fmt.Sprintf("mcp.acp_servers[%d].name", i)
			return &Error{At: l.originOr(path, l.Origin("mcp.acp_servers")), Key: path, Problem: quote(s.Name) + " has a grant already", Allowed: "one table for each name"}
		}
		seen[s.Name] = true
	}
	return nil
}
