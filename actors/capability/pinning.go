package capability

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// pinning is what a view asks of the pins: those of the pod, and those of the session's own servers where nobody knows their client again.
type pinning struct {
	pins  Pins
	scope string       // of the session's own servers, "" = they are in own
	own   *sessionPins // nil when scope is given
}

// changed names what of a tool is not as it was pinned.
func (p pinning) changed(at place, t *Tool) []string {
	switch {
	case p.pins == nil:
		return nil
	case at.configured:
		return p.pins.Changed(PinOwner{Server: at.server}, t)
	case p.own != nil:
		return p.own.Changed(PinOwner{Server: at.server}, t)
	}
	return p.pins.Changed(PinOwner{Scope: p.scope, Server: at.server}, t)
}

// admit pins the tools of one of the session's own servers.
func (p pinning) admit(server string, tools []*Tool) {
	switch {
	case p.pins == nil || len(tools) == 0:
	case p.own != nil:
		p.own.Admit(PinOwner{Server: server}, tools)
	default:
		p.pins.Admit(PinOwner{Scope: p.scope, Server: server}, tools)
	}
}

// refusal is that of a tool that is held back.
func (p pinning) refusal(at place, t *Tool, parts []string) *Refusal {
	why := "is not what it was when it was first used (changed: " + strings.Join(parts, ", ") + ")"
	switch parts[0] {
	case PinUnreadable:
		why = "may not be what it was when it was first used (pins were lost)"
	case PinNoRoom:
		why = "is not pinned, for there is no room for its pin"
	case PinNewer:
		why = "cannot be compared with what it was (it was pinned by a newer acpod)"
	}
	return &Refusal{Code: PinChanged, Text: jsonrpc.Show(t.Name) + " of the server " + jsonrpc.Show(at.server) + " " + why + "; it is held back " +
		p.until(at, at.server+"."+shown(t.Name), parts[0] == PinNoRoom)}
}

// until is what has to happen for a tool to be shown again. which is the argument of the operator's command.
func (p pinning) until(at place, which string, noRoom bool) string {
	switch {
	case !at.configured && p.own != nil:
		return "until its client starts another session"
	case noRoom:
		return "until the operator makes room with `acpod mcp pins --forget " + at.server + "`"
	}
	return "until the operator accepts it with `acpod mcp pins --accept " + which + "`"
}

// sessionPins pin the tools of servers that nobody knows again, for the life of one session. A handful of digests, on the session's account.
type sessionPins struct {
	mu   sync.Mutex
	seen map[pinned]*pin
}

type pinned struct{ server, tool string }

type pin struct {
	digest Digest
	sum    [32]byte
}

// pinBytes is what one of them costs beside its texts.
const pinBytes = 384

func newSessionPins() *sessionPins { return &sessionPins{seen: map[pinned]*pin{}} }

// Admit implements Pins.
func (p *sessionPins) Admit(owner PinOwner, tools []*Tool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tools {
		at := pinned{owner.Server, t.Name}
		if p.seen[at] == nil {
			p.seen[pinned{owner.Server, strings.Clone(t.Name)}] = &pin{DigestOf(&t.Tool), t.Sum()}
		}
	}
}

// Changed implements Pins.
func (p *sessionPins) Changed(owner PinOwner, t *Tool) []string {
	p.mu.Lock()
	was := p.seen[pinned{owner.Server, t.Name}]
	p.mu.Unlock()
	if was == nil || was.sum == t.Sum() {
		return nil
	}
	return DigestOf(&t.Tool).Changes(was.digest)
}

// bytes is what they cost. nil costs nothing.
func (p *sessionPins) bytes() int64 {
	if p == nil {
		return 0
	}
	return p.cost("", nil)
}

// cost is what they cost once these are in them as well.
func (p *sessionPins) cost(server string, tools []*Tool) (sum int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.seen {
		sum += pinBytes + int64(len(at.server)+len(at.tool))
	}
	for _, t := range tools {
		if p.seen[pinned{server, t.Name}] == nil {
			sum += pinBytes + int64(len(server)+len(t.Name))
		}
	}
	return sum
}

// heldBack is what a server has that is not shown, for a search to say so.
type heldBack struct {
	tools int
	parts []string // of all of them
}

func (h *heldBack) add(parts []string) {
	h.tools++
	for _, part := range parts {
		if !slices.Contains(h.parts, part) {
			h.parts = append(h.parts, part)
		}
	}
}

func (h heldBack) text(p pinning, at place) string {
	slices.Sort(h.parts)
	tools := "1 tool has changed (" + strings.Join(h.parts, ", ") + ") and is held back "
	if h.tools != 1 {
		tools = fmt.Sprint(h.tools) + " tools have changed (" + strings.Join(h.parts, ", ") + ") and are held back "
	}
	return tools + p.until(at, at.server, slices.Equal(h.parts, []string{PinNoRoom}))
}
