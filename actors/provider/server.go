package provider

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// Kind is the kind of a server's actor in the tree.
const Kind = "provider"

// Scope is the name of the servers' byte accounts.
const Scope = "provider_bytes"

// Server is the handle of one server of mcp.json, or of one session's instance of it. It outlives the generations of its actor. Its
// methods are safe from any goroutine, save those that take a Ctx.
type Server struct {
	cfg    *Config
	entry  mcpjson.Server
	filter filter
	roots  []byte // the result of roots/list
	seats  *seats // nil: an instance, which takes nobody's place
	keeps  bool   // an instance whose process holds what its session knows: it is not ended for being idle

	face     atomic.Pointer[face]
	ref      atomic.Pointer[kernel.Ref]
	sequence atomic.Int64 // of requests, over all generations
	used     atomic.Int64 // when it was last used, UnixNano
	busy     atomic.Int32 // calls that it has
	sent     atomic.Int64 // calls that were sent
}

// face is what a server shows of itself at one moment, and which generation of its actor may change it.
type face struct {
	gen   uint64
	tools *capability.Toolset
}

func newServer(cfg *Config, entry mcpjson.Server, roots []byte, seats *seats) *Server {
	s := &Server{cfg: cfg, entry: entry, filter: filter{entry.Include, entry.Exclude}, roots: roots, seats: seats}
	s.face.Store(&face{tools: &capability.Toolset{State: capability.Idle}})
	return s
}

// Provider implements [capability.Source]: agents know a configured server by its name.
func (s *Server) Provider() string { return s.entry.Name }

// Server implements [capability.Source].
func (s *Server) Server() string { return s.entry.Name }

// Tools implements [capability.Source].
func (s *Server) Tools() *capability.Toolset { return s.face.Load().tools }

// Allows implements [capability.Configured].
func (s *Server) Allows(tool string) bool { return s.filter.allows(tool) }

// discover asks the actor for a list.
type discover struct{ want capability.Want }

// Discover implements [capability.Configured].
func (s *Server) Discover(c *kernel.Ctx, want capability.Want) (kernel.Ticket, error) {
	ref := s.ref.Load()
	if ref == nil {
		return kernel.Ticket{}, capability.ErrDetached
	}
	ticket, err := c.Request(ref.Current(), discover{want})
	return ticket, gone(err)
}

// Call implements [capability.Source].
func (s *Server) Call(c *kernel.Ctx, call capability.Call) (kernel.Ticket, error) {
	ref := s.ref.Load()
	if ref == nil {
		call.Bytes.Release()
		return kernel.Ticket{}, capability.ErrDetached
	}
	ticket, err := c.Request(ref.Current(), call)
	return ticket, gone(err)
}

func gone(err error) error {
	if errors.Is(err, kernel.ErrStopped) {
		return fmt.Errorf("%w: %w", capability.ErrDetached, err)
	}
	return err
}

// speaks lets a generation speak for the server from now on.
func (s *Server) speaks(self kernel.Ref) {
	s.ref.Store(&self)
	s.change(func(f *face) bool {
		f.gen = max(f.gen, self.Gen())
		return true
	})
}

// show puts a toolset up. False: that generation speaks for the server no more.
func (s *Server) show(gen uint64, t *capability.Toolset) bool {
	return s.change(func(f *face) bool {
		f.tools = t
		return f.gen == gen
	})
}

func (s *Server) change(next func(*face) bool) bool {
	for {
		was := s.face.Load()
		now := *was
		if !next(&now) {
			return false
		}
		if s.face.CompareAndSwap(was, &now) {
			return true
		}
	}
}

// spec describes the actor. It outlives its links, so only a fault of our own ends it.
func (s *Server) spec(name string) kernel.Spec {
	return kernel.Spec{
		Name: name, Kind: Kind, Restart: kernel.Permanent, Scope: Scope, Limit: s.cfg.Bytes,
		New: func() kernel.Behavior { return newActor(s) },
		// the ladder of a child's stop runs in a goroutine of the actor
		Grace:   process.Spec{EOFGrace: eofGrace, TermGrace: s.cfg.StopGrace}.Longest() + kernel.DefaultGrace,
		Backoff: kernel.Backoff{Min: 100 * time.Millisecond, Max: time.Minute},
	}
}

// eofGrace is what a child has to end by itself when its stdin does, before TERM.
const eofGrace = time.Second

// isolated is a server of which each session has an instance. It never connects itself.
type isolated struct{ *template }

// template is a Server by a name under which its methods can be embedded, one of which is called Server.
type template = Server

// Instance implements [capability.Isolated].
func (s isolated) Instance(tag string) (capability.Configured, kernel.Spec) {
	instance := newServer(s.cfg, s.entry, s.roots, nil)
	instance.keeps = tag != anonymous
	spec := instance.spec(s.entry.Name)
	spec.Restart = kernel.Transient
	return instance, spec
}

// Discover is answered by instances alone.
func (isolated) Discover(*kernel.Ctx, capability.Want) (kernel.Ticket, error) {
	return kernel.Ticket{}, errIsolated
}

// Call is answered by instances alone.
func (isolated) Call(_ *kernel.Ctx, call capability.Call) (kernel.Ticket, error) {
	call.Bytes.Release()
	return kernel.Ticket{}, errIsolated
}

var errIsolated = fmt.Errorf("%w: each session has a process of its own", capability.ErrDetached)

var (
	_ capability.Configured = (*Server)(nil)
	_ capability.Isolated   = isolated{}
)
