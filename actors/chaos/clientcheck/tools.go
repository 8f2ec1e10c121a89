package clientcheck

import (
	"encoding/base64"
	"fmt"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// maxPages is how many pages of one list are asked for.
const maxPages = 64

// catalog is what is kept of a server's tools.
type catalog struct {
	names   map[string]bool
	first   string // the first name
	cursors map[string]bool
	call    *mcp.Tool // the one to be called, nil for none
	named   string    // the one that the author named, "" for none
}

func newCatalog(named string) *catalog {
	return &catalog{names: map[string]bool{}, cursors: map[string]bool{}, named: named}
}

// page takes one page of tools/list. next is "" when it was the last, or when there is no sense in going on.
func (c *catalog) page(result []byte) (next string, marks []mark) {
	tools, broken, next, err := mcp.ParseToolsPage(result, maxTools)
	if err != nil {
		return "", []mark{failed(rowPages, jsonrpc.Show(string(result[:min(len(result), 1<<10)])), "%s", err)}
	}
	for _, one := range broken {
		marks = append(marks, failed(rowTools, fmt.Sprintf("tool %d %s", one.Index, jsonrpc.Show(one.Name)), "%s", one.Why))
	}
	for _, tool := range tools {
		if why := c.misfit(tool); why != "" {
			marks = append(marks, failed(rowTools, "tool "+jsonrpc.Show(tool.Name), "%s", why))
		}
		if len(c.names) > maxTools {
			return "", marks
		}
		if c.first == "" {
			c.first = tool.Name
		}
		c.names[tool.Name] = true
		if c.call == nil && (c.named == "" && tool.Annotations.ReadOnly == mcp.Yes || c.named != "" && tool.Name == c.named) && len(tool.Raw) <= 2*maxSchemaBytes {
			clone := tool.Clone()
			c.call = &clone
		}
	}
	if next != "" && c.cursors[next] {
		return "", append(marks, failed(rowPages, "the cursor "+jsonrpc.Show(next)+" again", "the list never ends"))
	}
	c.cursors[next] = true
	return next, marks
}

// misfit says why a pod would leave a tool out, or take it for less than it is.
func (c *catalog) misfit(tool mcp.Tool) string {
	schema, err := jsonrpc.ParseObject(tool.InputSchema)
	kind, _ := jsonrpc.String(get(schema, "type"))
	switch {
	case c.names[tool.Name]:
		return "another tool of the list has that name"
	case len(c.names) == maxTools:
		return fmt.Sprintf("it is one more than the %d that a pod takes of one server", maxTools)
	case err != nil || kind != "object":
		return `its inputSchema has to have "type": "object"`
	case len(tool.InputSchema) > maxSchemaBytes:
		return fmt.Sprintf("its inputSchema has %d bytes, and a pod takes %d", len(tool.InputSchema), maxSchemaBytes)
	case len(tool.Raw) > 2*maxSchemaBytes:
		return fmt.Sprintf("it has %d bytes, and a pod takes %d", len(tool.Raw), 2*maxSchemaBytes)
	}
	return ""
}

// judgeContent judges the result of a call.
func judgeContent(result []byte) mark {
	shown := jsonrpc.Show(string(result[:min(len(result), 1<<10)]))
	r, err := mcp.ParseResult(result)
	if err != nil {
		return failed(rowContent, shown, "%s", err)
	}
	o, _ := jsonrpc.ParseObject(result)
	if raw, has := o.Get("isError"); has {
		if _, sound := jsonrpc.Bool(raw); !sound {
			return failed(rowContent, shown, "isError is no boolean")
		}
	}
	blocks, err := jsonrpc.Elements(r.Content)
	if err != nil {
		return failed(rowContent, shown, "it has no array content")
	}
	n := 0
	for k, block := range blocks {
		if why := misblock(block); why != "" {
			return failed(rowContent, fmt.Sprintf("block %d: %s", k, jsonrpc.Show(string(block[:min(len(block), 1<<10)]))), "%s", why)
		}
		n++
	}
	return passed(rowContent, "%d blocks in %d bytes", n, len(result))
}

// misblock says what is wrong with a content block.
func misblock(raw []byte) string {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return "a block is an object"
	}
	kind, _ := jsonrpc.String(get(o, "type"))
	text := func(name string) bool { _, sound := jsonrpc.String(get(o, name)); return sound }
	switch kind {
	case "":
		return "a block has a type"
	case acp.BlockText:
		if !text("text") {
			return "a text block has a string text"
		}
	case acp.BlockImage, acp.BlockAudio:
		data, sound := jsonrpc.String(get(o, "data"))
		if _, err := base64.StdEncoding.DecodeString(data); !sound || err != nil || !text("mimeType") {
			return "a block of " + kind + " has data in base64 and a mimeType"
		}
	case acp.BlockResourceLink:
		if !text("uri") || !text("name") {
			return "a resource_link has uri and name"
		}
	case acp.BlockResource:
		if !jsonrpc.IsObject(get(o, "resource")) {
			return "a resource block has an object resource"
		}
	}
	return ""
}

// reply is what a client's server answered, without what its generation puts around it.
type reply struct {
	result []byte
	err    *jsonrpc.Error
}

// refused reports that a call was not done: by an error, or in the result.
func (a reply) refused() bool {
	if a.err != nil {
		return true
	}
	r, err := mcp.ParseResult(a.result)
	return err == nil && r.IsError
}

func (a reply) show() string {
	if a.err != nil {
		return fmt.Sprintf("error %d %s", a.err.Code, jsonrpc.Show(a.err.Message))
	}
	return "result " + jsonrpc.Show(string(a.result[:min(len(a.result), 1<<10)]))
}

// judgeUnknown wants -32601.
func judgeUnknown(row string, a reply) mark {
	if a.err == nil || a.err.Code != jsonrpc.MethodNotFound {
		return failed(row, a.show(), "an unknown method is %d", jsonrpc.MethodNotFound)
	}
	return passed(row, "%s", a.show())
}

// judgeOutcome judges the answer to a permission request.
func judgeOutcome(offered []string, a reply) mark {
	if a.err != nil {
		return failed(rowPermission, a.show(), "an agent that cannot ask cannot go on; a client that cannot choose answers cancelled")
	}
	chosen, cancelled, err := acp.ParseOutcome(a.result)
	if err != nil {
		return failed(rowPermission, a.show(), "%s", err)
	}
	if cancelled {
		return passed(rowPermission, "cancelled")
	}
	for _, id := range offered {
		if id == chosen {
			return passed(rowPermission, "%s", jsonrpc.Show(id))
		}
	}
	return failed(rowPermission, "optionId "+jsonrpc.Show(chosen), "it was not offered")
}
