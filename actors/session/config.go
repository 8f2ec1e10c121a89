package session

import (
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/admission"
)

// Driver says what stands behind the sessions.
type Driver string

// The drivers of agent.driver.
const (
	DriverProcess Driver = "process" // an agent process for each session
	DriverNone    Driver = "none"    // no agent: sessions only serve tools
)

// Decision says how a permission request of the agent is answered.
type Decision string

// The decisions of agent.permissions and of [[agent.permission]].
const (
	Relay Decision = "relay" // the client is asked
	Allow Decision = "allow" // the allowing option, found by its kind
	Deny  Decision = "deny"  // the rejecting option, found by its kind
)

// PermissionRule overrides Config.Permissions for one tool; "*" stands for any.
type PermissionRule struct {
	Server, Tool string
	Decision     Decision
}

// Config is what pod gives to the sessions. It is a value; a zero duration or limit takes the default beside it.
type Config struct {
	Driver Driver
	// Agent is the template of each process: command, environment without the token, limits, guardian. Dir is set by the
	// session to the folder that its client asked for, and OPENAB_SESSION_TOKEN is added where a token is minted.
	Agent   agent.Config
	Workdir string // agent.workdir, absolute: no folder outside it reaches an agent

	FacadeURL string // http://127.0.0.1:8848/mcp; "" = there is no facade and no token
	// Delivery prepares what an agent reads before it starts; nil = nothing is written, and the facade's entry goes into session/new.
	Delivery    *delivery.Deliverer
	Proxy       Proxy    // nil = agent.delivery "proxy" cannot be set up
	ForwardMeta []string // keys of a client's _meta that reach the agent besides the W3C ones

	Permissions       Decision // Relay
	PermissionRules   []PermissionRule
	PermissionTimeout time.Duration // 5m
	Modes             []string      // session modes that a client may set where Permissions is not Relay
	Queue             int           // 0: prompts that wait for the turn before them, of one session

	MaxSessions     int             // 10: running agents
	Admission       *admission.Desk // where these are declared: one desk serves the whole pod; nil = one of its own
	Sessions        int             // 20000: living sessions, limits.sessions
	SessionsPerKey  int             // 0 = no bound: living sessions of one key, limits.sessions_per_key
	SessionBytes    int64           // 32 MiB: the account of each session, limits.session_bytes
	Servers         int             // 8: limits.servers_per_session
	SessionTTL      time.Duration   // 4h
	Store           Store           // of the records; never nil
	Retention       time.Duration   // 720h: how long the record of a suspended session is kept
	NewTimeout      time.Duration   // 120s
	TurnIdleTimeout time.Duration   // 10m
	CancelTimeout   time.Duration   // 10s
	CallMax         time.Duration   // 30m: how long one open tool call keeps a silent turn alive

	Desk   capability.DeskConfig // template of each desk: grants, audit, ledger, limits; Tag, Owner, View and PinScope are set by the session
	Tunnel tunnel.Limits
	// TunnelStats counts the MCP connections of all tunnels; nil = nobody does.
	TunnelStats *tunnel.Stats

	Version string // of this pod, told to servers and agents
}

// RecordsBytes is what records of suspended sessions may hold of the pod's memory together, and RecordBytes what an ordinary one holds of it, with
// what the supervisor remembers of sessions whose client gave no secret.
const (
	RecordsBytes = 64 << 20
	RecordBytes  = 3 << 10
)

func (c Config) withDefaults() Config {
	if c.Driver == "" {
		c.Driver = DriverProcess
	}
	if c.Permissions == "" {
		c.Permissions = Relay
	}
	duration := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	duration(&c.PermissionTimeout, 5*time.Minute)
	duration(&c.SessionTTL, 4*time.Hour)
	duration(&c.Retention, 720*time.Hour)
	duration(&c.NewTimeout, 2*time.Minute)
	duration(&c.TurnIdleTimeout, 10*time.Minute)
	duration(&c.CancelTimeout, 10*time.Second)
	duration(&c.CallMax, 30*time.Minute)
	number := func(n *int, otherwise int) {
		if *n <= 0 {
			*n = otherwise
		}
	}
	number(&c.MaxSessions, 10)
	number(&c.Sessions, 20000)
	number(&c.Servers, 8)
	if c.Admission == nil {
		c.Admission = admission.New()
	}
	if c.SessionBytes <= 0 {
		c.SessionBytes = 32 << 20
	}
	return c
}

// spare is what a session's account keeps free for the longest line of its agent, while that does not wait for its client.
func (c Config) spare() int64 {
	line := int64(c.Agent.LineBytes)
	if line <= 0 {
		line = agent.DefaultLineBytes
	}
	return min(line+agent.LineOverhead, c.SessionBytes/2)
}
