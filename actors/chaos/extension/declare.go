package extension

import (
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// declare gives the declarations of a new session, and what to look for in the pod's answer.
func (e *Extension) declare(s *slot, r *rand.Rand) (declared []byte, check func(result []byte)) {
	declared = s.server.Declaration()
	name := e.w.Faults.Draw(r, fault.Open)
	if e.isCalm() {
		name = ""
	}
	switch name {
	case "hostiletext":
		e.w.Faults.Injected(name, "name")
		return e.besides(declared, hostileText(r)), e.refusedServer(s.number, 1)
	case "oversize":
		e.w.Faults.Injected(name, "name")
		return e.besides(declared, strings.Repeat("n", 65)), e.refusedServer(s.number, 1)
	case "duplicate":
		if r.IntN(2) == 0 { // the last of equal names counts; the other is not connected
			e.w.Faults.Injected(name, "name")
			first := &server.Server{ID: s.server.ID + "-first", Generation: s.server.Generation}
			return append(append(first.Declaration(), ','), declared...), nil
		}
		e.w.Faults.Injected(name, "id") // the first of equal ids counts
		return append(append(declared, ','), s.server.DeclarationNamed("katashiro2")...), nil
	}
	return declared, nil
}

// besides adds a declaration under another name, with an id of its own.
func (e *Extension) besides(declared []byte, name string) []byte {
	other := &server.Server{ID: fmt.Sprintf("srv-%d-odd", e.number), Generation: server.GenA}
	return append(append(declared, ','), other.DeclarationNamed(name)...)
}

// refusedServer wants n servers of a session's answer to be refused.
func (e *Extension) refusedServer(session, n int) func([]byte) {
	return func(result []byte) {
		refused := 0
		for _, state := range statesOf(result) {
			if state.State == "refused" {
				refused++
			}
		}
		if refused != n {
			e.w.Book.Break(invariant.Told, nil, "session %d: %d servers with a name that is none were refused, want %d", session, refused, n)
			return
		}
		e.w.Book.Exercise(invariant.Told)
	}
}

// serverState is an entry of `_meta["acpod.dev/servers"]`.
type serverState struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	State string `json:"state"`
}

func statesOf(result []byte) []serverState {
	var answer struct {
		Meta map[string]struct {
			Servers []serverState `json:"servers"`
		} `json:"_meta"`
	}
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return nil
	}
	raw, _ := o.Get("_meta")
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil
	}
	raw, _ = meta.Get(acp.MetaServers)
	text := append(append([]byte(`{"_meta":{"servers":`), raw...), "}}"...)
	if json.Unmarshal(text, &answer) != nil {
		return nil
	}
	return answer.Meta["servers"].Servers
}

// tools gives the list that a server answers with; nil is the plain one.
func (e *Extension) tools(r *rand.Rand) []byte {
	if e.isCalm() {
		return nil
	}
	switch e.w.Faults.Draw(r, fault.Open) {
	case "hostiletext":
		e.w.Faults.Injected("hostiletext", "title")
		return server.ToolsArray(string(jsonrpc.AppendString(nil, hostileText(r))), "")
	case "oversize":
		var more strings.Builder
		switch r.IntN(3) {
		case 0:
			e.w.Faults.Injected("oversize", "list")
			for i := range e.w.Limits.Tools + 50 {
				fmt.Fprintf(&more, `,{"name":"katashiro.more_%d","inputSchema":{"type":"object"}}`, i)
			}
		case 1:
			e.w.Faults.Injected("oversize", "schema")
			fmt.Fprintf(&more, `,{"name":"katashiro.big","inputSchema":{"type":"object","description":%q}}`, strings.Repeat("d", e.w.Limits.ToolSchema+1))
		default:
			e.w.Faults.Injected("oversize", "tool_name")
			fmt.Fprintf(&more, `,{"name":"katashiro.%s","inputSchema":{"type":"object"}}`, strings.Repeat("t", 300))
		}
		return server.ToolsArray("", more.String())
	case "duplicate":
		e.w.Faults.Injected("duplicate", "tool")
		return server.ToolsArray("", strings.TrimSuffix(","+string(server.FiveTools)[1:], "]"))
	}
	return nil
}
