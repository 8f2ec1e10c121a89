package provider

import (
	"bytes"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// FuzzPage holds what is read of a page to what must be so whatever a server sends: each tool passes the filter, has the bytes that stand in the page and a
// schema that is an object within the limit; nothing counts twice.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"},{"name":"b","inputSchema":null},7],"nextCursor":"x"}`))
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"required":null,"required":[]}}, {"inputSchema":{},"name":"send","\u006eame":"a"}]}`))
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"type":null , "x":1}},{"name":"\ud800","inputSchema":true}],"nextCursor":null}`))
	f.Add([]byte(`{"tools":{}}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		allowed := filter{exclude: []string{"send*"}}
		p, err := parsePage(result, allowed, 100)
		if err != nil {
			return
		}
		for _, x := range p.tools {
			o, err := jsonrpc.ParseObject(x.InputSchema)
			switch {
			case err != nil || len(x.InputSchema) > 100 || len(x.Raw) > 200:
				t.Errorf("the schema of %q is %q", x.Name, x.InputSchema)
			case !allowed.allows(x.Name) || x.Name == "":
				t.Errorf("%q is not allowed", x.Name)
			case !bytes.Contains(result, x.Raw):
				t.Errorf("%q does not stand in the page", x.Raw)
			case o.Len() == 0:
				t.Errorf("%q has an empty schema", x.Name)
			}
			if again, _, err := mcp.ParseTools(append(append([]byte("["), x.Raw...), ']'), 1); err == nil && len(again) == 1 && again[0].Name != x.Name {
				t.Errorf("%q is called %q", x.Raw, x.Name)
			}
		}
		if raw, _ := jsonrpc.ParseObject(result); len(p.tools)+len(p.left)+p.filtered > 0 && raw.Len() == 0 {
			t.Error("tools out of nothing")
		}
	})
}
