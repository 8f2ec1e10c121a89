package session

import (
	"strconv"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// serverState is what `_meta["acpod.dev/servers"]` says of a declared server.
type serverState string

const (
	stateConnecting = serverState(tunnel.Connecting)
	stateReady      = serverState(tunnel.Ready)
	stateRefused    = serverState("refused")
	stateSuperseded = serverState(tunnel.Superseded)
	stateWithdrawn  = serverState(tunnel.Withdrawn)
	stateIgnored    = serverState("ignored")
)

// planned is what becomes of one declaration.
type planned struct {
	acp.Declared
	state  serverState // stateConnecting = a tunnel is opened
	reason string
	attach uint64 // number of the declaration
}

// plan judges a client's declarations. granted tells whether the operator admits a server of that name. A repeated id is
// not there: its first entry stands for it. attach is the number of the first declaration.
func plan(declared []acp.Declared, attach uint64, granted func(name string) bool) []planned {
	states := map[acp.Verdict]serverState{acp.Connect: stateConnecting, acp.Refused: stateRefused, acp.Ignored: stateIgnored, acp.Superseded: stateSuperseded}
	out := make([]planned, 0, len(declared))
	for i, d := range declared {
		state, told := states[d.Verdict]
		if !told {
			continue
		}
		p := planned{Declared: d, state: state, reason: d.Reason, attach: attach + uint64(i)}
		if state == stateConnecting && !granted(d.Name) {
			p.state, p.reason = stateRefused, "the pod grants no server of this name: its config needs [mcp] and an entry of [[mcp.acp_servers]]"
		}
		out = append(out, p)
	}
	return out
}

// report is one server as a client is told of it.
type report struct {
	name, id          string
	state             serverState
	reason            string
	listed            bool // offered and withheld are known
	offered, withheld int
}

// facadeReport is how the agent reaches the facade.
type facadeReport struct {
	state    string // ready | off | failed | bypass
	reason   string
	delivery string // agent.delivery, as it was chosen for this agent
}

const (
	facadeReady  = "ready"
	facadeOff    = "off"
	facadeFailed = "failed"
)

// appendServers appends the members `"servers":[…],"facade":{…}`.
func appendServers(b []byte, servers []report, facade facadeReport) []byte {
	b = append(b, `"servers":[`...)
	for i, s := range servers {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(append(b, `{"name":`...), s.name)
		b = jsonrpc.AppendString(append(b, `,"id":`...), s.id)
		b = jsonrpc.AppendString(append(b, `,"state":`...), string(s.state))
		if s.reason != "" {
			b = jsonrpc.AppendString(append(b, `,"reason":`...), s.reason)
		}
		if s.listed {
			b = strconv.AppendInt(append(b, `,"tools":{"offered":`...), int64(s.offered), 10)
			b = strconv.AppendInt(append(b, `,"withheld":`...), int64(s.withheld), 10)
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	b = jsonrpc.AppendString(append(b, `],"facade":{"state":`...), facade.state)
	if facade.reason != "" {
		b = jsonrpc.AppendString(append(b, `,"reason":`...), facade.reason)
	}
	b = jsonrpc.AppendString(append(b, `,"delivery":`...), facade.delivery)
	return append(b, '}')
}
