package delivery

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func servers(entry string) string {
	return "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // of a\n    \"openab-browser\": " + entry + ",\n    \"openab-browser-2\": " + entry + "\n  }\n}\n"
}

// Every place, below the workdir and below the folder of the session: what is provably ours goes, all else stays to the byte.
func TestLeftoversThatAreProvablyOursGoFromEveryPlace(t *testing.T) {
	const clean = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // of a\n    \"openab-browser-2\": "
	for _, dir := range []string{"", "a/", "a/b/"} {
		for _, place := range []string{cursorServers, kiroServers, ".kiro/agents/one.json"} {
			for _, entry := range []string{leftEntry, leftProxy, "{ \"args\": [\"browser-bridge\"],\n\"command\": \"openab\" }", strings.Replace(leftProxy, "127.0.0.1", "[::1]", 1)} {
				b := newBed(t)
				b.write("a/b/x", "")
				b.write(dir+place, servers(entry))
				ready(t, b.prepare(b.pod(ACP, "auto"), func(a *Ask) { a.Cwd = filepath.Join(b.dir, "a/b") }))
				want := clean + entry + "\n  }\n}\n"
				b.wants(dir+place, want)
				if info, err := os.Stat(filepath.Join(b.dir, dir+place)); err != nil || info.Mode().Perm() != 0o644 {
					t.Errorf("%v %v", info.Mode(), err)
				}
			}
		}
	}
}

func TestTheGrantGoesFromEveryAgentOfKiros(t *testing.T) {
	b := newBed(t)
	b.write(".kiro/settings/mcp.json", `{"mcpServers":{"openab-browser":`+leftEntry+`}}`)
	b.write(".kiro/agents/one.json", "{\"allowedTools\": [\n  \"read\",\n  \"@openab-browser\"\n], \"mcpServers\": {\"openab-browser\": "+leftProxy+"}}")
	b.write(".kiro/agents/two.json", `{"allowedTools":["@openab-browser", "@openab-browser/x", "@openab-browser"]}`)
	b.write(".kiro/agents/three.json", `{"allowedTools":["@other"]}`)
	b.write(".kiro/agents/._one.json", "\x00@openab-browser")
	ready(t, b.prepare(b.pod(ACP, "auto")))
	b.wants(".kiro/settings/mcp.json", `{"mcpServers":{}}`)
	b.wants(".kiro/agents/one.json", "{\"allowedTools\": [\n  \"read\"\n], \"mcpServers\": {}}")
	b.wants(".kiro/agents/two.json", `{"allowedTools":[ "@openab-browser/x"]}`)
	b.wants(".kiro/agents/three.json", `{"allowedTools":["@other"]}`)
	b.wants(".kiro/agents/._one.json", "\x00@openab-browser")
}

// What only looks like ours is kept to the byte; a session has no tools until it is gone, or an operator says that it may be.
func TestLookAlikesAreKeptAndTheSessionHasNoTools(t *testing.T) {
	for name, text := range map[string]string{
		"other arguments":                 servers(`{"command":"openab","args":["browser-bridge","--x"]}`),
		"no arguments":                    servers(`{"command":"openab","args":[]}`),
		"an extra key":                    servers(`{"command":"openab","args":["browser-bridge"],"env":{}}`),
		"another command":                 servers(`{"command":"/usr/bin/openab","args":["browser-bridge"]}`),
		"a remote url":                    servers(strings.Replace(leftProxy, "127.0.0.1", "10.0.0.1", 1)),
		"a name":                          servers(strings.Replace(leftProxy, "127.0.0.1", "127.0.0.1.example", 1)),
		"a user":                          servers(strings.Replace(leftProxy, "127.0.0.1", "127.0.0.1:1@far.example", 1)),
		"a user and a key":                servers(strings.Replace(leftProxy, "127.0.0.1", "u:p@127.0.0.1", 1)),
		"https":                           servers(strings.Replace(leftProxy, "http:", "https:", 1)),
		"no uuid":                         servers(strings.Replace(leftProxy, "2f1c7a52", "secret", 1)),
		"a variable":                      servers(`{"url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer ${X}"}}`),
		"a further header":                servers(strings.Replace(leftProxy, `{"Auth`, `{"X":"y","Auth`, 1)),
		"a further key":                   servers(strings.Replace(leftProxy, `{"url`, `{"type":"http","url`, 1)),
		"a key twice":                     servers(`{"command":"openab","args":["browser-bridge"],"command":"x"}`),
		"no object":                       servers(`null`),
		"an escaped name":                 `{"mcpServers":{"openab\u002dbrowser":{}}}`,
		"twice":                           `{"mcpServers":{"openab-browser":` + leftEntry + `,"openab-browser":` + leftEntry + `}}`,
		"one cannot read it":              `{"mcpServers":{"openab-browser":` + leftEntry,
		"nor its escapes":                 "\ufeff" + `{"mcpServers":{"openab\u002Dbrowser":{}}}`,
		"servers that a reader may merge": `{"mcpServers":{"openab-browser":` + leftEntry + `},"mcpServers":{}}`,
	} {
		for _, place := range []string{cursorServers, kiroServers, ".kiro/agents/one.json"} {
			t.Run(name+" in "+place, func(t *testing.T) {
				b := newBed(t)
				b.write(place, text)
				b.write(".kiro/agents/two.json", `{"allowedTools":["@openab-browser"]}`)
				grant := `{"allowedTools":["@openab-browser"]}`
				if place == cursorServers {
					grant = `{"allowedTools":[]}`
				}
				for _, mode := range []Mode{ACP, File, Bridge} {
					if p := b.prepare(b.pod(mode, "generic")); p.State != Bypass || !strings.Contains(p.Reason, place) || !strings.Contains(p.Reason, "allow_direct") {
						t.Errorf("%s: %+v", mode, p)
					}
				}
				b.wants(place, text)
				b.wants(".kiro/agents/two.json", grant)
				if list, err := Examine(Config{Mode: ACP, Workdir: b.dir, FacadeURL: facadeURL}); err != nil || !slices.ContainsFunc(list, func(l Leftover) bool { return l.Path == place && l.Why != "" }) {
					t.Errorf("the doctor found %v, %v", list, err)
				}
				ready(t, b.prepare(b.pod(ACP, "generic", func(c *Config) { c.AllowDirect = true })))
				b.wants(place, text)
				if err := os.Remove(filepath.Join(b.dir, place)); err != nil {
					t.Fatal(err)
				}
				ready(t, b.prepare(b.pod(ACP, "generic")))
			})
		}
	}
}

// The doctor finds what sessions below the workdir would find, and changes nothing.
// A look that nobody waits for any more raises no alarm, and lets nothing pass: the next session is told what is there.
func TestALookThatIsTakenBackRaisesNoAlarm(t *testing.T) {
	b := newBed(t)
	d := b.pod(ACP, "")
	f, leave, err := d.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if d.migrate(gone, f, []string{"."}) == nil {
		t.Error("what was not looked at is said to be harmless")
	}
	leave()
	if strings.Contains(b.log.String(), "level=ERROR") {
		t.Errorf("it is told: %s", b.log.String())
	}
	b.write(".cursor/mcp.json", `{"mcpServers":{"openab-browser":{"command":"somebody-elses"}}}`)
	if f, leave, err = d.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer leave()
	if d.migrate(t.Context(), f, []string{"."}) == nil || !strings.Contains(b.log.String(), "level=ERROR") {
		t.Errorf("what is there is not told: %s", b.log.String())
	}
}

func TestTheDoctorLooksBelowTheWorkdir(t *testing.T) {
	b := newBed(t)
	b.write("a/b/c/.cursor/mcp.json", servers(leftEntry))
	b.write("a/.kiro/settings/mcp.json", `{"mcpServers":{"openab-browser":{}}}`)
	b.write("node_modules/x/.cursor/mcp.json", servers(leftEntry))
	b.write("a/b/c/d/.cursor/mcp.json", servers(leftEntry))
	list, err := Examine(Config{Workdir: b.dir})
	if err != nil || len(list) != 2 || list[0].Path != "a/.kiro/settings/mcp.json" || list[0].Why == "" || list[1] != (Leftover{Path: "a/b/c/.cursor/mcp.json"}) {
		t.Errorf("%+v %v", list, err)
	}
	b.wants("a/b/c/.cursor/mcp.json", servers(leftEntry))
}

// An entry that goes around the policy cannot hide behind a link, or be protected from being removed.
func TestALeftoverThatCannotBeRemovedKeepsTheTools(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "mcp.json"), []byte(servers(leftEntry)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t)
	if err := os.Symlink(outside, filepath.Join(b.dir, ".cursor")); err != nil {
		t.Fatal(err)
	}
	if p := b.prepare(b.pod(ACP, "generic")); p.State != Bypass || !strings.Contains(p.Reason, "leads out") {
		t.Errorf("%+v", p)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "mcp.json")); err != nil || string(text) != servers(leftEntry) {
		t.Errorf("%s %v", text, err)
	}
	b = newBed(t)
	if err := os.Symlink(outside, filepath.Join(b.dir, ".kiro")); err != nil {
		t.Fatal(err)
	}
	ready(t, b.prepare(b.pod(ACP, "generic"))) // nothing of the kind is there
	if err := os.Mkdir(filepath.Join(outside, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "agents/one.json"), []byte(servers(leftEntry)), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := b.prepare(b.pod(ACP, "generic")); p.State != Bypass || !strings.Contains(p.Reason, ".kiro/agents/one.json") {
		t.Errorf("%+v", p)
	}
}

// What is behind a link is not parsed: escapes do not hide a name there, nor does a text that is too long to be read.
func TestALeftoverBehindALinkHidesInNothing(t *testing.T) {
	for name, text := range map[string]string{
		"escapes":  `{"mcpServers":{"open\u0061b\u002Dbrowser":{"command":"x"}}}`,
		"too long": servers(leftEntry) + strings.Repeat(" ", fileBytes),
	} {
		for _, link := range []string{".cursor", ".cursor/mcp.json", ".kiro/agents"} {
			t.Run(name+" behind "+link, func(t *testing.T) {
				b, outside := newBed(t), t.TempDir()
				if err := os.WriteFile(filepath.Join(outside, "mcp.json"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				to := outside
				if strings.HasSuffix(link, ".json") {
					to = filepath.Join(outside, "mcp.json")
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(b.dir, link)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, filepath.Join(b.dir, link)); err != nil {
					t.Fatal(err)
				}
				if p := b.prepare(b.pod(ACP, "generic")); p.State != Bypass {
					t.Errorf("%+v", p)
				}
			})
		}
	}
}
