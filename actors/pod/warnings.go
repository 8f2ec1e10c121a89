package pod

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session/delivery"
)

// Warnings is what an operator should know about a configuration that is valid all the same.
func Warnings(l *config.Loaded) []string {
	executable, _ := os.Executable()
	return append(configWarnings(l), memoryWarnings(worstCase(&l.Config, thisMachine(executable)), operatorsLimit(), roomIn(here()))...)
}

// configWarnings are those that do not depend on the machine.
func configWarnings(l *config.Loaded) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(l.Secrets.ACP) == 0 {
		if l.Agent.Driver == "process" && !isDemo(l.Agent.Command) {
			add("acp.auth_key is not set: every local process, and every page of an allowed origin, can use the agent as you; set acp.auth_key or acp.auth_key_file")
		} else {
			add("acp.auth_key is not set: every local process can connect")
		}
	}
	for _, key := range l.Secrets.ACP {
		if !config.IsToken(key.Key) {
			add("the key %s has a byte that cannot travel in a WebSocket subprotocol: browsers cannot send it; use letters, digits and !#$%%&'*+-.^_`|~", keyName(key.Name))
		}
	}
	if len(l.Secrets.ACP) > 0 && len(l.ACP.AllowedOrigins) > 0 {
		add("acp.allowed_origins has no effect: with a key, Origin is not looked at")
	}
	if l.MCP != nil && l.MCP.Anonymous {
		add("mcp.anonymous is true: every local process can use the providers through the facade; set mcp.anonymous = false to ask for a token or the key")
	}
	if l.MCP != nil && !l.MCP.Anonymous && l.Secrets.MCP != "" && !config.IsToken(l.Secrets.MCP) {
		add("the key in mcp.auth_key_file has a byte that some clients cannot send as a bearer token")
	}
	m := l.Limits
	if m.ConnectionBytes < m.FrameBytes {
		add("limits.connection_bytes (%s) does not hold one frame of limits.frame_bytes (%s): such a frame is never read", m.ConnectionBytes, m.FrameBytes)
	}
	if m.PodBytes < m.ConnectionBytes || m.PodBytes < m.SessionBytes {
		add("limits.pod_bytes (%s) is less than one connection or session may use", m.PodBytes)
	}
	if l.MCP != nil && m.ProviderBytes < m.ResultBytes {
		add("limits.provider_bytes (%s) does not hold one result of limits.result_bytes (%s): such a result of a server in mcp.json is refused", m.ProviderBytes, m.ResultBytes)
	}
	if m.RequestBytes > m.FrameBytes {
		add("limits.request_bytes (%s) is more than limits.frame_bytes (%s): the frame's limit counts", m.RequestBytes, m.FrameBytes)
	}
	if delivery.Mode(l.Agent.Delivery) != delivery.Auto && (l.MCP == nil || l.Agent.Driver != "process") {
		add("agent.delivery (%s) has no effect: there is no facade that an agent could be told of; it needs [mcp] and agent.driver = \"process\"", l.Origin("agent.delivery"))
	}
	if l.Agent.BridgeSocket != "" && !bridged(l) {
		add("agent.bridge_socket (%s) has no effect: nobody comes by the bridge; it needs [mcp] and agent.delivery = \"bridge\", \"acp\" or \"auto\"", l.Origin("agent.bridge_socket"))
	}
	if l.Agent.AllowDirect {
		add("agent.allow_direct is true: an agent whose configuration leads around the policy has tools all the same")
	}
	for _, path := range notYet {
		if l.Origin(path).Layer != config.FromDefault {
			add("%s (%s) has no effect in this version", path, l.Origin(path))
		}
	}
	return out
}

// notYet are keys of the format whose features this version does not have.
var notYet = []string{
	"debug.actions",
}

func keyName(name string) string {
	if name == "" {
		return "acp.auth_key"
	}
	return "of " + name
}

// tell logs what a start says beside the addresses.
func tell(log *slog.Logger, l *config.Loaded) {
	for _, text := range Warnings(l) {
		log.Warn(text)
	}
	if l.MCP == nil {
		log.Info("no [mcp] in the configuration: no facade, no token, agents get no tools of clients")
	}
	if l.Agent.Driver == "none" {
		log.Info("agent.driver is none: sessions only serve tools, prompts are refused")
	}
}
