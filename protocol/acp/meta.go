package acp

import (
	"fmt"
	"slices"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// FilterMeta is what of a client's _meta an agent may see: the trace context and the
// keys of agent.forward_meta, with their values to the byte. It is nil when nothing
// is left. A key that stands twice is left with its last value.
func FilterMeta(meta []byte, forward []string) []byte {
	o, err := jsonrpc.ParseObject(meta)
	if err != nil {
		return nil
	}
	var kept []jsonrpc.Edit
	keep := func(name string) {
		known := func(e jsonrpc.Edit) bool { return e.Name == name }
		if value, ok := o.Get(name); ok && !slices.ContainsFunc(kept, known) {
			kept = append(kept, jsonrpc.Edit{Name: name, Value: value})
		}
	}
	for _, name := range []string{MetaTraceParent, MetaTraceState, MetaBaggage} {
		keep(name)
	}
	for _, name := range forward {
		keep(name)
	}
	if kept == nil {
		return nil
	}
	return jsonrpc.Object{}.Apply(nil, kept...)
}

// WithMeta returns the object with the entries set in its _meta and every other byte
// as it was. A _meta that is no object is replaced. null and nil stand for an empty
// object: some agents answer a load with null.
func WithMeta(object []byte, entries ...jsonrpc.Edit) ([]byte, error) {
	return WithMetaAnd(object, entries)
}

// WithMetaAnd is WithMeta with edits of the object's own members in the same pass:
// the result of session/new with its sessionId replaced.
func WithMetaAnd(object []byte, entries []jsonrpc.Edit, edits ...jsonrpc.Edit) ([]byte, error) {
	var o jsonrpc.Object
	if len(object) > 0 && !jsonrpc.IsNull(object) {
		var err error
		if o, err = jsonrpc.ParseObject(object); err != nil {
			return nil, fmt.Errorf("_meta: %w", err)
		}
	}
	if len(entries) > 0 {
		meta, _ := member(o, "_meta") // the zero Object when it is none
		edits = append(slices.Clone(edits), jsonrpc.Edit{Name: "_meta", Value: meta.Apply(nil, entries...)})
	}
	return o.Apply(nil, edits...), nil
}

// WithSessionID returns params or a result with its sessionId replaced, every other
// byte as it was.
func WithSessionID(object []byte, id string) ([]byte, error) {
	o, err := jsonrpc.ParseObject(object)
	if err != nil {
		return nil, fmt.Errorf("sessionId: %w", err)
	}
	return o.Set("sessionId", jsonrpc.AppendString(nil, id)), nil
}
