package pod

import "github.com/acpod/acpod/actors/pod/config"

// aloneConnections is how many HTTP connections a facade has that runs alone: nobody's sessions say how many callers there are.
const aloneConnections = 4096

// facadeAlone is a configuration of which only the facade is used: the debug listener runs when somebody named it.
func facadeAlone(l *config.Loaded) *config.Loaded {
	out := *l
	if out.MCP == nil {
		mcp := *config.Default().MCP
		out.MCP = &mcp
	}
	if out.Origin("debug.listen").Layer == config.FromDefault {
		out.Debug.Listen = ""
	}
	out.Agent.Driver = "none"
	return &out
}
