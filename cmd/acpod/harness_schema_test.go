package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Every frame that the pod sends to an extension of these tests is held against the project's own schemas, for what ACP's
// schema does not know; the interop suites hold the rest against that one.

// ownSchemas are the compiled schemas of testdata/schema by the name of their file.
var ownSchemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	folder := filepath.Join(root, "testdata", "schema")
	files, err := os.ReadDir(folder)
	if err != nil {
		panic(err)
	}
	compiled := map[string]*jsonschema.Schema{}
	for _, file := range files {
		compiled[strings.TrimSuffix(file.Name(), ".json")] = jsonschema.NewCompiler().MustCompile(filepath.Join(folder, file.Name()))
	}
	return compiled
})

// misfit says how a frame departs from the schemas, or nothing.
func (f frame) misfit() string {
	judge := func(name string, text []byte) string {
		schema, known := ownSchemas()[name]
		if !known {
			return "no schema knows " + name
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			return name + ": " + err.Error()
		}
		return ""
	}
	switch {
	case f.Method == "_acpod/keepalive":
		return judge("_acpod.keepalive", []byte(f.raw))
	case strings.HasPrefix(f.Method, "_acpod/"), strings.HasPrefix(f.Method, "mcp/"), strings.HasPrefix(f.Method, "_mcp/"):
		return judge(strings.ReplaceAll(f.Method, "/", ".")+".params", f.Params)
	case f.Method == "" && strings.Contains(string(f.Result), `"acpod.dev/`):
		var result struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(f.Result, &result); err != nil {
			return err.Error()
		}
		for key, text := range result.Meta {
			if word, ours := strings.CutPrefix(key, "acpod.dev/"); ours {
				if wrong := judge("meta."+word, text); wrong != "" {
					return wrong
				}
			}
		}
	}
	return ""
}
