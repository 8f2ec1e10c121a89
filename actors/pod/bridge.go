package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/acpod/acpod/actors/bridge"
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/runtime/kernel"
)

// Relay is `acpod bridge`: the end of the bridge that an agent starts. socket "" = what the environment says.
func Relay(ctx context.Context, socket string, environ []string, in io.Reader, out io.Writer) error {
	if socket == "" {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, bridge.SocketVariable+"="); ok {
				socket = value
			}
		}
	}
	if socket == "" {
		socket = bridge.DefaultPath(environ)
	}
	if socket == "" {
		return errNoSocketPath
	}
	return bridge.Relay(ctx, socket, in, out)
}

var errNoSocketPath = errors.New("nothing says where the pod's socket is: HOME is not set; name it with --socket or " + bridge.SocketVariable)

// bridgePath is agent.bridge_socket, else the default; own tells that it is in OpenAB's own folder.
func bridgePath(a config.Agent, environ []string) (path string, own bool, err error) {
	usual := bridge.DefaultPath(environ)
	path = a.BridgeSocket
	switch {
	case path == "" && usual == "":
		return "", false, errors.New("nothing says where home is: set agent.bridge_socket")
	case path == "":
		path = usual
	case strings.HasPrefix(path, "~/") && usual != "":
		path = filepath.Join(filepath.Dir(filepath.Dir(usual)), path[2:])
	}
	path, err = filepath.Abs(path)
	return path, usual != "" && filepath.Dir(path) == filepath.Dir(usual), err
}

// openBridge opens the Unix socket for agents that take MCP servers on stdio. Where it cannot be opened, a pod whose agents need it does
// not start, and any other says so and offers no stdio entry.
func (l *life) openBridge() error {
	if l.opts.FacadeAlone || !bridged(l.cfg) {
		return nil
	}
	path, own, err := bridgePath(l.cfg.Agent, l.opts.Environ)
	if err == nil {
		l.sockets.bridge, err = bridge.Open(path, own)
	}
	switch {
	case err == nil:
		return nil
	case delivery.Mode(l.cfg.Agent.Delivery) == delivery.Bridge:
		return fmt.Errorf("agent.delivery is bridge, and its socket cannot be opened: %w", err)
	}
	l.log.Warn("no socket for `acpod bridge`: agents that take MCP servers on stdio alone get no tools", "error", err)
	return nil
}

// bridgeSpec is the actor that serves them.
func (l *life) bridgeSpec() kernel.Spec {
	agents := l.sessions.AgentPIDs()
	return bridge.Spec(bridge.Config{
		Socket: l.sockets.bridge,
		Find: func(pid int, start uint64) (bridge.Agent, bool) {
			found, ok := agents.Find(pid, start)
			return bridge.Agent{Caller: found.Caller, Session: found.Session, Ended: found.Ended}, ok
		},
		Facade:       inside{&l.inside},
		LineBytes:    int(l.cfg.Limits.FrameBytes),
		Connections:  bridgeConnections(&l.cfg.Config),
		WriteTimeout: l.cfg.ACP.WriteTimeout,
	})
}

// bridgeConnections is how many relays may be connected: an agent starts one, and another where it starts agents of its own.
func bridgeConnections(c *config.Config) int { return max(128, 2*c.Agent.MaxSessions) }

// inside is the facade as the bridge calls it.
type inside struct{ facade *facade.Inside }

// Serve implements bridge.Facade.
func (i inside) Serve(ctx context.Context, who capability.Caller, peer string, text []byte, bytes *kernel.Lease, line func(func(io.Writer) error) error, begun func()) {
	i.facade.Serve(ctx, facade.Message{Caller: who, Peer: peer, Text: text, Bytes: bytes, Line: line, Begun: begun})
}
