package bridge

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// Config is what a bridge is made of. Zero fields take the defaults below.
type Config struct {
	// Socket is the open listener ([Open]); pod closes it after the bridge has stopped. Required.
	Socket *Socket
	// Find tells which agent's process the one with that pid and start time is; required, safe from any goroutine.
	Find func(pid int, start uint64) (Agent, bool)
	// Facade answers what comes. Required.
	Facade Facade

	// LineBytes is limits.frame_bytes, the longest line. Default 8 MiB.
	LineBytes int
	// Connections is how many relays are connected at once, ConnectionsOfAgent how many of one agent. Default 96 and 8.
	Connections, ConnectionsOfAgent int
	// WriteTimeout ends a connection whose relay reads nothing for this long. Default 30 s.
	WriteTimeout time.Duration

	identify func(*net.UnixConn) (Agent, reason) // for tests, whose peer is the test itself
}

// Agent is who a connection belongs to.
type Agent struct {
	Caller  capability.Caller
	Session string          // its id: a frame that names another one is dropped
	Ended   <-chan struct{} // closed when the agent, or its token, has ended
}

// Facade answers one message of an agent. It is implemented by the facade and wired by pod; safe from any goroutine.
type Facade interface {
	// Serve answers a message, and returns when it has been answered. text is valid UTF-8 and JSON and stays unchanged until then;
	// bytes pays for it and is taken over. peer tells the connections of one agent apart. The end of ctx is that of the relay. line
	// writes one message. begun is called, at the latest when Serve returns, when the next message may be served.
	Serve(ctx context.Context, who capability.Caller, peer string, text []byte, bytes *kernel.Lease, line func(func(io.Writer) error) error, begun func())
}

const (
	// relayBytes is what one connection holds, whatever it sends: the buffers of both directions, and a goroutine for each.
	relayBytes = 96 << 10
	// smallLine is the longest line that the bridge itself pays for when the agent's session has no room, so that an agent whose
	// session is full can still be told what is the matter.
	smallLine = 64 << 10
	// smallLines is what the bridge has for them.
	smallLines = 4 << 20
	// edgesFrom is the length from which both ends of a line are kept, so that a request for which there was no room can be answered.
	// A shorter one is in the reader's buffer.
	edgesFrom = 32 << 10
	// openRequests is how many requests of one connection are served at once.
	openRequests = 64
	// writeChunk is how much is written under one deadline.
	writeChunk = 64 << 10
	// lastWords is how long what is open may still be answered when a relay sends no more.
	lastWords = 2 * time.Second
)

// Footprint is what one connection costs beside its account, in bytes: its goroutines and what the kernel of acpod keeps for an actor.
const Footprint = 48 << 10

func (c Config) withDefaults() Config {
	if c.LineBytes <= 0 {
		c.LineBytes = 8 << 20
	}
	if c.Connections <= 0 {
		c.Connections = 96
	}
	if c.ConnectionsOfAgent <= 0 {
		c.ConnectionsOfAgent = 8
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if find := c.Find; c.identify == nil {
		c.identify = func(conn *net.UnixConn) (Agent, reason) { return agentOfPeer(conn, system, find) }
	}
	return c
}
