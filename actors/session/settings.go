package session

import (
	"bytes"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// settingBytes bounds each of the two that are remembered; an agent with hundreds of models has some 100 KiB.
const settingBytes = 256 << 10

// settings are the modes and the options of the agent as it told them last, so that a client that comes back knows them. Raw,
// paid by the session.
type settings struct {
	modes   setting // the object modes
	options setting // the array configOptions
}

type setting struct {
	raw   []byte // nil = unknown
	lease *kernel.Lease
}

// put takes over a value, and tells whether it is another than before. One that is too long is forgotten and counted.
func (s *setting) put(c *kernel.Ctx, raw []byte) (changed bool) {
	if bytes.Equal(raw, s.raw) {
		return false
	}
	s.lease.Release()
	*s = setting{}
	lease, err := c.Account().Acquire(int64(len(raw)))
	if err != nil || len(raw) > settingBytes {
		lease.Release()
		c.Refuse("settings")
		return true
	}
	*s = setting{bytes.Clone(raw), lease}
	return true
}

// note takes over what stands in a result of the agent, or in an update, and tells what of it has changed.
func (s *settings) note(c *kernel.Ctx, o jsonrpc.Object) (modes, options bool) {
	if raw, _ := o.Get("modes"); jsonrpc.IsObject(raw) {
		modes = s.modes.put(c, raw)
	}
	if raw, _ := o.Get("configOptions"); jsonrpc.IsArray(raw) {
		options = s.options.put(c, raw)
	}
	return modes, options
}

// setMode notes that the agent has that mode now.
func (s *settings) setMode(c *kernel.Ctx, mode string) {
	o, err := jsonrpc.ParseObject(s.modes.raw)
	if err != nil {
		return
	}
	if now, _ := o.Text("currentModeId"); now != mode {
		s.modes.put(c, o.Set("currentModeId", jsonrpc.AppendString(nil, mode)))
	}
}

// heed reads an update of the agent.
func (s *settings) heed(c *kernel.Ctx, update jsonrpc.Object, kind string) {
	switch kind {
	case acp.UpdateCurrentMode:
		if mode, err := update.Text("currentModeId"); err == nil && mode != "" {
			s.setMode(c, mode)
		}
	case acp.UpdateConfigOption:
		s.note(c, update)
	}
}

// isMode tells whether the option with that id sets the mode: by its category, or by its own name where it has none. known is
// false for one that the agent has not told.
func (s *settings) isMode(id string) (mode, known bool) {
	options, err := jsonrpc.Elements(s.options.raw)
	if err != nil {
		return false, false
	}
	for _, raw := range options {
		o, err := jsonrpc.ParseObject(raw)
		if err != nil {
			continue
		}
		if other, _ := o.Text("id"); other != id {
			continue
		}
		category, _ := o.Text("category")
		known, mode = true, mode || category == "mode" || id == "mode"
	}
	return mode, known
}

// edits are the members of a resume's result.
func (s *settings) edits() (edits []jsonrpc.Edit) {
	if s.modes.raw != nil {
		edits = append(edits, jsonrpc.Edit{Name: "modes", Value: s.modes.raw})
	}
	if s.options.raw != nil {
		edits = append(edits, jsonrpc.Edit{Name: "configOptions", Value: s.options.raw})
	}
	return edits
}

func (s *settings) free() {
	s.modes.lease.Release()
	s.options.lease.Release()
	*s = settings{}
}

// remember takes over what an agent says of its session at its start. A client that has the session already, and another agent
// now, is told what is different by the updates that say so.
func (x *session) remember(result []byte) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return
	}
	before, _ := jsonrpc.ParseObject(x.settings.modes.raw)
	was, _ := before.Text("currentModeId")
	_, options := x.settings.note(x.c, o)
	if x.opening != nil || x.client == nil {
		return
	}
	now, _ := jsonrpc.ParseObject(x.settings.modes.raw)
	if mode, _ := now.Text("currentModeId"); mode != was && mode != "" {
		x.tellUpdate(acp.UpdateCurrentMode, jsonrpc.AppendString([]byte(`"currentModeId":`), mode))
	}
	if options && x.settings.options.raw != nil {
		x.tellUpdate(acp.UpdateConfigOption, append([]byte(`"configOptions":`), x.settings.options.raw...))
	}
}

// tellUpdate says what the agent would say by an update.
func (x *session) tellUpdate(kind string, member []byte) {
	update := jsonrpc.AppendString([]byte(`,"update":{"sessionUpdate":`), kind)
	update = append(append(append(update, ','), member...), "}}"...)
	x.push(methodFrame(acp.MethodSessionUpdate, x.id, update), terminal)
}
