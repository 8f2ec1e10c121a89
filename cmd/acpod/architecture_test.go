package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/acpod/acpod/"

// arrows says what each room may import of the project. A room may import what lies along its arrows, nothing points back:
//
//	cmd → pod → {connection, facade, provider, playground}
//	connection → session → tunnel → capability → {runtime, protocol}
//	facade → capability, provider → capability, chaos → protocol
//
// A new package has to be entered here, so that its place is a decision and not an accident.
var arrows = map[string][]string{
	"protocol/jsonrpc": {},
	"protocol/acp":     {"protocol/jsonrpc"},
	"protocol/mcp":     {"protocol/jsonrpc"},

	"runtime/kernel":     {},
	"runtime/kerneltest": {"runtime/kernel"},
	"runtime/inspect":    {"runtime/kernel"},
	"runtime/process":    {"runtime/kernel"},
	"runtime/door":       {},

	"actors/audit":             below("actors/capability"),
	"actors/capability/search": {"protocol/jsonrpc", "protocol/mcp"},
	"actors/capability/redact": {"protocol/jsonrpc"},
	"actors/capability":        below("actors/capability/search", "actors/capability/redact"),
	"actors/capability/pins":   below("actors/capability"),
	"actors/provider/link":     below(),
	"actors/provider/mcpjson":  {"protocol/jsonrpc"},
	"actors/provider/stdio":    below("actors/provider/link"),
	"actors/provider/httplink": below("actors/provider/link"),
	"actors/provider":          below("actors/capability", "actors/capability/redact", "actors/provider/link", "actors/provider/mcpjson", "actors/provider/stdio", "actors/provider/httplink"),
	"actors/tunnel":            below("actors/capability"),
	"actors/session/agent":     below(),
	"actors/session/delivery":  below(),
	"actors/session":           below("actors/session/agent", "actors/session/delivery", "actors/tunnel", "actors/capability"),
	"actors/session/store":     below("actors/session"),
	"actors/bridge":            below("actors/capability"),
	"actors/connection":        below("actors/session", "actors/tunnel", "actors/capability"),
	"actors/facade":            below("actors/capability"),
	"actors/playground":        {},
	"actors/pod/config":        {},
	"actors/pod": below("actors/pod/config", "actors/audit", "actors/capability", "actors/tunnel", "actors/session", "actors/session/agent",
		"actors/session/delivery", "actors/session/store", "actors/bridge", "actors/connection", "actors/facade", "actors/playground", "actors/capability/pins", "actors/capability/redact", "actors/provider", "actors/provider/mcpjson"),

	"actors/playground/demo": {},

	"actors/chaos/wire":        {},
	"actors/chaos/pod":         {},
	"actors/chaos/agent":       protocolOnly(),
	"actors/chaos/tally":       {},
	"actors/chaos/conform":     protocolOnly("actors/chaos/wire", "actors/chaos/tally"),
	"actors/chaos/clientcheck": protocolOnly("actors/chaos/wire", "actors/chaos/tally"),
	"actors/chaos/scale":       protocolOnly("actors/chaos/wire", "actors/chaos/pod", "actors/chaos"),
	"actors/chaos/invariant":   {},
	"actors/chaos/fault":       {"actors/chaos/invariant"},
	"actors/chaos/proxy":       {},
	"actors/chaos/machine":     {},
	"actors/chaos/ledger":      {"actors/chaos/invariant"},
	"actors/chaos/peer":        protocolOnly("actors/chaos/wire", "actors/chaos/invariant", "actors/chaos/ledger"),
	"actors/chaos/server":      protocolOnly("actors/chaos/wire", "actors/chaos/invariant", "actors/chaos/ledger", "actors/chaos/peer"),
	"actors/chaos/extension":   protocolOnly("actors/chaos/wire", "actors/chaos/proxy", "actors/chaos/invariant", "actors/chaos/ledger", "actors/chaos/fault", "actors/chaos/peer", "actors/chaos/server"),
	"actors/chaos/caller":      protocolOnly("actors/chaos/invariant", "actors/chaos/ledger", "actors/chaos/fault"),
	"actors/chaos/prompter":    protocolOnly("actors/chaos/wire", "actors/chaos/agent", "actors/chaos/invariant", "actors/chaos/ledger", "actors/chaos/fault", "actors/chaos/peer", "actors/chaos/server"),
	"actors/chaos/watch":       {"actors/chaos/pod", "actors/chaos/invariant"},
	"actors/chaos": protocolOnly("actors/chaos/wire", "actors/chaos/pod", "actors/chaos/agent", "actors/chaos/proxy", "actors/chaos/invariant",
		"actors/chaos/ledger", "actors/chaos/fault", "actors/chaos/peer", "actors/chaos/server", "actors/chaos/extension", "actors/chaos/caller", "actors/chaos/prompter", "actors/chaos/machine", "actors/chaos/watch"),

	"runtime/admission": {"runtime/kernel"},

	"cmd/acpod-chaos": {"actors/chaos", "actors/chaos/agent", "actors/chaos/conform", "actors/chaos/clientcheck", "actors/chaos/tally", "actors/chaos/scale"},
	"cmd/acpod":       {"actors/pod", "actors/pod/config", "actors/playground", "actors/playground/demo", "runtime/process"},
}

// below is what every actor may use, the runtime and the protocol, and the rooms given.
func below(rooms ...string) []string {
	return append(rooms, "protocol/jsonrpc", "protocol/acp", "protocol/mcp",
		"runtime/kernel", "runtime/admission", "runtime/inspect", "runtime/process", "runtime/door")
}

// protocolOnly is what the harness may use: nothing of the server but how its wire is written, and the rooms given.
func protocolOnly(rooms ...string) []string {
	return append(rooms, "protocol/jsonrpc", "protocol/acp", "protocol/mcp")
}

// onlyIn are imports that belong to few files.
var onlyIn = map[string][]string{
	"github.com/asynkron/protoactor-go": {"runtime/kernel/cell.go", "runtime/kernel/mailbox.go"},
	"github.com/knadh/koanf":            {"actors/pod/"},
	"github.com/lxzan/gws":              {"actors/connection/", "actors/chaos/"},
	"github.com/mark3labs/mcp-go":       {"actors/facade/", "actors/playground/"},
	"github.com/kaptinlin/jsonschema":   {"actors/capability/"},
}

// TestImportsFollowTheArrows reads every file of the tree and compares its imports with the arrows above.
func TestImportsFollowTheArrows(t *testing.T) {
	seen := 0
	eachGoFile(t, func(path string, imports []string) {
		seen++
		room := filepath.ToSlash(filepath.Dir(path))
		test := strings.HasSuffix(path, "_test.go")
		allowed, known := arrows[room]
		if !known {
			t.Errorf("%s: the package %q has no place in the arrows of this test", path, room)
			return
		}
		for _, imported := range imports {
			inner, ours := strings.CutPrefix(imported, module)
			switch {
			case ours && inner == room: // an external test package imports its own
			case ours && test: // tests may use the simulation and may look along the arrows of who uses them
				if !slices.Contains(allowed, inner) && inner != "runtime/kerneltest" && !strings.HasPrefix(room, "cmd/") {
					t.Errorf("%s imports %s, against the arrows", path, inner)
				}
			case ours && !slices.Contains(allowed, inner):
				t.Errorf("%s imports %s, against the arrows", path, inner)
			case !ours && !test:
				for pkg, files := range onlyIn {
					if strings.HasPrefix(imported, pkg) && !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(filepath.ToSlash(path), f) }) {
						t.Errorf("%s imports %s, which belongs to %s", path, imported, strings.Join(files, ", "))
					}
				}
			}
		}
		if strings.HasPrefix(room, "protocol/") && !test {
			for _, banned := range []string{"net", "net/http", "sync", "os", "context"} {
				if slices.Contains(imports, banned) {
					t.Errorf("%s imports %s: protocol is pure, bytes in and values out", path, banned)
				}
			}
		}
		if room == "runtime/kernel" && !test && slices.Contains(imports, "net/http") {
			t.Errorf("%s imports net/http: the kernel is looked at through runtime/inspect", path)
		}
	})
	if seen < 50 {
		t.Fatalf("only %d Go files were found: the test looks in the wrong place", seen)
	}
}

// TestTheHouseHasSixRooms keeps the top level readable: whoever opens the project sees all of its parts at once.
func TestTheHouseHasSixRooms(t *testing.T) {
	allowed := []string{"actors", "protocol", "runtime", "cmd", "docs", "testdata", "bin", "artifacts", "node_modules"}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && !slices.Contains(allowed, entry.Name()) {
			t.Errorf("top-level folder %q is not one of the six", entry.Name())
		}
	}
}

// TestEveryPackageTellsItsContract wants a doc.go in each package and no file over 600 lines outside tests.
func TestEveryPackageTellsItsContract(t *testing.T) {
	rooms := map[string]bool{}
	eachGoFile(t, func(path string, _ []string) {
		room := filepath.Dir(path)
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		rooms[room] = rooms[room] || filepath.Base(path) == "doc.go"
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines > 600 {
			t.Errorf("%s has %d lines; does it still hold one idea?", path, lines)
		}
	})
	for room, told := range rooms {
		if !told {
			t.Errorf("package %s has no doc.go", room)
		}
	}
}

const root = "../.."

func eachGoFile(t *testing.T, visit func(path string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, name)
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(relative, imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
