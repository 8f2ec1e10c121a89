package session

import (
	"crypto/rand"
	"sync/atomic"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Params is what a client said in session/new or session/resume. Servers of nil means that it declared nothing and
// withdraws nothing. Raw members are ranges of its frame.
type Params struct {
	acp.SessionParams
	Declared []acp.Declared
	attach   uint64 // the number of the first declaration; those behind it have the next ones
}

// attachments numbers all declarations in the process, as a reader sees them: the rank of tunnels within one connection.
var attachments atomic.Uint64

// ParseNew reads the params of session/new. initial is the mcpServers array of the connection's initialize (nil =
// none); it stands in for an empty or absent one here. An error is -32602 and says which member is wrong.
func ParseNew(params, initial []byte) (*Params, *jsonrpc.Error) {
	p, bad := acp.ParseNew(params, initial)
	if bad != nil {
		return nil, bad
	}
	return declare(p)
}

// ParseResume reads the params of session/resume. Whether the id is canonical ([ValidID]) is checked later, after the declarations.
func ParseResume(params []byte) (*Params, *jsonrpc.Error) {
	p, bad := acp.ParseResume(params)
	if bad != nil {
		return nil, bad
	}
	return declare(p)
}

func declare(p acp.SessionParams) (*Params, *jsonrpc.Error) {
	out := &Params{SessionParams: p}
	if p.Servers == nil {
		return out, nil
	}
	list, err := acp.ParseServers(p.Servers)
	if err != nil {
		return nil, jsonrpc.BadParams("%v", err)
	}
	n := uint64(len(list))
	out.Declared, out.attach = list, attachments.Add(n)-n+1
	return out, nil
}

// CheckServers counts the servers that a tunnel would be opened for, after equal ids were collapsed; over the limit
// (limits.servers_per_session) it is -32000.
func (p *Params) CheckServers(limit int) *jsonrpc.Error { return acp.CheckServers(p.Declared, limit) }

// ValidID tells whether id is a session id in its canonical form.
func ValidID(id string) bool { return acp.ValidSessionID(id) }

// newID mints a session id: 128 random bits.
func newID() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails: crypto/rand ends the process rather than return an error
	return acp.SessionID(bits)
}

// newForAgent builds the params of the agent's session/new from nothing but what was checked: folders, the facade's
// entry in place of every server (nil = none), and the kept part of _meta.
func newForAgent(f Folders, servers, meta []byte) []byte {
	to := acp.AgentSession{Cwd: f.Cwd, AdditionalDirectories: f.Additional, Servers: servers, Meta: meta}
	return to.Append(nil)
}
