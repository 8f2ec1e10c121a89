package acp

import (
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// ClientCapabilities are what a client serves of what an agent may ask of it.
type ClientCapabilities struct {
	ReadTextFile, WriteTextFile, Terminal bool
	Form, URL                             bool // elicitation
}

// ParseClientCapabilities reads clientCapabilities; whatever is malformed is not offered. nil
// offers nothing.
func ParseClientCapabilities(raw []byte) ClientCapabilities {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return ClientCapabilities{}
	}
	files, _ := member(o, "fs")
	ask, _ := member(o, "elicitation")
	return ClientCapabilities{
		ReadTextFile: flag(files, "readTextFile"), WriteTextFile: flag(files, "writeTextFile"), Terminal: flag(o, "terminal"),
		Form: marker(ask, "form"), URL: marker(ask, "url"),
	}
}

// AgentClient is what of a client's capabilities an agent is told: all of it, to the byte, but
// auth.terminal, by which the client offers to run the agent's own command where it is itself,
// and there is none there.
func AgentClient(raw []byte) []byte {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil
	}
	auth, ok := member(o, "auth")
	if !ok || !auth.Has("terminal") {
		return o.Raw()
	}
	return o.Set("auth", auth.Delete("terminal"))
}

// Serves reports whether a client with these capabilities may be sent that request of an agent:
// one of ACP when it declared it, an extension of the agent always, since nothing declares
// those and a client that knows it not says so itself. What would speak in the pod's place (its
// own methods, those of MCP over ACP) never passes.
func (c ClientCapabilities) Serves(method string, params []byte) bool {
	switch method {
	case MethodReadTextFile:
		return c.ReadTextFile
	case MethodWriteTextFile:
		return c.WriteTextFile
	case MethodElicitation:
		o, err := jsonrpc.ParseObject(params)
		if err != nil || o.Unique("mode") != nil {
			return false
		}
		switch mode, _ := o.Text("mode"); mode {
		case "form":
			return c.Form
		case "url":
			return c.URL
		}
		return false // a mode that is declared by nothing that we know
	}
	if strings.HasPrefix(method, "terminal/") {
		return c.Terminal
	}
	return strings.HasPrefix(method, "_") && !Reserved(method)
}

// Reserved tells the methods that are never passed from one side to the other, because they are
// said by the pod or to it: its own, MCP over ACP, those of the protocol itself, and all that open
// or end a session or a turn.
func Reserved(method string) bool {
	for _, prefix := range []string{"_acpod/", "_mcp/", "mcp/", "$/", "proxy/"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	switch method {
	case MethodInitialize, MethodAuthenticate, MethodLogout,
		MethodSessionNew, MethodSessionLoad, MethodSessionResume, MethodSessionFork, MethodSessionList, MethodSessionClose,
		MethodSessionDelete, MethodSessionPrompt, MethodSessionCancel:
		return true
	}
	return false
}

// OfClient tells the methods that only an agent calls: a client has no business with them.
func OfClient(method string) bool {
	switch method {
	case MethodSessionUpdate, MethodPermission, MethodReadTextFile, MethodWriteTextFile, MethodElicitation, MethodElicitationDone:
		return true
	}
	return strings.HasPrefix(method, "terminal/")
}
