package mcpjson

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// parsed reads one layer.
func parsed(text string) Set { return Parse([]Text{{Path: "mcp.json", Text: []byte(text)}}) }

// told is what the problems say, a line each.
func told(s Set) string {
	var b strings.Builder
	for _, p := range s.Problems {
		if p.Warning {
			b.WriteString("warning: ")
		}
		b.WriteString(p.Error() + "\n")
	}
	return b.String()
}

func names(list []Server) string {
	var out []string
	for _, s := range list {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

func TestAFileAsPeopleWriteItIsRead(t *testing.T) {
	text := strings.ReplaceAll("\xef\xbb\xbf"+`// my servers
{
	"mcpServers": {
		/* files */
		"files": {
			"command": "npx", "args": ["-y", "C:\\Program Files\\x", ""],
			"env": {"TOKEN": "${TOKEN}"}, "cwd": "~/work",
			"tool_filter": {"include": ["read_*"], "exclude": ["*delete*"],},
			"isolation": "session", "max_concurrency": 4, "rate_per_second": 0.5,
		},
		"notes": {
			"type": "streamable-http", "url": "https://notes.example/mcp", "headers": {"Authorization": "Bearer ${NOTES}"},
			"request_timeout_secs": 5, "log_level": "warning", "protocol_version": "2026-07-28", "ping_interval_secs": 30, "ping_timeout_secs": 1.5,
		},
		"off": {"command": "x", "disabled": true},
	},
	"roots": ["/srv", "/srv", "~/work"], "idle_ttl_secs": 0, "max_concurrent_servers": 3,
}
`, "\n", "\r\n")
	set := parsed(text)
	if got := told(set); got != "" {
		t.Fatal(got)
	}
	if names(set.Servers) != "files notes" || names(set.Disabled) != "off" {
		t.Fatalf("%s, disabled %s", names(set.Servers), names(set.Disabled))
	}
	files, notes := set.Servers[0], set.Servers[1]
	files.lines, notes.lines = nil, nil
	if want := (Server{Name: "files", Command: "npx", Args: []string{"-y", `C:\Program Files\x`, ""}, Env: map[string]string{"TOKEN": "${TOKEN}"}, Dir: "~/work",
		Include: []string{"read_*"}, Exclude: []string{"*delete*"}, RequestTimeout: time.Minute, PingTimeout: 5 * time.Second,
		PerSession: true, Concurrency: 4, Rate: 0.5, File: "mcp.json", Line: 5}); !reflect.DeepEqual(files, want) {
		t.Errorf("%+v\nwant %+v", files, want)
	}
	if want := (Server{Name: "notes", Kind: HTTP, URL: "https://notes.example/mcp", Headers: map[string]string{"Authorization": "Bearer ${NOTES}"},
		RequestTimeout: 5 * time.Second, Modern: true, LogLevel: "warning", PingInterval: 30 * time.Second, PingTimeout: 1500 * time.Millisecond,
		File: "mcp.json", Line: 11}); !reflect.DeepEqual(notes, want) {
		t.Errorf("%+v\nwant %+v", notes, want)
	}
	if !reflect.DeepEqual(set.Roots, []string{"/srv", "~/work"}) || set.IdleTTL != 0 || set.MaxConnected != 3 {
		t.Errorf("%q %v %d", set.Roots, set.IdleTTL, set.MaxConnected)
	}
}

func TestAFileThatSaysNothingHasTheDefaults(t *testing.T) {
	for _, text := range []string{`{}`, `{"mcpServers": {}}`, "{}\n// nothing", `{"$schema": "x", "_note": 1, "//": ""}`} {
		set := parsed(text)
		if len(set.Servers)+len(set.Problems)+len(set.Roots) != 0 || set.IdleTTL != 600*time.Second || set.MaxConnected != 10 {
			t.Errorf("%q: %+v", text, set)
		}
	}
}

func TestEachWordOfTheFieldForAKindIsTaken(t *testing.T) {
	for word, want := range map[string]Kind{
		"stdio": Stdio, "local": Stdio, "http": HTTP, "HTTP": HTTP, "streamable-http": HTTP, "streamableHttp": HTTP, "streamable_http": HTTP, "sse": SSE,
	} {
		field := `"url": "http://h/"`
		if want == Stdio {
			field = `"command": "x"`
		}
		for _, key := range []string{"type", "transport"} {
			set := parsed(fmt.Sprintf(`{"mcpServers": {"a": {%q: %q, %s}}}`, key, word, field))
			if len(set.Servers) != 1 || set.Servers[0].Kind != want {
				t.Errorf("%s %q: %v %s", key, word, set.Servers, told(set))
			}
		}
	}
	for text, want := range map[string]Kind{
		`"command": "x"`: Stdio, `"url": "http://h/"`: HTTP, `"serverUrl": "http://h/"`: HTTP, `"httpUrl": "http://h/"`: HTTP,
		`"type": null, "url": "http://h/"`: HTTP, `"type": "sse", "serverUrl": "http://h/"`: SSE,
	} {
		set := parsed(`{"servers": {"a": {` + text + `}}}`)
		if len(set.Servers) != 1 || set.Servers[0].Kind != want || want != Stdio && set.Servers[0].URL != "http://h/" {
			t.Errorf("%s: %+v %s", text, set.Servers, told(set))
		}
	}
}

func TestABadEntryNamesItsLineAndTheOthersLive(t *testing.T) {
	for entry, want := range map[string]string{
		`5`:                                                                                       `is left out: it is a number and has to be an object`,
		`{}`:                                                                                      `is left out: it has neither command nor url`,
		`{"command": "x", "url": "http://h"}`:                                                     `is left out: it has both command and url; keep one`,
		`{"command": ["x", "y"]}`:                                                                 `is left out: command is a list and has to be a string: the program alone; its arguments stand in args`,
		`{"command": " "}`:                                                                        `is left out: command is empty`,
		`{"command": "x", "command": "y"}`:                                                        `is left out: "command" stands twice in it`,
		`{"command": "x", "args": "a b"}`:                                                         `is left out: args is a string and has to be a list of strings`,
		`{"command": "x", "args": ["-p", 3000]}`:                                                  `is left out: args item 2 is a number and has to be a string: put it in quotes`,
		`{"command": "x", "env": {"P": 1}}`:                                                       `is left out: env "P" is a number and has to be a string: put it in quotes`,
		`{"command": "x", "env": {"A=B": ""}}`:                                                    `is left out: env has a name that no variable can have`,
		`{"command": "x", "env": {"A": "", "A": ""}}`:                                             `is left out: env "A" stands twice`,
		`{"command": "x\u0000"}`:                                                                  `is left out: command holds a NUL, which cannot be passed on`,
		`{"command": "x", "type": "http"}`:                                                        `is left out: its type is http, and it has no url`,
		`{"url": "http://h", "type": "stdio"}`:                                                    `is left out: its type is stdio, and it has no command`,
		`{"command": "x", "type": "pigeon"}`:                                                      `is left out: type is "pigeon" and has to be stdio, http or sse`,
		`{"url": "http://h", "type": "sse", "transport": "http"}`:                                 `is left out: transport says another kind than the one before it`,
		`{"url": "http://h", "httpUrl": "http://i"}`:                                              `is left out: httpUrl stands beside url; keep one`,
		`{"command": "x", "tool_filter": ["a"]}`:                                                  `is left out: tool_filter is a list and has to be an object with include and exclude`,
		`{"command": "x", "tool_filter": {"without": []}}`:                                        `is left out: tool_filter has "without", and there are only include and exclude`,
		`{"command": "x", "tool_filter": {"exclude": [""]}}`:                                      `is left out: tool_filter exclude has an empty pattern, which no name matches`,
		`{"command": "x", "tool_filter": {"include": [1]}}`:                                       `is left out: tool_filter include item 1 is a number and has to be a string: put it in quotes`,
		`{"command": "x", "toolFilter": {}}`:                                                      `is left out: "toolFilter" is not known here; write tool_filter with include and exclude`,
		`{"command": "x", "disabledTools": ["rm"]}`:                                               `is left out: "disabledTools" is not known here; write tool_filter with include and exclude`,
		`{"url": "https://x/", "protocol_version": "2025-11-25"}`:                                 `is left out: protocol_version is "2025-11-25" and has to be auto or 2026-07-28`,
		`{"command": "x", "isolation": "none"}`:                                                   `is left out: isolation is "none" and has to be session or shared`,
		`{"command": "x", "disabled": "yes"}`:                                                     `is left out: disabled is a string and has to be true or false`,
		`{"command": "x", "request_timeout_secs": 0}`:                                             `is left out: request_timeout_secs has to be a number of seconds from 0.01 to 86400`,
		`{"command": "x", "request_timeout_secs": "5"}`:                                           `is left out: request_timeout_secs is a string and has to be a number`,
		`{"command": "x", "ping_interval_secs": 1e99}`:                                            `is left out: ping_interval_secs has to be a number of seconds from 0 to 86400`,
		`{"command": "x", "max_concurrency": 1.5}`:                                                `is left out: max_concurrency has to be a whole number from 1 to 1024`,
		`{"command": "x", "rate_per_second": 0}`:                                                  `is left out: rate_per_second has to be more than 0 and at most 1e+06`,
		`{"command": "x", "log_level": "loud"}`:                                                   `is left out: log_level is "loud" and has to be one of debug, info, notice, warning, error, critical, alert, emergency`,
		`{"url": "http://h", "headers": {"Accept": "x"}}`:                                         `is left out: headers: "Accept" is the pod's own to set`,
		`{"url": "http://h", "headers": {"MCP-Session-Id": "x"}}`:                                 `is left out: headers: "MCP-Session-Id" is the pod's own to set`,
		`{"url": "http://h", "headers": {"Last-Event-ID": "x"}}`:                                  `is left out: headers: "Last-Event-ID" is the pod's own to set`,
		`{"url": "http://h", "headers": {"X-A": "1", "x-a": "2"}}`:                                `is left out: headers: "x-a" stands twice, in different case`,
		`{"url": "http://h", "headers": {"X A": "1"}}`:                                            `is left out: headers: "X A" is no name of a header`,
		`{"url": "http://h", "headers": {"X": 1}}`:                                                `is left out: headers "X" is a number and has to be a string: put it in quotes`,
		`{"url": "http://h", "headers": {"Authorization": "x"}, "oauth": {}}`:                     `is left out: headers: "Authorization" stands beside oauth; keep one`,
		`{"url": "http://h", "oauth": "yes"}`:                                                     `is left out: oauth is a string and has to be an object`,
		`{"command": "x", "args": [` + strings.TrimSuffix(strings.Repeat(`"",`, 129), ",") + `]}`: `is left out: args has 129 items; 128 are the most`,
		`{"command": "` + strings.Repeat("x", MaxString+1) + `"}`:                                 `is left out: command has more than 32768 bytes`,
	} {
		set := parsed("{\"mcpServers\": {\n\"good\": {\"command\": \"x\"},\n\"bad\":\n " + entry + ",\n\"last\": {\"url\": \"http://h\"}}}")
		line := 4
		if strings.HasPrefix(want, "is left out: it") || strings.HasPrefix(want, "is left out: its") {
			line = 3
		}
		if entry == "5" {
			line = 4
		}
		if got := told(set); got != fmt.Sprintf("mcp.json:%d: \"bad\": %s\n", line, want) {
			t.Errorf("%.80s:\n got %s want %d: %s", entry, got, line, want)
		}
		if names(set.Servers) != "good last" {
			t.Errorf("%.80s: %s", entry, names(set.Servers))
		}
	}
}

func TestWhatIsNotKnownIsAWarningAndTheEntryLives(t *testing.T) {
	for entry, want := range map[string]string{
		`"command": "x", "autoApprove": []`:              `"autoApprove" is not known here and has no effect`,
		`"command": "x", "timeout": 30`:                  `"timeout" is not known here and has no effect; here it is request_timeout_secs`,
		`"command": "x", "Cwd": "/"`:                     `"Cwd" is not known here and has no effect; cwd is meant?`,
		`"command": "x", "headers": {}`:                  `headers has no effect on a server of type stdio`,
		`"url": "http://h", "args": []`:                  `args has no effect on a server of type http`,
		`"command": "x", "a\nb": 1`:                      `"a\nb" is not known here and has no effect`,
		`"command": "x", "description": 1, "_x": 2`:      ``,
		`"command": "x", "args": null, "cwd": null`:      ``,
		`"url": "http://h", "oauth": false, "env": null`: ``,
	} {
		set := parsed("{\"mcpServers\": {\"a\": {\n" + entry + "}}}")
		if want != "" {
			want = "warning: mcp.json:2: \"a\": " + want + "\n"
		}
		if got := told(set); got != want {
			t.Errorf("%s:\n got %s want %s", entry, got, want)
		}
		if names(set.Servers) != "a" {
			t.Errorf("%s: it is gone", entry)
		}
	}
}

func TestNamesOfServersAreNarrow(t *testing.T) {
	for _, name := range []string{"", "a b", "a.b", "a/b", "ä", strings.Repeat("x", 65), "a\\n"} {
		set := parsed(`{"mcpServers": {"` + name + `": {"command": "x"}}}`)
		if len(set.Servers) != 0 || !strings.Contains(told(set), "a name is 1 to 64 letters, digits, - or _") || !strings.HasPrefix(told(set), "mcp.json:1: ") {
			t.Errorf("%q: %s", name, told(set))
		}
	}
	if set := parsed(`{"mcpServers": {"` + strings.Repeat("x", 61) + `_-9": {"command": "x"}, "X": {"command": "x"}, "x": {"command": "x"}}}`); len(set.Servers) != 3 {
		t.Error(told(set))
	}
}

func TestOfTwoEntriesOfOneNameInAFileNeitherIsUsed(t *testing.T) {
	set := parsed("{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"b\": {\"command\": \"x\"},\n\"\\u0061\": {\"command\": \"y\"}}}")
	if names(set.Servers) != "b" || told(set) != "mcp.json:3: \"a\": is left out: it stands in line 1 as well; keep one\n" {
		t.Errorf("%s: %s", names(set.Servers), told(set))
	}
}

func TestTheLaterLayerWinsByName(t *testing.T) {
	set := Parse([]Text{
		{Path: "home", Text: []byte(`{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "x"}, "c": {"command": "x"}}, "roots": ["/a"], "idle_ttl_secs": 5, "max_concurrent_servers": 7}`)},
		{Path: "gone", Err: errors.New("permission denied")},
		{Path: "bad", Text: []byte("{\n  \"mcpServers\": {,}\n}")},
		{Path: "project", Text: []byte(`{"mcpServers": {"a": {"url": "http://h"}, "b": {"command": 1}, "c": {"command": "x", "enabled": false}}, "roots": ["/b", "/a"], "idle_ttl_secs": 6}`)},
	})
	if names(set.Servers) != "a" || set.Servers[0].URL != "http://h" || set.Servers[0].Args != nil || set.Servers[0].File != "project" {
		t.Errorf("%+v", set.Servers)
	}
	if names(set.Disabled) != "c" || !reflect.DeepEqual(set.Roots, []string{"/a", "/b"}) || set.IdleTTL != 6*time.Second || set.MaxConnected != 7 {
		t.Errorf("%s %q %v %d", names(set.Disabled), set.Roots, set.IdleTTL, set.MaxConnected)
	}
	want := "gone: cannot be read: permission denied; the file is skipped\n" +
		"bad:2:18: this is not JSON: look for a missing comma, colon or quote, or a backslash that should be doubled; the file is skipped\n" +
		"project:1: \"b\": is left out: command is a number and has to be a string\n"
	if told(set) != want {
		t.Errorf("%s", told(set))
	}
}

func TestAMalformedFileIsToldByLineAndColumn(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "1:1: the file is empty",
		"\xef\xbb\xbf // x\n":       "1:1: the file is empty",
		"[]":                        "1:1: a list stands where an object with mcpServers has to",
		"{\r\n\"a\" 1}":             "2:5: this is not JSON",
		"{\r\n\"a\": 1,\r\n\r\n 'b": "4:2: this is not JSON",
		"{\"a\":\n 1":               "2:3: the file ends too early",
		"{} {}":                     "1:4: something stands behind the end",
		"{}\n/* x":                  "2:1: a comment begins here that never ends",
		"{\"a\": \"C:\\Users\"}":    "1:10: this is not JSON",
		"{\"a\": \"\xff\"}":         "1:8: this is not JSON",
		"\r\r{\"a\": \"\\ud800\"}":  "3:8: this is not JSON",
		strings.Repeat(`{"a":`, 70): "1:326: this is nested too deeply",
	} {
		set := parsed(text)
		if got := told(set); !strings.HasPrefix(got, "mcp.json:"+want) || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "; the file is skipped\n") {
			t.Errorf("%.40q: %s, want %s", text, got, want)
		}
	}
}

func TestTopLevelMistakesCostOnlyThemselves(t *testing.T) {
	set := parsed("{\"mcpServers\": {\"a\": {\"command\": \"x\"}},\n\"roots\": \"/a\",\n\"idle_ttl_secs\": -1,\n\"max_concurrent_servers\": 0,\n\"inputs\": [],\n\"idleTtlSecs\": 4}")
	want := `mcp.json:2: roots is a string and has to be a list of strings; it is left out
mcp.json:3: idle_ttl_secs has to be a number of seconds from 0 to 2.592e+06; what it was before counts
mcp.json:4: max_concurrent_servers has to be a whole number from 1 to 1024; what it was before counts
warning: mcp.json:5: "inputs" is not known here and has no effect
warning: mcp.json:6: "idleTtlSecs" is not known here and has no effect; idle_ttl_secs is meant?
`
	if told(set) != want || names(set.Servers) != "a" || set.IdleTTL != DefaultIdleTTL {
		t.Errorf("%s", told(set))
	}
}

func TestFilesAndTheirPartsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range MaxServers + 3 {
		fmt.Fprintf(&b, "\"s%03d\": {\"command\": \"x\"},\n", i)
	}
	set := parsed("{\"mcpServers\": {\n" + b.String() + "}}")
	if len(set.Servers) != MaxServers || len(set.Problems) != 3 || !strings.Contains(told(set), "256 servers are the most") {
		t.Errorf("%d servers: %s", len(set.Servers), told(set))
	}
	set = parsed("{\"mcpServers\": {" + strings.ReplaceAll(b.String(), `"x"`, "1") + "}}")
	if len(set.Problems) != MaxProblems+1 || !strings.HasSuffix(told(set), "and 59 more\n") {
		t.Errorf("%d problems", len(set.Problems))
	}
	set = parsed("{}" + strings.Repeat(" ", MaxFileBytes))
	if !strings.Contains(told(set), "has more than 1048576 bytes") {
		t.Error(told(set))
	}
}

func TestLayersAreReadFromTheirFiles(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	layers := Layers(home, dir, nil)
	if set := Read(layers); len(layers) != 2 || len(set.Problems) != 0 || len(set.Servers) != 0 {
		t.Errorf("%v %s", layers, told(set))
	}
	if len(Layers("", dir, nil)) != 1 || len(Layers(dir, dir, nil)) != 1 {
		t.Error("a home that is none, or the same, is a layer")
	}
	for _, at := range []string{home, dir} {
		if err := os.MkdirAll(filepath.Join(at, ".openab", "agent"), 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"mcpServers": {"both": {"command": %q}, %q: {"command": "x"}}}`, at, filepath.Base(at)+filepath.Base(filepath.Dir(at)))
		if err := os.WriteFile(filepath.Join(at, ".openab", "agent", "mcp.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := Read(layers)
	if len(set.Servers) < 2 || len(set.Problems) != 0 {
		t.Fatal(told(set))
	}
	for _, s := range set.Servers {
		if s.Name == "both" && s.Command != dir {
			t.Errorf("the home's entry wins: %s", s.Command)
		}
	}
	named := Layers(home, dir, []string{filepath.Join(dir, "none.json"), dir, os.DevNull})
	set = Read(named)
	if want := filepath.Join(dir, "none.json") + ": cannot be read: " + fs.ErrNotExist.Error(); !strings.Contains(told(set), "no such file or directory; the file is skipped") && !strings.Contains(told(set), want) {
		t.Error(told(set))
	}
	if !strings.Contains(told(set), dir+": cannot be read: it is not a file") || len(set.Problems) != 3 {
		t.Errorf("%s", told(set))
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers": {"a": {"command": "x", "args": ["${A}"]}, "b": {"url": "http://h/", "headers": {"X": "1"}}}}`,
		"// c\r\n{\"mcpServers\": {\"a\": {\"command\": 1},}, \"roots\": [\"/\"],}", "\xef\xbb\xbf{}", `{"mcpServers": {"a": {}, "a": {}}}`, `{"servers": 5}`, "{\r", "[[[",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		set := Parse([]Text{{Path: "f", Text: text}})
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + 1
		for _, p := range set.Problems {
			if p.Line < 0 || p.Line > lines || p.Text == "" || strings.ContainsAny(p.Error(), "\r\n") {
				t.Fatalf("%q: %q", text, p.Error())
			}
		}
		for _, s := range set.Servers {
			if !isName(s.Name) || (s.Command == "") == (s.URL == "") || s.Line < 1 || s.Line > lines {
				t.Fatalf("%q: %+v", text, s)
			}
			resolved, err := s.Resolve(environment("A", "a-very-secret-value"))
			if err != nil && (strings.Contains(err.Error(), "a-very-secret-value") || strings.ContainsAny(err.Error(), "\r\n")) {
				t.Fatalf("%q: %v", text, err)
			}
			for name, value := range resolved.Headers {
				if strings.ContainsAny(value, "\r\n\x00") || !isToken(name) {
					t.Fatalf("%q: the header %q cannot be sent", text, name)
				}
			}
		}
	})
}
