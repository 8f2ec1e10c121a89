package session

import (
	"slices"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// allowed judges what a client asks of the agent itself, and reads the mode that it sets, "" for none. Where the pod answers
// permission requests in the client's place, a mode in which the agent does not ask would switch that off: there only modes in
// agent.modes may be set, an option that the agent never named may not, and neither may what only the agent understands, since
// that may set anything.
func (x *session) allowed(method string, params []byte) (mode string, bad *jsonrpc.Error) {
	o, err := jsonrpc.ParseObject(params)
	if err == nil {
		err = o.Unique("sessionId", "modeId", "configId", "value")
	}
	if err != nil {
		return "", jsonrpc.BadParams("params: %v", err)
	}
	open := x.s.cfg.Permissions == Relay
	switch method {
	case acp.MethodSessionSetMode:
		if mode, err = o.Text("modeId"); err != nil || mode == "" {
			return "", jsonrpc.BadParams("modeId is required and must be a string")
		}
		if !open && !slices.Contains(x.s.cfg.Modes, mode) {
			return "", notAllowed(mode)
		}
	case acp.MethodSessionSetOpt:
		id, err := o.Text("configId")
		if err != nil || id == "" {
			return "", jsonrpc.BadParams("configId is required and must be a string")
		}
		if open {
			break
		}
		isMode, known := x.settings.isMode(id)
		value, _ := o.Text("value")
		switch {
		case !known:
			return "", jsonrpc.BadParams("the agent has no option %s", jsonrpc.Show(id))
		case isMode && !slices.Contains(x.s.cfg.Modes, value):
			return "", notAllowed(value)
		}
	case "session/set_title", "session/status", "session/set_model":
	default:
		if !open {
			return "", jsonrpc.UnknownMethod(method)
		}
	}
	return mode, nil
}

func notAllowed(mode string) *jsonrpc.Error {
	return jsonrpc.BadParams("mode %s may not be set here: the pod's agent.modes does not name it, and agent.permissions is not relay", jsonrpc.Show(mode))
}
