package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
)

// serversWith declares one server with tools of that many bytes.
func serversWith(name string, size int) string {
	return fmt.Sprintf(`[{"type":"acp","id":"r1","name":%q,"_meta":{"acpod.dev/tools":[{"name":"room.click","description":%q,"inputSchema":{"type":"object"}}]}}]`,
		name, strings.Repeat("d", size))
}

// charged is what the account of a session says.
func (p *pod) charged(id string) int64 {
	p.settle()
	node, _ := p.node("test/sessions/" + acp.TreeName(id))
	return node.Account.Used
}

// What of a declaration is kept as long as it counts is on the session's account; a later one takes its place. The tools of a server that
// is not connected are not kept.
func TestWhatADeclarationLeavesIsPaidFor(t *testing.T) {
	const size = 200 << 10
	for name, kept := range map[string]bool{"room": true, "ungranted": false} {
		inPod(t, nil, func(p *pod) {
			c := p.client("", 0)
			id := c.opened(serversWith(name, size))
			if got := p.charged(id); (got >= size) != kept {
				t.Errorf("%s: %d bytes are paid for tools of %d", name, got, size)
			}
			c.resume(id, "[]")
			c.resume(id, "[]") // the first says that it is withdrawn
			if got := p.charged(id); got >= size {
				t.Errorf("%s: %d bytes are still paid for", name, got)
			}
			c.close(id)
			p.atRest()
		})
	}
}

// A session that cannot pay for what its client declares does not come to be; a resume that it cannot pay for changes nothing.
func TestADeclarationThatFindsNoRoomIsRefused(t *testing.T) {
	const room = 1 << 20
	inPod(t, func(cfg *Config) { cfg.SessionBytes = room }, func(p *pod) {
		refused := func(what string, a *answered) {
			t.Helper()
			if a == nil || a.err == nil || a.err.Code != -32000 || !strings.Contains(fmt.Sprintf("%+v", a.err.Data), "session_bytes") {
				t.Errorf("%s was answered %+v %+v", what, a, a.err)
			}
		}
		c := p.client("", 0)
		refused("session/new", c.answer(c.open(serversWith("room", room))))
		p.atRest()

		id := c.opened(roomServer)
		before := p.charged(id)
		refused("session/resume of the owner", c.answer(c.resume(id, serversWith("room", room))))
		other := p.client("", 0)
		refused("session/resume of another", other.answer(other.resume(id, serversWith("room", room))))
		if _, mine := c.session(id); !mine {
			t.Error("a resume that was refused has taken the session")
		}
		if got := p.charged(id); got != before {
			t.Errorf("%d bytes are charged after refusals, %d before", got, before)
		}
		if a := other.answer(other.resume(id, "")); a == nil || a.err != nil {
			t.Errorf("a resume that declares nothing was answered %+v", a)
		}
		other.close(id)
		p.atRest()
	})
}
