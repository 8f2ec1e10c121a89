package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
)

// What of a declaration is kept as long as it counts is on the session's account; a later one takes its place.
func TestWhatADeclarationLeavesIsPaidFor(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		const size = 200 << 10
		tools := fmt.Sprintf(`[{"name":"room.click","description":%q,"inputSchema":{"type":"object"}}]`, strings.Repeat("d", size))
		id := c.opened(`[{"type":"acp","id":"r1","name":"ungranted","_meta":{"acpod.dev/tools":` + tools + `}}]`)
		used := func() int64 {
			p.settle()
			node, _ := p.node("test/sessions/" + acp.TreeName(id))
			return node.Account.Used
		}
		if got := used(); got < size {
			t.Errorf("%d bytes are paid for tools of %d", got, size)
		}
		c.resume(id, "[]")
		if got := used(); got >= size {
			t.Errorf("%d bytes are still paid for", got)
		}
		c.close(id)
		p.atRest()
	})
}
