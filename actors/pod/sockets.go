package pod

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/acpod/acpod/actors/bridge"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/door"
)

// sockets are the listening sockets of one life of the process. One that is off is nil.
type sockets struct {
	public, facade, debug *door.Socket
	bridge                *bridge.Socket // opened later, see openBridge
}

// openSockets opens all of them or none. alone: the facade runs without /acp.
func openSockets(c *config.Config, alone bool) (*sockets, error) {
	s := &sockets{}
	for _, open := range []struct {
		slot   **door.Socket
		key    string
		listen string
		off    bool
	}{
		{&s.public, "acp.listen", c.ACP.Listen, alone},
		{&s.facade, "mcp.listen", facadeListen(c), c.MCP == nil},
		{&s.debug, "debug.listen", c.Debug.Listen, c.Debug.Listen == ""},
	} {
		if open.off {
			continue
		}
		socket, err := openSocket(open.listen)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%s: cannot listen on %q: %w; %s", open.key, open.listen, err, advice(err, open.key))
		}
		*open.slot = socket
	}
	return s, nil
}

// boundDoorsHaveKeys looks again where the configuration's check could only read a name: localhost is whatever the machine's
// resolver says, and what is really beyond loopback must not be open without a key.
func boundDoorsHaveKeys(l *config.Loaded, s *sockets) error {
	for _, one := range []struct {
		key, setting string
		socket       *door.Socket
		keyed        bool
	}{
		{"acp.listen", "acp.auth_key", s.public, len(l.Secrets.ACP) > 0},
		{"debug.listen", "debug.auth_key", s.debug, l.Secrets.Debug != ""},
	} {
		if one.socket != nil && !one.keyed && !one.socket.Rules().Loopback {
			return fmt.Errorf("%s: it is bound to %s, which is not loopback, and there is no key; write a loopback address or set %s", one.key, one.socket.Addr(), one.setting)
		}
	}
	return nil
}

func facadeListen(c *config.Config) string {
	if c.MCP == nil {
		return ""
	}
	return c.MCP.Listen
}

// network is IPv4 alone for an IPv4 address: "0.0.0.0" must not open the IPv6 side as well, which "tcp" would.
func network(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if address, bad := netip.ParseAddr(host); err == nil && bad == nil && address.Is4() {
		return "tcp4"
	}
	return "tcp"
}

func openSocket(listen string) (*door.Socket, error) {
	l, err := net.Listen(network(listen), listen)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, err
	}
	socket, err := door.NewSocket(l)
	if err != nil {
		_ = l.Close()
	}
	return socket, err
}

// advice is what an operator can do about it.
func advice(err error, key string) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process has it: stop that one, or choose another port (--set " + key + "=…; port 0 picks a free one)"
	case errors.Is(err, os.ErrPermission):
		return "ports below 1024 need a privilege: choose a higher one (--set " + key + "=…)"
	default:
		return "choose an address of this machine (--set " + key + "=…)"
	}
}

// hold keeps callers waiting until admit: nobody may find a part missing that has not started yet. The debug listener is not held, it shows
// what does not start.
func (s *sockets) hold() (admit func()) {
	var doors []func()
	for _, socket := range []*door.Socket{s.public, s.facade} {
		if socket != nil {
			doors = append(doors, socket.Hold())
		}
	}
	return func() {
		for _, open := range doors {
			open()
		}
	}
}

// close closes those that are open. It is the last thing that happens to them.
func (s *sockets) close() {
	for _, socket := range []*door.Socket{s.public, s.facade, s.debug} {
		if socket != nil {
			_ = socket.Close()
		}
	}
	if s.bridge != nil {
		_ = s.bridge.Close()
	}
}

// Addresses are the bound ones, as host:port; "" for a listener that is off. They are what the ready file holds.
type Addresses struct {
	Public string `json:"public"`
	Facade string `json:"facade"`
	Debug  string `json:"debug"`
}

func (s *sockets) addresses() Addresses {
	text := func(socket *door.Socket) string {
		if socket == nil {
			return ""
		}
		return socket.Addr().String()
	}
	return Addresses{Public: text(s.public), Facade: text(s.facade), Debug: text(s.debug)}
}
