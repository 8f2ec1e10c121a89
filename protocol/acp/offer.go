package acp

import (
	"strconv"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// PromptCapabilities are the kinds of blocks that an agent takes beyond text and
// resource_link.
type PromptCapabilities struct{ Image, Audio, EmbeddedContext bool }

// Offer is what the pod answers initialize with.
type Offer struct {
	Build   string     // the pod's version
	Version int        // the negotiated protocol version
	Agent   *AgentInfo // what the agent offers; nil = the baseline
	// Serves tells whether the pod answers that method; nil = all of them.
	Serves func(method string) bool
}

// Append appends the result of initialize. resume, close and list are the pod's own; the rest is
// the agent's, as far as the pod passes it on. What it does not pass on is not offered, whatever
// the agent can do: what a member of session/new asks for, of which an agent gets the folders
// alone (systemPrompt); lists of the agent's own sessions (archive); methods without a session
// that no agent is running for (providers, auth.status).
func (o Offer) Append(dst []byte) []byte {
	agent := o.Agent
	if agent == nil {
		agent = &AgentInfo{}
	}
	serves := func(method string) bool { return o.Serves == nil || o.Serves(method) }
	dst = append(dst, `{"protocolVersion":`...)
	dst = strconv.AppendInt(dst, int64(o.Version), 10)
	dst = strconv.AppendBool(append(dst, `,"agentCapabilities":{"loadSession":`...), agent.LoadSession && serves(MethodSessionLoad))
	dst = append(dst, `,"mcpCapabilities":{"http":false,"sse":false,"acp":true,"_meta":{"dev.openab/acp":true}},`+
		`"sessionCapabilities":{"resume":{},"close":{},"list":{}`...)
	for _, more := range []struct {
		name   string
		offers bool
	}{
		{"delete", agent.Session.Delete && serves(MethodSessionDelete)}, {"fork", agent.Session.Fork && serves(MethodSessionFork)}, {"additionalDirectories", agent.Session.AdditionalDirectories},
		{"status", agent.Session.Status}, {"title", agent.Session.Title},
	} {
		if more.offers {
			dst = append(append(append(dst, `,"`...), more.name...), `":{}`...)
		}
	}
	dst = strconv.AppendBool(append(dst, `},"promptCapabilities":{"image":`...), agent.Prompt.Image)
	dst = strconv.AppendBool(append(dst, `,"audio":`...), agent.Prompt.Audio)
	dst = strconv.AppendBool(append(dst, `,"embeddedContext":`...), agent.Prompt.EmbeddedContext)
	dst = append(dst, '}')
	if agent.Logout {
		dst = append(dst, `,"auth":{"logout":{}}`...)
	}
	dst = append(dst, `},"agentInfo":{"name":"acpod","title":"acpod","version":`...)
	dst = jsonrpc.AppendString(dst, o.Build)
	dst = append(dst, `},"authMethods":`...)
	if agent.AuthMethods == nil {
		return append(dst, "[]}"...)
	}
	return append(append(dst, agent.AuthMethods...), '}')
}
