package chaos

import (
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/chaos/extension"
)

// The bounds of the pod that a run starts. They are small, so that a short attack reaches them.
const (
	frameBytes      = 2 << 20
	requestBytes    = 256 << 10
	resultBytes     = 1 << 20
	toolSchemaBytes = 16 << 10
	toolsPerServer  = 64
	podBytes        = 256 << 20
	tunnelTimeout   = 3 * time.Second
	orphanWindow    = 15 * time.Second // longer than server.TakenBack: what has to end at once is told from what may run on
	keepalive       = 2 * time.Second
	pongTimeout     = 4 * time.Second
	writeTimeout    = 6 * time.Second
	sessionTTL      = 3 * time.Second
)

// ownLimits are those of the pod that we start.
var ownLimits = extension.Limits{
	Frame: frameBytes, Request: requestBytes, Result: resultBytes, ToolSchema: toolSchemaBytes, Tools: toolsPerServer,
	Tunnel: tunnelTimeout, Orphan: orphanWindow, Keepalive: keepalive, Pong: pongTimeout, Write: writeTimeout,
}

// documented are the defaults of the contract, which a pod that runs already is taken to have.
var documented = extension.Limits{
	Frame: 8 << 20, Request: 1 << 20, Result: 8 << 20, ToolSchema: 64 << 10, Tools: 256,
	Tunnel: 170 * time.Second, Orphan: 30 * time.Second, Keepalive: 20 * time.Second, Pong: 20 * time.Second, Write: 30 * time.Second,
}

// config is the pod for extensions and callers: sessions without agents, so that nothing stands between a call and what the pod does
// with it.
func config(extensions, sessions int, key, audit, state string) string {
	perExtension := (sessions + extensions - 1) / extensions
	return fmt.Sprintf(`[pod]
drain_timeout = "5s"
[acp]
listen = "127.0.0.1:0"
auth_key = %q
keepalive = %q
pong_timeout = %q
write_timeout = %q
initialize_timeout = "10s"
[agent]
driver = "none"
session_ttl = %q
[mcp]
listen = "127.0.0.1:0"
tunnel_timeout = %q
orphan_window = %q
pin = "off"
[limits]
frame_bytes = "%dB"
request_bytes = "%dB"
result_bytes = "%dB"
connection_bytes = "12MiB"
session_bytes = "8MiB"
outbound_bytes = "6MiB"
agent_line_bytes = "2MiB"
pod_bytes = "%dB"
connections = %d
sessions = %d
sessions_per_connection = %d
tools_per_server = %d
tool_schema_bytes = "%dB"
[audit]
path = %q
[state]
dir = %q
[debug]
listen = "127.0.0.1:0"
flight_bytes = "4MiB"
`, key, keepalive, pongTimeout, writeTimeout, sessionTTL, tunnelTimeout, orphanWindow,
		frameBytes, requestBytes, resultBytes, podBytes, 3*extensions+100, 3*sessions+100, max(128, 2*perExtension),
		toolsPerServer, toolSchemaBytes, audit, state)
}
