package provider

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// page is what one answer of tools/list holds.
type page struct {
	tools    []mcp.Tool
	filtered int
	left     []omission
	next     string // "" = it is the last one
}

// omission is a tool that is left out.
type omission struct {
	name string // "" = it has none
	why  reason
	text string
}

// reason is why a tool, or the rest of a list, is left out: the scope under which it is counted.
type reason string

const (
	notATool   reason = "tool_malformed"
	tooBig     reason = "tool_schema_bytes"
	needsTask  reason = "tool_task" // it can only be called as a task, which no caller of the pod could follow
	tooMany    reason = "tools"
	tooLong    reason = "tool_pages"
	goesRound  reason = "tool_cursor"
	noMoreRoom reason = Scope
)

// parsePage reads the result of tools/list. What the filter leaves out is not looked at any further; every other entry is
// judged alone, and hides none of its siblings. The tools are copies.
func parsePage(result []byte, f filter, schemaBytes int) (page, error) {
	o, err := jsonrpc.ParseObject(result)
	if err == nil {
		err = o.Unique("tools", "nextCursor")
	}
	if err != nil {
		return page{}, fmt.Errorf("%w: result of tools/list: %w", errHandshake, err)
	}
	raw, _ := o.Get("tools")
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return page{}, fmt.Errorf("%w: result of tools/list: tools: %w", errHandshake, err)
	}
	var p page
	if raw, ok := o.Get("nextCursor"); ok && !jsonrpc.IsNull(raw) {
		if p.next, ok = jsonrpc.String(raw); !ok {
			return page{}, fmt.Errorf("%w: result of tools/list: nextCursor is no string", errHandshake)
		}
	}
	for _, element := range elements {
		t, keep, bad := parseTool(element, f, schemaBytes)
		switch {
		case bad != nil:
			p.left = append(p.left, *bad)
		case !keep:
			p.filtered++
		default:
			p.tools = append(p.tools, t)
		}
		if len(p.tools) > maxTools || len(p.left) > maxTools {
			break
		}
	}
	return p, nil
}

// parseTool reads one entry.
func parseTool(element []byte, f filter, schemaBytes int) (t mcp.Tool, keep bool, bad *omission) {
	o, err := jsonrpc.ParseObject(element)
	if err != nil {
		return t, false, &omission{"", notATool, "is no object"}
	}
	name, _ := o.Text("name")
	if o.Unique("name") == nil && name != "" && !f.allows(name) {
		return t, false, nil
	}
	schema, why := normalised(o)
	if why != nil {
		return t, false, &omission{name, notATool, why.Error()}
	}
	if len(schema) > schemaBytes || len(element) > 2*schemaBytes {
		return t, false, &omission{name, tooBig, fmt.Sprintf("is larger than limits.tool_schema_bytes (%d)", schemaBytes)}
	}
	given, _ := o.Get("inputSchema")
	text := element
	if !bytes.Equal(schema, given) {
		text = o.Set("inputSchema", schema)
	}
	array := make([]byte, 0, len(text)+2) // the tool's bytes are ranges of it
	array = append(append(append(array, '['), text...), ']')
	tools, wrong, err := mcp.ParseTools(array, 1)
	switch {
	case err != nil:
		return t, false, &omission{name, notATool, err.Error()}
	case len(wrong) > 0:
		return t, false, &omission{name, notATool, wrong[0].Why}
	case tools[0].TaskSupport == "required":
		return t, false, &omission{name, needsTask, "can only be called as a task"}
	}
	t = tools[0]
	if len(text) != len(element) || !bytes.Equal(text, element) {
		t.Raw = bytes.Clone(element) // what a digest is made of is what the server wrote
	}
	return t, true, nil
}

// anyObject is the schema of a tool that says nothing about its arguments.
var anyObject = []byte(`{"type":"object"}`)

var errSchema = errors.New("inputSchema must be an object")

// normalised is the input schema as it can be used. A tool that has none, or an empty one, takes any object; members that
// are null say nothing, as some servers write those that they do not have. Everything else is the server's own.
func normalised(tool jsonrpc.Object) ([]byte, error) {
	if err := tool.Unique("inputSchema"); err != nil {
		return nil, err
	}
	raw, ok := tool.Get("inputSchema")
	if always, is := jsonrpc.Bool(raw); !ok || jsonrpc.IsNull(raw) || is && always {
		return anyObject, nil
	}
	if !jsonrpc.IsObject(raw) {
		return nil, errSchema
	}
	schema, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil, errSchema
	}
	var edits []jsonrpc.Edit
	left := schema.Len()
	for _, name := range []string{"type", "properties", "required", "additionalProperties", "description", "title", "$schema", "$defs", "definitions"} {
		if value, ok := schema.Get(name); ok && jsonrpc.IsNull(value) {
			edits = append(edits, jsonrpc.Edit{Name: name})
			left--
		}
	}
	switch {
	case left == 0:
		return anyObject, nil
	case len(edits) == 0:
		return raw, nil
	}
	return schema.Apply(nil, edits...), nil
}
