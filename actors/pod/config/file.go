package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds a configuration file; the documented one has 5 KiB.
const maxFile = 1 << 20

// find is the contract's search: the file named on the command line, then $ACPOD_CONFIG, then the three usual places. One
// that was named must exist. An empty answer means that there is none.
func find(named string, env func(string) (string, bool)) (string, error) {
	if named != "" {
		return named, nil
	}
	if path, ok := env("ACPOD_CONFIG"); ok && path != "" {
		return path, nil
	}
	places := []string{"acpod.toml"}
	if dir, ok := env("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		places = append(places, filepath.Join(dir, "acpod", "acpod.toml"))
	} else if home, ok := env("HOME"); ok && home != "" {
		places = append(places, filepath.Join(home, ".config", "acpod", "acpod.toml"))
	}
	for _, path := range append(places, "/etc/acpod/acpod.toml") {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // a daemon's HOME is often /dev/null
			return "", &Error{At: Origin{Layer: FromFile, Name: path}, Problem: "cannot be looked at: " + reason(err), Allowed: "a readable file, or none"}
		}
	}
	return "", nil
}

// readFile reads at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	bad := func(problem string) error {
		return &Error{At: Origin{Layer: FromFile, Name: path}, Problem: problem, Allowed: "a readable TOML file of at most 1 MiB"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bad("cannot be opened: " + reason(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, bad("cannot be read: " + reason(err))
	case len(text) > maxFile:
		return nil, bad("is larger than 1 MiB")
	}
	return text, nil
}

// reason is the system's word for what went wrong, without the path that stands before it already.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// parseFile is the strict pass over one file: TOML first, then every key against the schema. The error is the first in the file.
func parseFile(name string, text []byte, env func(string) (string, bool)) (*layer, error) {
	tree := map[string]any{}
	if err := toml.Unmarshal(text, &tree); err != nil {
		problem := &Error{At: Origin{Layer: FromFile, Name: name}, Problem: oneLine(err.Error())}
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			problem.At.Line, _ = decode.Position()
			problem.Key = strings.Join(decode.Key(), ".")
		}
		problem.Problem = "not TOML: " + problem.Problem
		return nil, problem
	}
	lines := keyLines(text)
	l := newLayer(func(path string) Origin { return Origin{Layer: FromFile, Name: name, Line: lines.of(path)} }, env)
	l.values = l.section(schema, "", tree)
	return l, first(l.errs)
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(s, "toml: ")), " ")
}

// first is the problem nearest to the top of its file; it tells how many others there are.
func first(errs []*Error) error {
	if len(errs) == 0 {
		return nil
	}
	sort.Slice(errs, func(i, j int) bool {
		if errs[i].At.Line != errs[j].At.Line {
			return errs[i].At.Line < errs[j].At.Line
		}
		return errs[i].Key < errs[j].Key
	})
	one := *errs[0]
	one.More = len(errs) - 1
	return &one
}
