package config

import "time"

// Config is the whole configuration in Go's types. The tags are the schema: koanf is the key; min and max are inclusive
// bounds in the key's own notation; enum lists the words allowed; check names one of the functions in [checks]; a
// secret is never shown.
type Config struct {
	Pod    Pod    `koanf:"pod"`
	ACP    ACP    `koanf:"acp"`
	Agent  Agent  `koanf:"agent"`
	MCP    *MCP   `koanf:"mcp"` // nil when the given configuration has no [mcp]: then there is no facade and no token
	Limits Limits `koanf:"limits"`
	Audit  Audit  `koanf:"audit"`
	State  State  `koanf:"state"`
	Debug  Debug  `koanf:"debug"`
}

// Pod is the process as a whole.
type Pod struct {
	DrainTimeout time.Duration `koanf:"drain_timeout" min:"0s" max:"24h"` // how long open turns may still end after SIGTERM
}

// ACP is the public listener and the rules of its sockets.
type ACP struct {
	Listen            string        `koanf:"listen" check:"address"`
	AuthKey           string        `koanf:"auth_key" secret:"true"`
	AuthKeyFile       string        `koanf:"auth_key_file"`
	AllowedOrigins    []string      `koanf:"allowed_origins" check:"origin"`
	Playground        bool          `koanf:"playground"`
	Keepalive         time.Duration `koanf:"keepalive" min:"10ms" max:"24h"`
	PongTimeout       time.Duration `koanf:"pong_timeout" min:"10ms" max:"24h"`
	WriteTimeout      time.Duration `koanf:"write_timeout" min:"10ms" max:"24h"`
	InitializeTimeout time.Duration `koanf:"initialize_timeout" min:"10ms" max:"24h"`
	Trace             bool          `koanf:"trace"` // OPENAB_ACP_TRACE: each frame's envelope at debug level, never its payload
	Keys              []ACPKey      `koanf:"keys"`
}

// ACPKey is one client's own key.
type ACPKey struct {
	Name    string `koanf:"name" check:"label" required:"true"`
	Key     string `koanf:"key" secret:"true"`
	KeyFile string `koanf:"key_file"`
}

// Agent is the child process that answers prompts, and the life of its sessions.
type Agent struct {
	Driver            string            `koanf:"driver" enum:"process|none"`
	Command           []string          `koanf:"command" check:"argument"`
	Profile           string            `koanf:"profile" enum:"auto|generic|claude|codex|gemini|opencode|cursor|kiro"`
	Workdir           string            `koanf:"workdir" check:"nonempty"`
	Env               map[string]string `koanf:"env" secret:"true"`
	InheritEnv        []string          `koanf:"inherit_env" check:"envname"`
	ForwardMeta       []string          `koanf:"forward_meta" check:"nonempty"`
	Modes             []string          `koanf:"modes" check:"nonempty"`
	Permissions       string            `koanf:"permissions" enum:"relay|allow|deny"`
	Permission        []PermissionRule  `koanf:"permission"`
	PermissionTimeout time.Duration     `koanf:"permission_timeout" min:"10ms" max:"168h"`
	Queue             int               `koanf:"queue" min:"0" max:"1000"`
	MaxSessions       int               `koanf:"max_sessions" min:"1" max:"100000"`
	SessionTTL        time.Duration     `koanf:"session_ttl" min:"10ms" max:"8760h"`
	StartTimeout      time.Duration     `koanf:"start_timeout" min:"10ms" max:"24h"`
	NewTimeout        time.Duration     `koanf:"new_timeout" min:"10ms" max:"24h"`
	TurnIdleTimeout   time.Duration     `koanf:"turn_idle_timeout" min:"10ms" max:"168h"`
	CancelTimeout     time.Duration     `koanf:"cancel_timeout" min:"10ms" max:"24h"`
	StopGrace         time.Duration     `koanf:"stop_grace" min:"10ms" max:"1h"`
	MemoryMax         Size              `koanf:"memory_max" min:"0B" max:"1TiB"`      // of one agent and all that it starts, by a cgroup; 0 = none
	CPUMax            string            `koanf:"cpu_max" check:"processors-or-empty"` // how many processors; empty = all
	PIDsMax           int               `koanf:"pids_max" min:"0" max:"4194304"`      // processes and threads; 0 = none
	Delivery          string            `koanf:"delivery" enum:"auto|acp|file|bridge|proxy"`
	AllowDirect       bool              `koanf:"allow_direct"`
	BridgeSocket      string            `koanf:"bridge_socket"`
}

// PermissionRule overrides agent.permissions for one tool of one server.
type PermissionRule struct {
	Server   string `koanf:"server" check:"nonempty" required:"true"`
	Tool     string `koanf:"tool" check:"nonempty" required:"true"`
	Decision string `koanf:"decision" enum:"relay|allow|deny" required:"true"`
}

// MCP is the loopback facade and the policy of what it shows.
type MCP struct {
	Listen        string        `koanf:"listen" check:"loopback"`
	TunnelTimeout time.Duration `koanf:"tunnel_timeout" min:"10ms" max:"24h" seconds:"tunnel_timeout_seconds"`
	CallMax       time.Duration `koanf:"call_max" min:"10ms" max:"168h"`
	OrphanWindow  time.Duration `koanf:"orphan_window" min:"0s" max:"24h"`
	Pin           string        `koanf:"pin" enum:"first-use|off"`
	Anonymous     bool          `koanf:"anonymous"`
	AuthKeyFile   string        `koanf:"auth_key_file"`
	DirectTools   []string      `koanf:"direct_tools" check:"nonempty"`
	Redact        []string      `koanf:"redact" check:"re2"` // what is taken out of the results of configured servers
	ACPServers    []ACPServer   `koanf:"acp_servers"`
}

// ACPServer grants a client-declared server the tools named, as published. No tools: nothing is offered; "*": all.
type ACPServer struct {
	Name  string   `koanf:"name" check:"server" required:"true"`
	Tools []string `koanf:"tools" check:"nonempty"`
}

// Limits bounds everything that a peer could make the pod hold.
type Limits struct {
	FrameBytes               Size `koanf:"frame_bytes" min:"1KiB" max:"1GiB"`
	RequestBytes             Size `koanf:"request_bytes" min:"1KiB" max:"1GiB"`
	ResultBytes              Size `koanf:"result_bytes" min:"1KiB" max:"1GiB"`
	ConnectionBytes          Size `koanf:"connection_bytes" min:"64KiB" max:"1TiB"`
	SessionBytes             Size `koanf:"session_bytes" min:"1KiB" max:"1TiB"`
	OutboundFrames           int  `koanf:"outbound_frames" min:"1" max:"1000000"`
	OutboundBytes            Size `koanf:"outbound_bytes" min:"1KiB" max:"1TiB"`
	AgentLineBytes           Size `koanf:"agent_line_bytes" min:"1KiB" max:"1GiB"`
	PodBytes                 Size `koanf:"pod_bytes" min:"64KiB" max:"1TiB"`
	ProviderBytes            Size `koanf:"provider_bytes" min:"64KiB" max:"1TiB"`
	Connections              int  `koanf:"connections" min:"1" max:"1000000"`
	ConnectionsPerAddress    int  `koanf:"connections_per_address" min:"0" max:"1000000"`
	Handshakes               int  `koanf:"handshakes" min:"1" max:"1000000"` // sockets that have not said initialize yet
	Sessions                 int  `koanf:"sessions" min:"1" max:"1000000"`
	SessionsPerKey           int  `koanf:"sessions_per_key" min:"0" max:"1000000"`
	SessionsPerConnection    int  `koanf:"sessions_per_connection" min:"1" max:"1000000"`
	PromptsPerConnection     int  `koanf:"prompts_per_connection" min:"1" max:"1000000"`
	ServersPerSession        int  `koanf:"servers_per_session" min:"1" max:"1000"`
	EstablishesPerConnection int  `koanf:"establishes_per_connection" min:"1" max:"1000000"`
	ToolsPerServer           int  `koanf:"tools_per_server" min:"1" max:"100000"`
	ToolSchemaBytes          Size `koanf:"tool_schema_bytes" min:"64B" max:"64MiB"`
}

// Audit is the record of every call.
type Audit struct {
	Path string `koanf:"path"` // empty = the log
}

// State is what survives a restart.
type State struct {
	Dir       string        `koanf:"dir"` // empty = $XDG_STATE_HOME/acpod
	Retention time.Duration `koanf:"retention" min:"0s" max:"87600h"`
}

// Debug is the listener that shows the running pod.
type Debug struct {
	Listen  string `koanf:"listen" check:"address-or-empty"`
	AuthKey string `koanf:"auth_key" secret:"true"`
	Actions bool   `koanf:"actions"`
	// FlightBytes is the window of the runtime's flight recorder behind /debug/flight; 0 = off.
	FlightBytes Size `koanf:"flight_bytes" min:"0B" max:"1GiB"`
}

// Default is the configuration without a file: everything on loopback, the demo agent, the facade on.
// With a file, a key that is not in it has the value given here; only [mcp] is different, since its absence turns the facade off.
func Default() Config {
	mcp := defaultMCP()
	return Config{
		Pod: Pod{DrainTimeout: 25 * time.Second},
		ACP: ACP{
			Listen: "127.0.0.1:8080", AllowedOrigins: []string{}, Playground: true,
			Keepalive: 20 * time.Second, PongTimeout: 20 * time.Second, WriteTimeout: 30 * time.Second, InitializeTimeout: time.Minute,
			Keys: []ACPKey{},
		},
		Agent: Agent{
			Driver: "process", Command: []string{"acpod", "agent", "demo"}, Profile: "auto", Workdir: ".",
			Env: map[string]string{}, InheritEnv: []string{}, ForwardMeta: []string{}, Modes: []string{},
			Permissions: "relay", Permission: []PermissionRule{}, PermissionTimeout: 5 * time.Minute, Queue: 0, MaxSessions: 10,
			SessionTTL: 4 * time.Hour, StartTimeout: time.Minute, NewTimeout: 2 * time.Minute, TurnIdleTimeout: 10 * time.Minute,
			CancelTimeout: 10 * time.Second, StopGrace: 5 * time.Second, Delivery: "auto",
		},
		MCP: &mcp,
		Limits: Limits{
			FrameBytes: 8 * MiB, RequestBytes: MiB, ResultBytes: 8 * MiB, ConnectionBytes: 48 * MiB, SessionBytes: 32 * MiB,
			OutboundFrames: 256, OutboundBytes: 24 * MiB, AgentLineBytes: 16 * MiB, PodBytes: GiB, ProviderBytes: 64 * MiB,
			Connections: 10000, ConnectionsPerAddress: 0, Handshakes: 1024, Sessions: 20000, SessionsPerKey: 0, SessionsPerConnection: 128, PromptsPerConnection: 32,
			ServersPerSession: 8, EstablishesPerConnection: 64, ToolsPerServer: 256, ToolSchemaBytes: 64 * KiB,
		},
		State: State{Retention: 720 * time.Hour},
		Debug: Debug{Listen: "127.0.0.1:8849"},
	}
}

func defaultMCP() MCP {
	return MCP{
		Listen: "127.0.0.1:8848", TunnelTimeout: 170 * time.Second, CallMax: 30 * time.Minute, OrphanWindow: 30 * time.Second,
		Pin: "first-use", Anonymous: true, DirectTools: []string{}, Redact: []string{},
		ACPServers: []ACPServer{{Name: "katashiro", Tools: []string{
			"katashiro.read_dom", "katashiro.screenshot", "katashiro.navigate", "katashiro.click", "katashiro.type",
		}}},
	}
}
