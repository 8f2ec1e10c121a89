package session

import (
	"strings"

	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// capabilityOf finds what a permission request is about, when it is a call of the facade's execute_capability: then its input
// stands in toolCall.rawInput, by itself or, as Codex has it, as the arguments of {server, tool}. An input with other members is
// another tool's, whatever its name says. "" when the request does not say.
func capabilityOf(params []byte) string {
	for _, name := range []string{"toolCall", "rawInput"} {
		o, err := jsonrpc.ParseObject(params)
		if err != nil || o.Unique(name) != nil {
			return ""
		}
		params, _ = o.Get(name)
	}
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return ""
	}
	if o.Has("tool") {
		server, _ := o.Text("server")
		tool, _ := o.Text("tool")
		if o.Unique("server", "tool", "arguments") != nil || server != delivery.EntryName || tool != executeTool {
			return ""
		}
		params, _ = o.Get("arguments")
		if o, err = jsonrpc.ParseObject(params); err != nil {
			return ""
		}
	}
	for name := range o.Members() {
		if name != "name" && name != "arguments" && name != "idempotency_key" {
			return ""
		}
	}
	if o.Unique("name") != nil {
		return ""
	}
	name, _ := o.Text("name")
	return name
}

// executeTool is the facade's tool that calls a capability.
const executeTool = "execute_capability"

// decide says how a permission request for that capability is answered: by the first rule whose server and tool fit,
// else by the default. A capability's server is what stands before its first dot; a rule names the tool with or
// without that prefix, as it is published. What a request does not name fits "*" only.
func decide(rules []PermissionRule, otherwise Decision, capability string) Decision {
	server, tool, _ := strings.Cut(capability, ".")
	for _, rule := range rules {
		anyTool := rule.Tool == "*" || rule.Tool == capability || rule.Tool == tool
		if (rule.Server == "*" || rule.Server == server) && anyTool {
			return rule.Decision
		}
	}
	return otherwise
}

// outcomeOf is the answer that chooses the option, or `cancelled` when there is none of that kind.
func outcomeOf(option acp.Option, found bool) []byte {
	if !found {
		return acp.CancelledOutcome()
	}
	return acp.SelectedOutcome(option.ID)
}

// answeredBy checks a client's answer: it passes to the byte when it selects an option that was offered; anything else
// is `cancelled`, never an approval.
func answeredBy(asked acp.Permission, result []byte) []byte {
	id, cancelled, err := acp.ParseOutcome(result)
	if err != nil || cancelled || !asked.Offers(id) {
		return acp.CancelledOutcome()
	}
	return result
}
