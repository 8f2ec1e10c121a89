package clientcheck

import (
	"fmt"
	"slices"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// askServers speaks MCP with each server, and asks the first of each generation what else a pod may ask.
func (r *run) askServers() {
	var generations []string
	for _, t := range r.tunnels {
		if t.target == "" {
			continue
		}
		if t.usable = r.shakeHands(t) && r.readTools(t); !t.usable {
			continue
		}
		one := Server{Name: jsonrpc.Show(t.declared.Name), Generation: t.codec.Name(), Tools: len(t.catalog.names)}
		if t.catalog.call != nil {
			one.Called = jsonrpc.Show(t.catalog.call.Name)
		}
		r.report.Client.Servers = append(r.report.Client.Servers, one)
		if !slices.Contains(generations, one.Generation) {
			generations = append(generations, one.Generation)
			r.probe(t)
		}
	}
	r.mixed()
	if r.sock != nil {
		r.notify(acp.MethodServers, r.states())
	}
}

// states are the params of _acpod/servers.
func (r *run) states() []byte {
	b := append(jsonrpc.AppendString([]byte(`{"sessionId":`), r.session), `,"servers":[`...)
	for k, t := range r.tunnels {
		if k > 0 {
			b = append(b, ',')
		}
		state := "failed"
		if t.usable {
			state = "ready"
		}
		b = fmt.Appendf(b, `{"name":%s,"id":%s,"state":%q,"tools":{"offered":%d,"withheld":0}}`,
			jsonrpc.AppendString(nil, t.declared.Name), jsonrpc.AppendString(nil, t.declared.ID), state, len(t.catalog.names))
	}
	return append(b, `],"facade":{"state":"off","delivery":"acp"}}`...)
}

// shakeHands makes the MCP handshake.
func (r *run) shakeHands(t *tunnel) bool {
	if !t.connects() {
		return true
	}
	answer, ok := r.mcp(rowHandshake, t, t.target, mcp.MethodInitialize, mcp.InitializeParams(build))
	if !ok {
		return false
	}
	one := judgeHandshake(answer)
	r.sheet.put(one)
	if one.status != tally.Pass {
		return false
	}
	r.watch.silent = rowInitialized
	r.tell(t, mcp.MethodInitialized, nil)
	return true
}

// judgeHandshake judges the answer to MCP's initialize.
func judgeHandshake(answer reply) mark {
	if answer.err != nil {
		return failed(rowHandshake, answer.show(), "a server that does not answer initialize is failed")
	}
	server, err := mcp.ParseInitialized(answer.result)
	if err != nil {
		return failed(rowHandshake, answer.show(), "%s", err)
	}
	return passed(rowHandshake, "%s", server.Version)
}

// readTools reads all pages of a server's tools.
func (r *run) readTools(t *tunnel) bool {
	cursor, pages := "", 0
	for pages < maxPages {
		answer, ok := r.mcp(rowPages, t, t.target, mcp.MethodToolsList, mcp.ListParams(cursor))
		if !ok {
			return false
		}
		if answer.err != nil {
			r.sheet.put(failed(rowPages, answer.show(), "page %d of its tools", pages+1))
			return false
		}
		if pages++; pages == 1 && r.watch.silent == rowInitialized {
			r.rest(r.cfg.quiet)
			r.watch.silent = ""
			r.sheet.put(passed(rowInitialized, ""))
		}
		next, marks := t.catalog.page(answer.result)
		r.sheet.put(marks...)
		if cursor = next; cursor == "" {
			break
		}
	}
	if pages == maxPages && cursor != "" {
		r.sheet.put(failed(rowPages, fmt.Sprintf("more than %d pages", maxPages), "a pod stops reading long before"))
	}
	if r.sheet.is(rowPages, tally.Fail) {
		return false
	}
	r.sheet.put(passed(rowPages, "%d tools on %d pages", len(t.catalog.names), pages), passed(rowTools, "%d tools", len(t.catalog.names)))
	return true
}
