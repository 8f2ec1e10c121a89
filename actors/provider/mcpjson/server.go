package mcpjson

import "time"

// Kind is how a server is reached.
type Kind uint8

const (
	Stdio Kind = iota // a child process
	HTTP              // Streamable HTTP
	SSE               // HTTP with the older stream of events
)

// Set is what all layers say together.
type Set struct {
	Servers      []Server      // by name
	Roots        []string      // as written; what a server is told of folders
	IdleTTL      time.Duration // 0 = never
	MaxConnected int           // servers connected at a time
	Problems     []Problem     // of the layers and of entries that are left out
}

// Problem is one thing that is wrong. It says where, and holds no value of a string that may be secret.
type Problem struct {
	File   string
	Line   int    // 1-based; 0 = the file as a whole
	Server string // "" = the file as a whole
	Text   string
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
	OAuth          bool     // an oauth object is there; nothing is done with it yet
	Include        []string // tool_filter; nil = all
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
}
