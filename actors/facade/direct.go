package facade

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Direct tools are capabilities that tools/list shows as tools of their own, behind the two built-in ones, to whoever may
// execute them. A call of one is an execution of that capability: the same pipeline, the same audit.

// directPatience is how long a list of tools waits for servers that the direct tools are on. Some agents hold their
// session until each list has come, so it is short.
const directPatience = 2 * time.Second

// ownPatience is the same of a proxy, whose tools are all that its agent gets: it lists them once.
const ownPatience = 5 * time.Second

// listTools answers tools/list.
func (x *exchange) listTools(params []byte) {
	if bad := noCursor(params); bad != nil {
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "cursor", err: bad})
		return
	}
	scope, ttl := "public", unchanging
	tools := [][]byte{metaTools}
	switch {
	case x.front.shows == ownTools:
		scope, ttl = "private", passing
		tools = x.ownTools()
	case len(x.front.cfg.Direct) > 0:
		scope, ttl = "private", passing
		tools = append(tools, x.directTools()...)
	}
	size := 0
	for _, tool := range tools {
		size += len(tool)
	}
	// Twice: as the entries are, and in one piece with them.
	room, err := x.payer().Acquire(2 * int64(size))
	if err != nil && x.payer() != x.front.account { // an agent whose session is full can still list
		room, err = x.front.account.Acquire(2 * int64(size))
	}
	if err != nil {
		x.out.full(x.id, err)
		return
	}
	defer room.Release()
	list := append(x.listHead(scope, ttl), `"tools":[`...)
	list = append(slices.Grow(list, size+len(tools)+2), bytes.Join(tools, []byte(","))...)
	_ = x.out.answer(resultAnswer(x.id, append(list, "]}"...), x.stateless), http.StatusOK)
}

// directTools are the entries of those direct tools that this caller may execute, in the order of the configuration.
func (x *exchange) directTools() [][]byte {
	ctx, cancel := context.WithTimeout(x.ctx, directPatience)
	defer cancel()
	var list [][]byte
	shown := map[string]bool{}
	for _, one := range capability.Direct(ctx, x.caller, x.front.cfg.Direct) {
		name := one.Name
		if reserved(name) {
			name = one.Server + "." + name
		}
		if shown[name] {
			x.front.count("direct_name_taken")
			continue
		}
		entry, err := directEntry(one, name)
		if err != nil {
			x.front.count("direct_entry")
			continue
		}
		shown[name] = true
		list = append(list, entry)
	}
	return list
}

// ownTools are the entries of all that this caller may see, by name.
func (x *exchange) ownTools() [][]byte {
	ctx, cancel := context.WithTimeout(x.ctx, ownPatience)
	defer cancel()
	var list [][]byte
	for _, one := range capability.Everything(ctx, x.caller) {
		entry, err := directEntry(one, one.Name)
		if err != nil {
			x.front.count("direct_entry")
			continue
		}
		list = append(list, entry)
	}
	return list
}

// directEntry is a tool as its server published it, under the name that it is called by, and with the schema that its
// arguments are checked against.
func directEntry(one capability.Capability, name string) ([]byte, error) {
	object, err := jsonrpc.ParseObject(one.Tool.Raw)
	if err != nil {
		return nil, err
	}
	edits := []jsonrpc.Edit{{Name: "name", Value: jsonrpc.AppendString(nil, name)}}
	if schema, ok := object.Get("inputSchema"); !ok || !bytes.Equal(schema, one.Tool.InputSchema) {
		edits = append(edits, jsonrpc.Edit{Name: "inputSchema", Value: one.Tool.InputSchema})
	}
	return object.Apply(nil, edits...), nil
}

// isDirect finds the capability that a direct tool stands for. A configured name that is one of the built-in ones is
// called by its qualified form.
func (f *front) isDirect(tool string) bool {
	if f.shows == ownTools {
		return true // which there are, the pipeline knows
	}
	if !reserved(tool) && slices.Contains(f.cfg.Direct, tool) {
		return true
	}
	_, plain, qualified := strings.Cut(tool, ".")
	return qualified && reserved(plain) && slices.Contains(f.cfg.Direct, plain)
}

// reserved names are the built-in tools': no direct tool takes one.
func reserved(name string) bool { return name == searchTool || name == executeTool }
