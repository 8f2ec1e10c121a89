package mcpjson

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Layer is one file. Later ones win.
type Layer struct {
	Path     string
	Optional bool // that it is not there says that there is nothing
}

// Layers are the files that are read: those named, in their order, else ~/.openab/agent/mcp.json and then ./.openab/agent/mcp.json. An empty
// home has none.
func Layers(home, dir string, named []string) []Layer {
	var out []Layer
	for _, path := range named {
		out = append(out, Layer{Path: path})
	}
	if len(named) > 0 {
		return out
	}
	own := filepath.Join(dir, ".openab", "agent", "mcp.json")
	if home != "" {
		users := filepath.Join(home, ".openab", "agent", "mcp.json")
		if users != own {
			out = append(out, Layer{Path: users, Optional: true})
		}
	}
	return append(out, Layer{Path: own, Optional: true})
}

// Text is one layer that was read, or why it could not be.
type Text struct {
	Path string
	Text []byte
	Err  error
}

// Read reads the layers and says what they say together. It never fails: what is wrong is among the problems.
func Read(layers []Layer) Set {
	var texts []Text
	for _, l := range layers {
		text, err := readFile(l.Path)
		if l.Optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		texts = append(texts, Text{l.Path, text, err})
	}
	return Parse(texts)
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // opening a pipe would wait for who writes into it
	if err == nil && !info.Mode().IsRegular() && !isNull(path) {
		err = errors.New("it is not a file")
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err == nil && len(text) > MaxFileBytes {
		err = fmt.Errorf("it has more than %d bytes", MaxFileBytes)
	}
	return text, withoutPath(err)
}

// isNull: /dev/null is how one says that there is nothing to read.
func isNull(path string) bool { return path == os.DevNull }

// withoutPath is the reason alone: the problem names the file.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
