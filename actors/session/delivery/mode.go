package delivery

// Mode is a way in which an agent learns of its tools: a word of agent.delivery. One holds at a time.
type Mode string

// The modes. Every one of them ends in the same facade, with the same policy and audit.
const (
	Auto   Mode = "auto"   // ACP for an agent that takes HTTP servers and is known to honour them, else File
	ACP    Mode = "acp"    // an entry in the mcpServers of session/new: HTTP, or stdio for an agent that takes no HTTP
	File   Mode = "file"   // an entry in the agent's own configuration
	Bridge Mode = "bridge" // a stdio entry whose command is `acpod bridge`
	Proxy  Mode = "proxy"  // a session's own address, with its tools as tools of their own, as an entry in the agent's configuration
)

// TokenVariable is the variable in an agent's environment that holds its token. What is written names it.
const TokenVariable = "OPENAB_SESSION_TOKEN"

// EntryName is what the pod's entry is called among an agent's MCP servers.
const EntryName = "openab"

// SocketVariable tells a bridge the pod's socket.
const SocketVariable = "OPENAB_BROWSER_SOCKET"

// Agent is what is known of an agent before it starts, or after it said what it is.
type Agent struct {
	Name string // agentInfo.name
	HTTP bool   // mcpCapabilities.http
}

// choose gives the mode that holds for that agent; nil = nothing is known but its command. Then a known one is taken for what it was
// when it was last looked at.
func choose(configured Mode, p *Profile, agent *Agent) Mode {
	switch {
	case configured != Auto:
		return configured
	case p.Honours && (agent == nil || agent.HTTP):
		return ACP
	}
	return File
}
