package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// documented is every key with the default that other programs and people rely on.
const documented = `
pod.drain_timeout = 25s
acp.listen = 127.0.0.1:8080
acp.auth_key =
acp.auth_key_file =
acp.allowed_origins = []
acp.playground = true
acp.keepalive = 20s
acp.pong_timeout = 20s
acp.write_timeout = 30s
acp.initialize_timeout = 1m
acp.trace = false
acp.keys = []
agent.driver = process
agent.command = [acpod agent demo]
agent.profile = auto
agent.workdir = .
agent.env = map[]
agent.inherit_env = []
agent.forward_meta = []
agent.modes = []
agent.permissions = relay
agent.permission = []
agent.permission_timeout = 5m
agent.queue = 0
agent.max_sessions = 10
agent.session_ttl = 4h
agent.start_timeout = 1m
agent.new_timeout = 2m
agent.turn_idle_timeout = 10m
agent.cancel_timeout = 10s
agent.stop_grace = 5s
agent.memory_max = 0B
agent.cpu_max =
agent.pids_max = 0
agent.delivery = auto
agent.allow_direct = false
agent.bridge_socket =
mcp.listen = 127.0.0.1:8848
mcp.tunnel_timeout = 2m50s
mcp.call_max = 30m
mcp.orphan_window = 30s
mcp.pin = first-use
mcp.anonymous = true
mcp.auth_key_file =
mcp.direct_tools = []
mcp.redact = []
mcp.acp_servers = [map[name:katashiro tools:[katashiro.read_dom katashiro.screenshot katashiro.navigate katashiro.click katashiro.type]]]
limits.frame_bytes = 8MiB
limits.request_bytes = 1MiB
limits.result_bytes = 8MiB
limits.connection_bytes = 48MiB
limits.session_bytes = 32MiB
limits.outbound_frames = 256
limits.outbound_bytes = 24MiB
limits.agent_line_bytes = 16MiB
limits.pod_bytes = 1GiB
limits.provider_bytes = 64MiB
limits.connections = 10000
limits.connections_per_address = 0
limits.handshakes = 1024
limits.sessions = 20000
limits.sessions_per_key = 0
limits.sessions_per_connection = 128
limits.prompts_per_connection = 32
limits.servers_per_session = 8
limits.establishes_per_connection = 64
limits.tools_per_server = 256
limits.tool_schema_bytes = 64KiB
audit.path =
state.dir =
state.retention = 720h
debug.listen = 127.0.0.1:8849
debug.auth_key =
debug.actions = false
debug.flight_bytes = 0B
`

func TestEveryKeyHasItsDocumentedDefault(t *testing.T) {
	for name, file := range map[string]string{"without a file": "", "with a file that has only [mcp]": "acpod.toml"} {
		loaded, err := LoadBytes(file, []byte("[mcp]\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		got.WriteByte('\n')
		for _, e := range loaded.Entries() {
			got.WriteString(strings.TrimRight(fmt.Sprintf("%s = %v", e.Key, e.Value), " ") + "\n")
			if e.Origin != "default" {
				t.Errorf("%s: %s is from %s", name, e.Key, e.Origin)
			}
		}
		if got.String() != documented {
			t.Errorf("%s:\n%s", name, got.String())
		}
	}
}

// leaf is one key with a value that is not its default, as TOML and as the text of a variable or flag.
type leaf struct {
	path, toml, text string
	key              *key
}

// leaves gives each key that can be set from one string.
func leaves() []leaf {
	text := map[string]string{
		"acp.listen": "127.0.0.1:1", "mcp.listen": "127.0.0.1:2", "debug.listen": "127.0.0.1:3", "acp.allowed_origins": "https://a.example",
		"agent.workdir": "/", "agent.driver": "none", "agent.profile": "claude", "agent.permissions": "deny", "agent.delivery": "acp", "mcp.pin": "off",
		"acp.auth_key_file": "", "mcp.auth_key_file": "", // files, in a test of their own
		// What holds another limit must stay above it.
		"agent.cpu_max": "1.5", "limits.session_bytes": "64MiB", "limits.outbound_bytes": "64MiB", "limits.agent_line_bytes": "1MiB", "limits.result_bytes": "1MiB",
	}
	var out []leaf
	for _, section := range schema.fields {
		for _, k := range section.fields {
			l := leaf{path: section.name + "." + k.name, key: k}
			given, known := text[l.path]
			switch {
			case known && given == "", k.kind == kindTables, k.kind == kindStringMap, k.seconds != nil:
				continue
			case known:
				l.text = given
			case k.kind == kindBool:
				l.text = "true"
				if l.path == "acp.playground" || l.path == "mcp.anonymous" {
					l.text = "false"
				}
			case k.kind == kindInt, k.kind == kindDuration, k.kind == kindSize:
				l.text = k.show(k.max - 1)
			default:
				l.text = "other"
			}
			switch k.kind {
			case kindBool, kindInt:
				l.toml = l.text
			case kindStrings:
				l.toml = `["` + l.text + `"]`
			default:
				l.toml = `"` + l.text + `"`
			}
			out = append(out, l)
		}
	}
	return out
}

// get reads a leaf of a loaded configuration.
func (l leaf) get(c *Loaded) any {
	section, name, _ := strings.Cut(l.path, ".")
	v := reflect.ValueOf(c.Config)
	v = v.FieldByIndex(fieldOf(v.Type(), section))
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.FieldByIndex(fieldOf(v.Type(), name)).Interface()
}

func TestEveryKeyIsReadFromFileVariableAndFlagAndTheLaterWins(t *testing.T) {
	for _, l := range leaves() {
		section, name, _ := strings.Cut(l.path, ".")
		file := "[" + section + "]\n" + name + " = " + l.toml + "\n"
		if section != "mcp" {
			file += "[mcp]\n"
		}
		variable := "ACPOD_" + strings.ToUpper(section) + "__" + strings.ToUpper(name)
		fromFile, err := load(t, file)
		if err != nil {
			t.Errorf("%s in a file: %v", l.path, err)
			continue
		}
		original, err := load(t, "[mcp]\n")
		if err != nil {
			t.Fatal(err)
		}
		want := l.get(fromFile)
		if reflect.DeepEqual(want, l.get(original)) {
			t.Errorf("%s = %s changes nothing", l.path, l.toml)
		}
		for how, o := range map[string]Options{
			"env " + variable: {Environ: []string{variable + "=" + l.text}},
			"flag --set":      {Settings: []Setting{{"--set", l.path, l.text}}},
		} {
			got, err := LoadBytes("acpod.toml", []byte("[mcp]\n"), o)
			if err != nil {
				t.Errorf("%s from %s: %v", l.path, how, err)
				continue
			}
			if !reflect.DeepEqual(l.get(got), want) || got.Origin(l.path).String() != how {
				t.Errorf("%s from %s is %v from %s, want %v", l.path, how, l.get(got), got.Origin(l.path), want)
			}
			// The other way round: what is stronger gives the default back to what the file has changed.
			if shown := shownValue(l.key, reflect.ValueOf(l.get(original))); l.key.kind != kindStrings && l.key.kind != kindString {
				over := Options{Settings: []Setting{{"--set", l.path, fmt.Sprint(shown)}}, Environ: o.Environ}
				if back, err := LoadBytes("acpod.toml", []byte(file), over); err != nil || !reflect.DeepEqual(l.get(back), l.get(original)) {
					t.Errorf("%s: a flag does not win: %v", l.path, err)
				}
			}
		}
	}
}

func TestEveryKeyRefusesWhatIsOutOfItsRangeAndOfAnotherType(t *testing.T) {
	for _, section := range schema.fields {
		for _, k := range section.fields {
			path := section.name + "." + k.name
			refused := func(value string) {
				t.Helper()
				_, err := load(t, "["+section.name+"]\n"+k.name+" = "+value+"\n")
				var problem *Error
				if !errors.As(err, &problem) || problem.Key != path && problem.Key != path+"[0]" || problem.At.Line != 2 || problem.Allowed == "" || strings.ContainsAny(err.Error(), "\n\r") {
					t.Errorf("%s = %s: %v", path, value, err)
				}
			}
			refused("1979-05-27")
			refused("1.5")
			switch k.kind {
			case kindInt:
				refused(fmt.Sprint(k.min - 1))
				refused(fmt.Sprint(k.max + 1))
				refused(`"x"`)
			case kindDuration, kindSize:
				refused(`"` + k.show(k.min-1) + `"`)
				refused(`"` + k.show(k.max+1) + `"`)
				refused(`"9999999999999999999999h"`)
			case kindBool:
				refused(`"true"`)
			case kindString:
				refused("5")
				if len(k.enum) > 0 || k.check != "" && !strings.HasSuffix(k.check, "-or-empty") {
					refused(`""`)
				}
			case kindStrings, kindTables:
				refused(`"x"`)
				refused("[5]")
			case kindStringMap:
				refused(`"x"`)
				refused(`[]`)
			}
		}
	}
}

func TestAPatternThatIsNoneStopsTheStartWithItsLine(t *testing.T) {
	for _, pattern := range []string{"(", "a**", "(?=x)", ".*", "^"} {
		_, err := load(t, "[mcp]\nredact = [\n  'sk-[a-z0-9]+',\n  '"+pattern+"',\n]\n")
		if err == nil || !strings.HasPrefix(err.Error(), "acpod.toml:4: mcp.redact[1]: ") || !strings.Contains(err.Error(), "regular expression") {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
	if loaded, err := load(t, "[mcp]\nredact = ['(?i)\\bsk-[a-z0-9]{20,}\\b', 'ghp_\\w+']\n"); err != nil || len(loaded.MCP.Redact) != 2 {
		t.Errorf("%v", err)
	}
}

// What a list of grants says: absent is katashiro with its five tools, empty is nobody, a table without tools offers nothing.
func TestGrantsAreTakenAsWritten(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"absent":                {"[mcp]\n", fmt.Sprint(defaultMCP().ACPServers)},
		"nobody":                {"[mcp]\nacp_servers = []\n", "[]"},
		"a table without tools": {"[[mcp.acp_servers]]\nname = \"a\"\n", "[{a []}]"},
		"no tools":              {"[[mcp.acp_servers]]\nname = \"a\"\ntools = []\n", "[{a []}]"},
		"all tools":             {"[[mcp.acp_servers]]\nname = \"a\"\ntools = [\"*\"]\n", "[{a [*]}]"},
		"as published":          {"[[mcp.acp_servers]]\nname = \"a\"\ntools = [\"a.b\", \"c\"]\n[[mcp.acp_servers]]\nname = \"katashiro\"\n", "[{a [a.b c]} {katashiro []}]"},
	} {
		loaded, err := load(t, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(loaded.MCP.ACPServers); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAKeyIsRefusedByItsFullNameWhereverItStands(t *testing.T) {
	for text, want := range map[string]string{
		"lisen = 1\n":                       "acpod.toml:1: lisen",
		"[acps]\n":                          "acpod.toml:1: acps: unknown key; did you mean acp?",
		"[acp]\nLISTEN = \"127.0.0.1:1\"\n": "acpod.toml:2: acp.LISTEN",
		"[acp]\n[acp.tls]\ncert = \"x\"\n":  "acpod.toml:2: acp.tls",
		"[[acp.keys]]\nname = \"a\"\nkey = \"k\"\nrole = \"x\"": "acpod.toml:4: acp.keys[0].role",
		"[[mcp.acp_servers]]\nname = \"a\"\ntool = []\n":        "acpod.toml:3: mcp.acp_servers[0].tool: unknown key; did you mean tools?",
		"[mcp]\nallow = [\"a\"]\n":                              "acpod.toml:2: mcp.allow",
	} {
		if _, err := load(t, text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
