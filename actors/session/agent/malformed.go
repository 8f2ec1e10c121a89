package agent

import "github.com/acpod/acpod/protocol/jsonrpc"

// malformed answers the open request whose id stands in a line that calls nothing and is no valid response: without result and error, or with
// one of its members twice. Nothing better will come for it. It reports whether there was such a request.
func (p *reading) malformed(line []byte) bool {
	o, err := jsonrpc.ParseObject(line)
	if err != nil || o.Unique("id", "method") != nil {
		return false
	}
	raw, _ := o.Get("id")
	id, _ := jsonrpc.ParseID(raw)
	n, ok := id.Int()
	method, _ := o.Get("method")
	if _, called := jsonrpc.String(method); !ok || called {
		return false
	}
	bad := jsonrpc.InternalError(jsonrpc.ReasonInternal, "the agent's answer was malformed: it is no JSON-RPC response with one result or one error")
	if n == initializeID && !p.ready.Load() {
		p.fail(bad)
		return true
	}
	q, known := p.pending.settle(n)
	if q != nil {
		q.Fail(bad)
	}
	return known
}
