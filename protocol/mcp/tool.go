package mcp

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// MaxToolName is the longest name of a tool in bytes.
const MaxToolName = 256

// A Tool is one published tool. The byte slices are ranges of the page that it came
// in: whoever keeps a Tool longer than the page clones it.
type Tool struct {
	Name         string
	Title        string
	Description  string
	InputSchema  []byte // an object
	OutputSchema []byte // an object, nil when absent
	Annotations  Annotations
	TaskSupport  string // execution.taskSupport
	Raw          []byte // the whole tool as it was published
}

// Annotations are a server's hints about a tool. They are claims, not facts.
type Annotations struct{ ReadOnly, Destructive, Idempotent, OpenWorld Hint }

// Clone returns the tool on bytes of its own.
func (t Tool) Clone() Tool {
	raw := append([]byte(nil), t.Raw...)
	c, err := parseTool(raw)
	if err != nil {
		return t // not reachable: the bytes were parsed before
	}
	return c
}

// Size is the memory that the tool holds on to, in bytes.
func (t Tool) Size() int {
	return len(t.Raw) + len(t.Name) + len(t.Title) + len(t.Description)
}

// A BadTool is an entry of a page that is no tool. It hides none of its siblings.
type BadTool struct {
	Index int
	Name  string // "" when there is none; a peer's text
	Why   string // one line
}

// MaxBadTools is how many entries that are no tools are read of one page or list:
// whatever stands behind them is not.
const MaxBadTools = 256

// ParseToolsPage reads one page of tools/list, as ParseTools its array. next is "" on
// the last page. It is an error when the result is no page at all.
func ParseToolsPage(result []byte, most int) (tools []Tool, bad []BadTool, next string, err error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return nil, nil, "", fmt.Errorf("result of tools/list: %w", err)
	}
	if err := o.Unique("tools", "nextCursor"); err != nil {
		return nil, nil, "", fmt.Errorf("result of tools/list: %w", err)
	}
	raw, _ := o.Get("tools")
	if tools, bad, err = ParseTools(raw, most); err != nil {
		return nil, nil, "", fmt.Errorf("result of tools/list: %w", err)
	}
	if raw, ok := o.Get("nextCursor"); ok && !jsonrpc.IsNull(raw) {
		if next, ok = jsonrpc.String(raw); !ok {
			return nil, nil, "", fmt.Errorf("result of tools/list: nextCursor is no string")
		}
	}
	return tools, bad, next, nil
}

// ParseTools reads an array of tools: of a page, or of a declaration's early list. It
// stops behind one tool more than most, which tells that there are more, and behind
// MaxBadTools entries that are none. The texts of the tools are at most as long as the
// array.
func ParseTools(array []byte, most int) (tools []Tool, bad []BadTool, err error) {
	elements, err := jsonrpc.Elements(array)
	if err != nil {
		return nil, nil, fmt.Errorf("tools: %w", err)
	}
	for n, e := range elements {
		t, err := parseTool(e)
		if err != nil {
			if bad = append(bad, BadTool{Index: n, Name: t.Name, Why: err.Error()}); len(bad) >= MaxBadTools {
				break
			}
			continue
		}
		if tools = append(tools, t); len(tools) > most {
			break
		}
	}
	return tools, bad, nil
}

func parseTool(raw []byte) (Tool, error) {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return Tool{}, err
	}
	t := Tool{Raw: raw}
	if err := o.Unique("name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"); err != nil {
		return t, err
	}
	name, _ := o.Get("name")
	var ok bool
	if t.Name, ok = jsonrpc.String(name); !ok {
		return t, fmt.Errorf("name must be a string")
	}
	if !validToolName(t.Name) {
		return t, fmt.Errorf("name must be 1 to %d bytes of printable characters", MaxToolName)
	}
	schema, _ := o.Get("inputSchema")
	if !jsonrpc.IsObject(schema) {
		return t, fmt.Errorf("inputSchema must be an object")
	}
	t.InputSchema = schema
	if output, _ := o.Get("outputSchema"); jsonrpc.IsObject(output) {
		t.OutputSchema = output
	}
	t.Title, _ = o.Text("title")
	t.Description, _ = o.Text("description")
	a := object(o, "annotations")
	if err := a.Unique("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"); err != nil {
		return t, fmt.Errorf("annotations: %w", err)
	}
	t.Annotations = Annotations{
		ReadOnly: boolean(a, "readOnlyHint"), Destructive: boolean(a, "destructiveHint"),
		Idempotent: boolean(a, "idempotentHint"), OpenWorld: boolean(a, "openWorldHint"),
	}
	if t.Title == "" {
		t.Title, _ = a.Text("title")
	}
	t.TaskSupport, _ = object(o, "execution").Text("taskSupport")
	return t, nil
}

// validToolName is wider than MCP's own advice: it keeps out only what could not be
// told apart from another name by whoever reads it. A space can: agents are shown it escaped.
func validToolName(name string) bool {
	if name == "" || len(name) > MaxToolName {
		return false
	}
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) { // of all spaces, only the one of ASCII counts as printable
			return false
		}
	}
	return true
}
