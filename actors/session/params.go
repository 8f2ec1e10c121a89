package session

import (
	"encoding/json/jsontext"
	"encoding/json/v2"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Params is what a client said in session/new or session/resume. The raw members are ranges of its frame.
type Params struct {
	ID         string // of resume; "" for new
	Cwd        string
	Additional []string       // additionalDirectories
	Meta       jsontext.Value // the whole _meta, nil when absent
	Servers    []acp.Declared
	Listed     bool // mcpServers was an array: a server that is not in it is withdrawn (R28)
}

// ParseNew reads the params of session/new. declared is the mcpServers array of the connection's initialize (nil =
// none); it stands in for an empty or absent one here. An error is -32602 and says which member is wrong.
func ParseNew(params, declared []byte) (*Params, *jsonrpc.Error) { return parse(params, declared, false) }

// ParseResume reads the params of session/resume.
func ParseResume(params []byte) (*Params, *jsonrpc.Error) { return parse(params, nil, true) }

// CheckServers counts the servers that a tunnel would be opened for, after equal ids were collapsed; over the limit
// (limits.servers_per_session) it is -32000.
func (p *Params) CheckServers(limit int) *jsonrpc.Error { return nil }

// ValidID tells whether id is a session id in its canonical form: sess_ and a lower-case UUID with dashes.
func ValidID(id string) bool { return false }

func parse(params, declared []byte, resume bool) (*Params, *jsonrpc.Error) { _ = json.Unmarshal; return nil, nil }
