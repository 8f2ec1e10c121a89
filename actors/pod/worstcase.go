package pod

import (
	"math"
	"os"
	"runtime"

	"github.com/acpod/acpod/actors/bridge"
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/capability/pins"
	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/provider"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/runtime/inspect"
)

// What one thing costs beside the bytes on its accounts: stacks, buffers of net/http and of the WebSocket library, entries in tables.
// footprint_test.go measures each and fails when it costs more.
const (
	httpConnectionBytes = 56 << 10 // from its accept, with the largest head that a server takes, to the upgrade
	connectionBytes     = 24 << 10 // a socket of /acp, beside the 16 KiB that its account pays
	sessionBytes        = 24 << 10 // a session and its desk; a tunnel is paid by the session's account
	ledgerKeyBytes      = 2 << 10  // a remembered idempotency key, all of its names as long as they may be
	runtimeBytes        = 32 << 20 // an idle pod: code's own data, the runtime's tables, what is started once
)

// A byte on an account costs at most accountNumerator/accountDenominator of a byte on the heap. The allocator rounds up: by an eighth at
// most in its size classes, by a quarter at most for what is a little more than 32 KiB and gets whole pages.
const (
	accountNumerator   = 5
	accountDenominator = 4
)

// machine is what of the worst case is not in the configuration.
type machine struct {
	servers int   // of mcp.json
	alone   bool  // the facade runs without /acp
	procs   int   // GOMAXPROCS
	program int64 // size of the program's file: as much of it as has been touched is resident
}

func thisMachine(executable string) machine {
	m := machine{procs: runtime.GOMAXPROCS(0), program: 64 << 20}
	if info, err := os.Stat(executable); err == nil {
		m.program = info.Size()
	}
	return m
}

// summand is one part of the worst case.
type summand struct {
	name string // as docs/limits.md has it
	from string // how it comes about, for the log
	n    int64  // bytes
}

// promise is the resident memory that the pod does not pass, whatever clients, agents and callers do, part by part; why it holds is in
// docs/adr/0008-memory-promise.md.
type promise struct {
	parts   []summand // what lives on the heap and in stacks
	garbage int64     // what the collector is given beside that
	program int64
}

// limit is for the Go runtime: what it holds before it collects whatever the cost.
func (p promise) limit() int64 {
	n := p.garbage
	for _, part := range p.parts {
		n = plus(n, part.n)
	}
	return n
}

func (p promise) total() int64 { return plus(p.limit(), p.program) }

// Garbage and what fragments is given an eighth of what lives, and this much at least: less, and the collector would run all the time.
const (
	garbageShare = 8
	garbageLeast = 16 << 20
)

// worstCase adds up what can be held at once. Every summand is a limit of the configuration, or a constant of the package that enforces
// it, times what was measured.
func worstCase(c *config.Config, m machine) promise {
	l := c.Limits
	var p promise
	add := func(name, from string, count, each int64) {
		p.parts = append(p.parts, summand{name, from, times(count, each)})
	}

	add("accounts", "5/4 of limits.pod_bytes", int64(l.PodBytes)/accountDenominator+1, accountNumerator)
	if !m.alone {
		add("connections", "(9/8 of limits.connections + 256) × 56 KiB: before the upgrade each costs more than after it", int64(publicConnections(l)), max(httpConnectionBytes, connectionBytes))
		add("sessions", "limits.sessions × 24 KiB", int64(l.Sessions), sessionBytes)
		add("records of suspended sessions", "1/16 of limits.pod_bytes, 1 MiB to 64 MiB", 1, recordsBytes(l))
	}
	if c.Agent.Driver == string(session.DriverProcess) {
		add("agents", "(agent.max_sessions + 1) × 1 MiB", int64(c.Agent.MaxSessions)+1, agent.Footprint)
		add("agents' configurations", "32 MiB: one file is worked on at a time", 1, delivery.Footprint)
	}
	if c.MCP != nil {
		connections := facadeConnections(l)
		if m.alone {
			connections = aloneConnections
		}
		if !m.alone && c.Agent.Driver == string(session.DriverProcess) {
			add("bridge", "128, or 2 × agent.max_sessions where that is more, × 48 KiB", int64(bridgeConnections(c)), bridge.Footprint)
		}
		if c.Agent.Delivery == string(delivery.Proxy) {
			add("proxies of sessions", "(8 + 2 × agent.max_sessions) × (8 × 56 KiB + 64 KiB)", int64(proxyPlaces(c)), facade.ProxyConnections*httpConnectionBytes+facade.ProxyFootprint)
		}
		add("facade", "(64 + 4 × limits.sessions, at most 4096) × 56 KiB", int64(connections), httpConnectionBytes)
		if m.servers > 0 {
			add("servers of mcp.json", "their number × 1 MiB", int64(m.servers), provider.Footprint)
		}
		add("pins", "5/4 of 16 MiB", pins.Bytes/accountDenominator, accountNumerator)
		add("idempotency keys", "16,384 × 2 KiB", ledgerKeys, ledgerKeyBytes)
		add("compiled schemas", "5/4 of 16 MiB", capability.SchemasBytes/accountDenominator, accountNumerator)
		add("schemas being compiled", "2 × 40 MiB", capability.Compiles, capability.CompileBytes)
	}
	if c.Debug.Listen != "" {
		add("debug", "256 × 56 KiB, and one profile", 1, debugConnections*httpConnectionBytes+inspect.ProfileBytes+inspect.Footprint)
	}
	if f := int64(c.Debug.FlightBytes); f > 0 {
		add("flight recording", "2 × debug.flight_bytes + 32 MiB", 1, plus(times(f, inspect.FlightWindows), inspect.FlightGenerations))
	}
	add("copies in turns", "2 × processors × the largest of frame_bytes, agent_line_bytes and result_bytes", 2*int64(m.procs),
		int64(max(l.FrameBytes, l.AgentLineBytes, l.ResultBytes)))
	add("runtime", "fixed", 1, runtimeBytes)

	live := p.limit()
	p.garbage = max(live/garbageShare, garbageLeast)
	p.program = m.program
	return p
}

// publicConnections is how many TCP connections the public listener has at most: one over limits.connections still gets its 503.
func publicConnections(l config.Limits) int { return l.Connections + l.Connections/8 + 256 }

// recordsBytes is what records of suspended sessions may hold.
func recordsBytes(l config.Limits) int64 {
	return min(session.RecordsBytes, max(1<<20, int64(l.PodBytes)/16))
}

// debugConnections is the same of the debug listener.
const debugConnections = 256

// facadeConnections is how many HTTP connections callers may have: agents keep one to four each.
func facadeConnections(l config.Limits) int { return min(4096, 64+4*l.Sessions) }

// plus and times stay at the largest number: limits may be written that no machine has.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
