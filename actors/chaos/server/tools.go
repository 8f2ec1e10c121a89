package server

import (
	"slices"
	"strings"
)

// Tool is one of the five of the default grant.
type Tool struct {
	Name     string
	ReadOnly bool
}

// Tools are the five. Two only read: what the pod may say about a call that was sent depends on it.
var Tools = []Tool{
	{"katashiro.read_dom", true}, {"katashiro.screenshot", true}, {"katashiro.navigate", false}, {"katashiro.click", false}, {"katashiro.type", false},
}

// IsTool reports whether a name is one of the five.
func IsTool(name string) bool {
	return slices.ContainsFunc(Tools, func(t Tool) bool { return t.Name == name })
}

// schema has what the pod has to check on each call; s is what a caller pads with.
const schema = `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n"],"additionalProperties":false}`

// FiveTools is the tools array as it should be.
var FiveTools = ToolsArray("", "")

// ToolsArray is the five tools with a text in each title and description, and more elements behind them: JSON of a tool each, led by a comma.
func ToolsArray(quotedText, more string) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i, tool := range Tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"name":"` + tool.Name + `"`)
		if quotedText != "" {
			b.WriteString(`,"title":` + quotedText + `,"description":` + quotedText)
		}
		b.WriteString(`,"inputSchema":` + schema)
		if tool.ReadOnly {
			b.WriteString(`,"annotations":{"readOnlyHint":true}`)
		}
		b.WriteByte('}')
	}
	b.WriteString(more + "]")
	return []byte(b.String())
}
