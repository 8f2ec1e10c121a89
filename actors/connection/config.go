package connection

import (
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/acpod/acpod/runtime/admission"
)

// Config is what a gateway and its connections are told. Durations and sizes that are zero take the default named;
// the others have none and must be set by the composer from acpod's configuration.
type Config struct {
	// Keys are the bearer keys that let a client in. None: the endpoint is keyless, and Host and Origin decide.
	Keys []Key
	// AllowedOrigins are the Origin values taken besides http://<Host>, compared exactly. Keyless only.
	AllowedOrigins []string
	// Descends tells whether the connection from peer, on this machine, to local was made by a process that the pod started, or
	// by what that left behind: an agent must not open sessions or answer its own permission requests. It is asked before an
	// upgrade, on the HTTP server's goroutine, may take milliseconds, and is safe from any goroutine. Keyless and loopback only:
	// an agent is not told a key. nil = nobody is.
	Descends func(peer, local netip.AddrPort) bool
	// Version is shown as agentInfo.version.
	Version string
	// Trace logs one debug record for each frame: direction, kind, method when it is one of ours, size. Never a payload.
	Trace bool

	// Keepalive is how long no data frame may go either way before a keep-alive notification is sent (20 s). A ping goes
	// out when nothing at all came in for as long.
	Keepalive time.Duration
	// PongTimeout is how long after a ping something must come in (20 s).
	PongTimeout time.Duration
	// WriteTimeout is how long a peer may accept no byte at all (30 s).
	WriteTimeout time.Duration
	// InitializeTimeout is how long a client may take to its first valid initialize (60 s).
	InitializeTimeout time.Duration
	// FrameTimeout is how long a frame may take from its first byte to its last (30 s).
	FrameTimeout time.Duration
	// BytesWait is how long a socket is not read because an account has no room for its next frame (5 s).
	BytesWait time.Duration
	// OfferWait is how long an initialize waits for what the agent offers before it gets the baseline (5 s).
	OfferWait time.Duration
	// FlushTimeout bounds what is still written when a connection is ended in order, and how long the peer's own close is
	// waited for after ours (2 s).
	FlushTimeout time.Duration
	// SlowGrace is how long a client has, from the moment at which something that cannot wait found its outbox full, to read
	// until half of it is free (10 s). It is also how long the fragment under way is waited for before the close frame.
	SlowGrace time.Duration

	// FrameBytes bounds one message of the client, fragments together: limits.frame_bytes, 8 MiB.
	FrameBytes int64
	// EarlyFrameBytes is the same bound before initialize, 64 KiB.
	EarlyFrameBytes int64
	// RequestBytes bounds a frame that has a method: limits.request_bytes, 1 MiB.
	RequestBytes int64
	// ConnectionBytes is the connection's byte account: limits.connection_bytes, 48 MiB.
	ConnectionBytes int64
	// OutboundFrames bounds the frames queued in one stream: limits.outbound_frames, 256.
	OutboundFrames int
	// OutboundBytes bounds the bytes queued in all streams of a connection: limits.outbound_bytes, 24 MiB.
	OutboundBytes int64

	// Admission is where the limits below are declared that count who is in. One desk serves the whole pod; nil = one of its own.
	Admission *admission.Desk
	// Connections bounds the sockets open at once: limits.connections, 10000.
	Connections int
	// ConnectionsPerAddress bounds those of one remote address: limits.connections_per_address, 0 = no bound.
	ConnectionsPerAddress int
	// Handshakes bounds the sockets that have not said initialize yet: limits.handshakes, 1024.
	Handshakes int
	// HandshakePatience is how long a client has for its initialize before it may be displaced by a newcomer (5 s).
	HandshakePatience time.Duration
	// SessionsPerConnection bounds the sessions owned and being opened: limits.sessions_per_connection, 128.
	SessionsPerConnection int
	// PromptsPerConnection bounds the prompts in flight: limits.prompts_per_connection, 32.
	PromptsPerConnection int
	// ServersPerSession bounds the servers that one session/new or resume may declare: limits.servers_per_session, 8.
	ServersPerSession int
	// EstablishesPerConnection bounds the tunnel connects in flight: limits.establishes_per_connection, 64.
	EstablishesPerConnection int
}

// Key lets clients in and gives them an identity. The secret itself is not kept.
type Key struct {
	// Identity is what sessions opened with the key belong to. No two keys share one.
	Identity string
	hash     [sha256.Size]byte
}

// Identities of those who come without a key of their own.
const (
	// Loopback is the identity of every client of a keyless endpoint.
	Loopback = ""
	// Shared is the identity of acp.auth_key. An [[acp.keys]] table has it with a colon and its name.
	Shared = "key"
)

// NewKey makes a key of a secret. An empty name is acp.auth_key, any other that of an [[acp.keys]] table.
func NewKey(name, secret string) Key {
	identity := Shared
	if name != "" {
		identity = Shared + ":" + name
	}
	return Key{Identity: identity, hash: sha256.Sum256([]byte(secret))}
}

// withDefaults fills what has a documented default.
func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Keepalive, 20 * time.Second},
		{&c.PongTimeout, 20 * time.Second},
		{&c.WriteTimeout, 30 * time.Second},
		{&c.InitializeTimeout, time.Minute},
		{&c.FrameTimeout, 30 * time.Second},
		{&c.BytesWait, 5 * time.Second},
		{&c.OfferWait, 5 * time.Second},
		{&c.HandshakePatience, 5 * time.Second},
		{&c.FlushTimeout, 2 * time.Second},
		{&c.SlowGrace, 10 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{
		{&c.FrameBytes, 8 << 20},
		{&c.RequestBytes, 1 << 20},
		{&c.ConnectionBytes, 48 << 20},
		{&c.OutboundBytes, 24 << 20},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.EarlyFrameBytes <= 0 {
		c.EarlyFrameBytes = 64 << 10
	}
	if c.Admission == nil {
		c.Admission = admission.New()
	}
	c.EarlyFrameBytes = min(c.EarlyFrameBytes, c.FrameBytes)
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.OutboundFrames, 256},
		{&c.Connections, 10000},
		{&c.Handshakes, 1024},
		{&c.SessionsPerConnection, 128},
		{&c.PromptsPerConnection, 32},
		{&c.ServersPerSession, 8},
		{&c.EstablishesPerConnection, 64},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return c
}
