package clientcheck

import (
	"strconv"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// build is what the run says of itself in MCP.
const build = "client-check"

// tunnel is one declared server.
type tunnel struct {
	declared   acp.Declared
	codec      acp.Codec
	connecting *question
	target     string // connection id, or server id in generation C; "" while there is none
	second     string // another connection to the same server
	usable     bool   // its handshake was made and its tools were listed
	catalog    *catalog
	requests   int // request ids of generation C
}

// tunnelsOf are the servers that are to be connected.
func tunnelsOf(declared []acp.Declared, tool string) (list []*tunnel) {
	for _, d := range declared {
		if d.Verdict == acp.Connect {
			list = append(list, &tunnel{declared: d, codec: acp.CodecFor(d), catalog: newCatalog(tool)})
		}
	}
	return list
}

// connects tells the generations that open connections.
func (t *tunnel) connects() bool { return !t.codec.Stateless() }

// asking is an MCP request under way.
type asking struct {
	t *tunnel
	q *question
}

// inner sends an MCP request to a target of a tunnel.
func (r *run) inner(t *tunnel, target, method string, params []byte) asking {
	if t.codec.Stateless() {
		params, _ = mcp.ModernParams(params, build)
	}
	t.requests++
	outer, wrapped := t.codec.Message(target, "client-check-"+strconv.Itoa(t.requests), method, params)
	return asking{t, r.ask(outer, wrapped)}
}

// tell sends an MCP notification.
func (r *run) tell(t *tunnel, method string, params []byte) {
	outer, wrapped := t.codec.Message(t.target, "client-check-note", method, params)
	r.notify(outer, wrapped)
}

// reply is what came, without what the generation puts around it.
func (a asking) reply() (one reply) {
	f := a.q.reply
	if f.Error != nil {
		return reply{err: jsonrpc.ParseError(f.Error)}
	}
	one.result, one.err = a.t.codec.Unwrap(f.Result)
	return one
}

// mcp sends an MCP request and waits for its answer; when none comes the row has its mark.
func (r *run) mcp(row string, t *tunnel, target, method string, params []byte) (reply, bool) {
	if r.sock == nil {
		return reply{}, false
	}
	if r.last != nil {
		r.watch.judged(r.last)
	}
	a := r.inner(t, target, method, params)
	r.last = a.q
	if !r.answered(row, a.q) {
		r.sheet.put(r.unanswered(row, jsonrpc.Show(method)))
		return reply{}, false
	}
	return a.reply(), true
}

// listed asks for the first page of a server's tools, which it has given before, and says whether it is the same again. It is what the
// run asks to see that a client is well; when it is not, the row has its mark.
func (r *run) listed(row string, t *tunnel, target string) bool {
	answer, ok := r.mcp(row, t, target, mcp.MethodToolsList, nil)
	if !ok {
		return false
	}
	one, same := t.same(row, answer)
	if !same {
		r.sheet.put(one)
	}
	return same
}

// same wants an answer to be the first page of this tunnel's tools.
func (t *tunnel) same(row string, answer reply) (mark, bool) {
	if answer.err != nil {
		return failed(row, answer.show(), "tools/list gave tools before"), false
	}
	again := newCatalog("")
	if _, marks := again.page(answer.result); again.first != t.catalog.first {
		for _, m := range marks {
			return failed(row, answer.show(), "%s", m.why), false
		}
		return failed(row, answer.show(), "tools/list of %s gave another list before", jsonrpc.Show(t.declared.Name)), false
	}
	return passed(row, ""), true
}
