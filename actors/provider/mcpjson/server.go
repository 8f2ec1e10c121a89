package mcpjson

import "time"

// Kind is how a server is reached.
type Kind uint8

const (
	Stdio Kind = iota // a child process
	HTTP              // Streamable HTTP
	SSE               // HTTP with the older stream of events
)

func (k Kind) String() string {
	switch k {
	case HTTP:
		return "http"
	case SSE:
		return "sse"
	default:
		return "stdio"
	}
}

// What a file that says nothing about it means.
const (
	DefaultRequestTimeout = 60 * time.Second
	DefaultPingTimeout    = 5 * time.Second
	DefaultIdleTTL        = 600 * time.Second
	DefaultMaxConnected   = 10
)

// Set is what all layers say together.
type Set struct {
	Servers      []Server      // by name
	Disabled     []Server      // those with "disabled": true, by name; they are not started and not shown to agents
	Roots        []string      // as written; what a server is told of folders
	IdleTTL      time.Duration // 0 = never
	MaxConnected int           // servers connected at a time
	Problems     []Problem     // of the layers and of entries that are left out

	rootAt []Problem // where each root stands
}

// Server is one entry, as it was written: variables in it are replaced by [Server.Resolve] when it is connected.
type Server struct {
	Name           string
	Kind           Kind
	Command        string // stdio
	Args           []string
	Env            map[string]string
	Dir            string
	URL            string // HTTP and SSE
	Headers        map[string]string
	Modern         bool     // "protocol_version": the server is first spoken to without a handshake
	OAuth          bool     // an oauth object is there; nothing is done with it yet
	Include        []string // tool_filter; nil = all, empty = none
	Exclude        []string
	RequestTimeout time.Duration
	LogLevel       string        // "" = the server's default
	PingInterval   time.Duration // 0 = off
	PingTimeout    time.Duration
	PerSession     bool    // "isolation": "session"
	Concurrency    int     // calls of one tool at a time; 0 = the default
	Rate           float64 // calls of one tool a second; 0 = no bound
	File           string
	Line           int

	lines map[string]int // where its fields stand, as [FieldError] names them
}

// lineOf is where a field stands, else the entry.
func (s *Server) lineOf(field string) int {
	if line, ok := s.lines[field]; ok {
		return line
	}
	return s.Line
}
