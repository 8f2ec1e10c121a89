package facade

import (
	"crypto/sha256"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/door"
)

// Config is what a facade is made of. Zero fields take the defaults below.
type Config struct {
	// Socket is the open listener; pod closes it after the facade has stopped. Required.
	Socket *door.Socket
	// Callers resolves tokens; nil = nobody has one.
	Callers Callers
	// Inside, when it is given, serves what comes another way than through Socket.
	Inside *Inside
	// Desk configures the desk of anonymous callers; its Tag and View are the facade's to set.
	Desk capability.DeskConfig
	// Version is the program's version, told in serverInfo.
	Version string

	// ClosedToAnonymous is `[mcp] anonymous = false`: a request needs a live token or the key.
	ClosedToAnonymous bool
	// Key is the SHA-256 of the key in auth_key_file, see [KeySum]; zero = there is none.
	Key [32]byte

	// Direct is mcp.direct_tools: names of capabilities that are listed as tools of their own to whoever may execute them.
	Direct []string

	// RequestBytes is limits.request_bytes, the longest body. Default 1 MiB.
	RequestBytes int64
	// Bytes bounds what the facade holds for anonymous callers and for requests whose session has no room. Default 64 MiB.
	Bytes int64
	// Connections is how many HTTP connections are open at once; past it the one that has been idle longest is closed.
	// Default 4,096; an idle one costs about 16 KiB, which no account shows, and one that sends a head that
	// never ends three times as much.
	Connections int
	// ReadTimeout is how long a client may take to send one request. Default 30 s.
	ReadTimeout time.Duration
	// WriteTimeout ends a connection whose client accepts nothing for this long. Default 30 s, as acp.write_timeout.
	WriteTimeout time.Duration
}

// KeySum is how an operator's key is held: only its hash.
func KeySum(key string) [32]byte { return sha256.Sum256([]byte(key)) }

var errNoSocket = errors.New("facade: there is no listening socket")

func (c Config) withDefaults() Config {
	orInt64 := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt64(&c.RequestBytes, 1<<20)
	orInt64(&c.Bytes, 64<<20)
	if c.Connections <= 0 {
		c.Connections = 4096
	}
	if c.ReadTimeout <= 0 {
		c.ReadTimeout = 30 * time.Second
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	return c
}
