package mcp

import (
	"encoding/json/v2"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A Result is a view of the result of tools/call; the byte slices are ranges of it,
// nil when the member is absent or of the wrong kind.
type Result struct {
	Raw               []byte
	Content           []byte // an array
	StructuredContent []byte
	Meta              []byte // an object
	IsError           bool
	Type              string // resultType of the modern era: "" and "complete" are final
}

// Final reports whether the call has ended: the modern era also knows results that
// ask for input.
func (r Result) Final() bool { return r.Type == "" || r.Type == "complete" }

// ParseResult looks at the result of tools/call. It must be an object; isError and
// resultType, which are acted upon, must not stand twice. The rest is carried.
func ParseResult(raw []byte) (Result, error) {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return Result{}, fmt.Errorf("result of tools/call: %w", err)
	}
	if err := o.Unique("isError", "resultType"); err != nil {
		return Result{}, fmt.Errorf("result of tools/call: %w", err)
	}
	r := Result{Raw: o.Raw(), IsError: boolean(o, "isError") == Yes}
	if content, _ := o.Get("content"); jsonrpc.IsArray(content) {
		r.Content = content
	}
	if structured, ok := o.Get("structuredContent"); ok && !jsonrpc.IsNull(structured) {
		r.StructuredContent = structured
	}
	if meta, _ := o.Get("_meta"); jsonrpc.IsObject(meta) {
		r.Meta = meta
	}
	r.Type, _ = o.Text("resultType")
	return r, nil
}

// ErrorResult is a result with isError, one text block, and the refusal's name in
// _meta; an empty refusal leaves _meta out.
func ErrorResult(text, refusal string) []byte {
	dst := jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	dst = append(dst, `}],"isError":true`...)
	if refusal != "" {
		dst = append(dst, `,"_meta":{"`+MetaRefusal+`":`...)
		dst = jsonrpc.AppendString(dst, refusal)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// OverloadResult is ErrorResult for something that was full, with what is told of it
// beside the refusal's name.
func OverloadResult(text, refusal string, data jsonrpc.OverloadData) []byte {
	dst := ErrorResult(text, refusal)
	raw, err := json.Marshal(data)
	if err != nil {
		return dst
	}
	dst = append(dst[:len(dst)-len("}}")], `,"`+MetaOverload+`":`...)
	return append(append(dst, raw...), "}}"...)
}

// TextResult is a result of one text block.
func TextResult(text string) []byte {
	dst := jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return append(dst, "}]}"...)
}
