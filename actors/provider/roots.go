package provider

import (
	"net/url"
	"path/filepath"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// rootsResult is the answer of roots/list: the folders as canonical file URIs, each once. A folder that is not there (yet) is told
// as it was written.
func rootsResult(folders []string) []byte {
	dst := []byte(`{"roots":[`)
	seen := map[string]bool{}
	for _, folder := range folders {
		path, err := filepath.Abs(folder)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if seen[path] {
			continue
		}
		if len(seen) > 0 {
			dst = append(dst, ',')
		}
		seen[path] = true
		dst = jsonrpc.AppendString(append(dst, `{"uri":`...), (&url.URL{Scheme: "file", Path: path}).String())
		dst = jsonrpc.AppendString(append(dst, `,"name":`...), filepath.Base(path))
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
