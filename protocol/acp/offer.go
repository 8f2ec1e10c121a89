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
	Build   string             // the pod's version
	Version int                // the negotiated protocol version
	Prompt  PromptCapabilities // the agent's
}

// Append appends the result of initialize: the baseline of the contract. It offers
// resume, close and list; what the pod does not serve is not offered, whatever the
// agent can do.
func (o Offer) Append(dst []byte) []byte {
	dst = append(dst, `{"protocolVersion":`...)
	dst = strconv.AppendInt(dst, int64(o.Version), 10)
	dst = append(dst, `,"agentCapabilities":{"loadSession":false,`+
		`"mcpCapabilities":{"http":false,"sse":false,"acp":true,"_meta":{"dev.openab/acp":true}},`+
		`"sessionCapabilities":{"resume":{},"close":{},"list":{}},"promptCapabilities":{"image":`...)
	dst = strconv.AppendBool(dst, o.Prompt.Image)
	dst = append(dst, `,"audio":`...)
	dst = strconv.AppendBool(dst, o.Prompt.Audio)
	dst = append(dst, `,"embeddedContext":`...)
	dst = strconv.AppendBool(dst, o.Prompt.EmbeddedContext)
	dst = append(dst, `}},"agentInfo":{"name":"acpod","title":"acpod","version":`...)
	dst = jsonrpc.AppendString(dst, o.Build)
	return append(dst, `},"authMethods":[]}`...)
}
