package delivery

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// What each writer leaves of each kind of file, and what there is again when another delivery is chosen.
func TestAnAgentsConfigurationGetsTheEntryAndIsTheSameAfterwards(t *testing.T) {
	const mcp = `{"url":"http://127.0.0.1:8848/mcp","headers":{"Authorization":"Bearer ${OPENAB_SESSION_TOKEN}"}}`
	const cursor = `{"url":"http://127.0.0.1:8848/mcp","headers":{"Authorization":"Bearer ${env:OPENAB_SESSION_TOKEN}"}}`
	claude := `{"type":"http",` + mcp[1:]
	const gemini = `{"httpUrl":"http://127.0.0.1:8848/mcp","headers":{"Authorization":"Bearer ${OPENAB_SESSION_TOKEN}"}}`
	const opencode = `{"type":"remote","url":"http://127.0.0.1:8848/mcp","headers":{"Authorization":"Bearer {env:OPENAB_SESSION_TOKEN}"}}`
	const codex = "[mcp_servers.openab]\nurl = \"http://127.0.0.1:8848/mcp\"\nbearer_token_env_var = \"OPENAB_SESSION_TOKEN\"\n"
	for name, row := range map[string]struct{ profile, file, before, after string }{
		"generic, absent":               {"generic", ".openab/mcp-facade.json", "absent", `{"mcpServers":{"openab":` + mcp + "}}\n"},
		"cursor, absent":                {"cursor", ".cursor/mcp.json", "absent", `{"mcpServers":{"openab":` + cursor + "}}\n"},
		"kiro, absent":                  {"kiro", ".kiro/settings/mcp.json", "absent", `{"mcpServers":{"openab":` + mcp + "}}\n"},
		"claude, absent":                {"claude", ".mcp.json", "absent", `{"mcpServers":{"openab":` + claude + "}}\n"},
		"codex, absent":                 {"codex", ".codex/config.toml", "absent", codex},
		"gemini, absent":                {"gemini", ".gemini/settings.json", "absent", `{"mcpServers":{"openab":` + gemini + "}}\n"},
		"opencode, absent":              {"opencode", "opencode.json", "absent", `{"mcp":{"openab":` + opencode + "}}\n"},
		"claude, empty":                 {"claude", ".mcp.json", "", `{"mcpServers":{"openab":` + claude + "}}\n"},
		"codex, empty":                  {"codex", ".codex/config.toml", "", codex},
		"cursor, space":                 {"cursor", ".cursor/mcp.json", " \n", " \n" + `{"mcpServers":{"openab":` + cursor + "}}\n"},
		"cursor, no members":            {"cursor", ".cursor/mcp.json", "{}", `{"mcpServers": {"openab": ` + cursor + `}}`},
		"cursor, no servers":            {"cursor", ".cursor/mcp.json", "{\"mcpServers\": { } }\n", "{\"mcpServers\": {\"openab\": " + cursor + " } }\n"},
		"gemini, other settings":        {"gemini", ".gemini/settings.json", "{\n\t\"theme\": \"x\"\n}", "{\n\t\"mcpServers\": {\"openab\": " + gemini + "},\n\t\"theme\": \"x\"\n}"},
		"cursor, another server":        {"cursor", ".cursor/mcp.json", `{"mcpServers":{"a":{"command":"\u0061"}},"z":1.0e2}`, `{"mcpServers":{"openab": ` + cursor + `, "a":{"command":"\u0061"}},"z":1.0e2}`},
		"cursor, CR LF":                 {"cursor", ".cursor/mcp.json", "{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n", "{\r\n  \"mcpServers\": {\r\n    \"openab\": " + cursor + ",\r\n    \"a\": {}\r\n  }\r\n}\r\n"},
		"opencode, comments and commas": {"opencode", "opencode.jsonc", "// mine\n{\n  // servers\n  \"mcp\": {\n    // of a\n    \"a\": {\"type\": \"local\",}, // behind\n  }, /* end */\n}\n", "// mine\n{\n  // servers\n  \"mcp\": {\n    \"openab\": " + opencode + ",\n    // of a\n    \"a\": {\"type\": \"local\",}, // behind\n  }, /* end */\n}\n"},
		"codex, CR LF":                  {"codex", ".codex/config.toml", "# mine\r\n[a]\r\nb = 1\r\n", "# mine\r\n[a]\r\nb = 1\r\n\r\n" + strings.ReplaceAll(codex, "\n", "\r\n")},
		"codex, CR LF, no end":          {"codex", ".codex/config.toml", "a = 1\r\nb = 2", "a = 1\r\nb = 2\r\n\r\n" + strings.ReplaceAll(codex, "\n", "\r\n")},
		"codex, comments and tables":    {"codex", ".codex/config.toml", "# mine\nmodel = 'x' # y\n\n[mcp_servers.a]\ncommand = \"a\"\n# end", "# mine\nmodel = 'x' # y\n\n[mcp_servers.a]\ncommand = \"a\"\n# end\n\n" + codex},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			if row.before != "absent" {
				b.write(row.file, row.before)
			}
			d := b.pod(File, row.profile)
			for range 2 { // the second finds it there
				ready(t, b.prepare(d))
				b.wants(row.file, row.after)
			}
			info, err := os.Stat(filepath.Join(b.dir, row.file))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			ready(t, b.prepare(b.pod(ACP, row.profile)))
			b.wants(row.file, row.before)
			if row.before == "absent" {
				if left := b.files(); len(left) > 0 {
					t.Errorf("%v are left", left)
				}
			} else if info, err := os.Stat(filepath.Join(b.dir, row.file)); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			ready(t, b.prepare(b.pod(File, row.profile)))
			b.wants(row.file, row.after)
		})
	}
}

// What keeps a file from being written, and that it stays as it is.
func TestAFileThatIsNotToBeWrittenStaysAsItIs(t *testing.T) {
	for name, row := range map[string]struct{ profile, file, text, why string }{
		"no JSON":                 {"cursor", ".cursor/mcp.json", `{"mcpServers": `, "cannot be read"},
		"no object":               {"cursor", ".cursor/mcp.json", `[]`, "it is no object"},
		"no table of servers":     {"cursor", ".cursor/mcp.json", `{"mcpServers": []}`, "mcpServers is no object"},
		"servers twice":           {"cursor", ".cursor/mcp.json", `{"mcpServers": {}, "mcpServers": {}}`, "same name twice"},
		"an entry twice":          {"cursor", ".cursor/mcp.json", `{"mcpServers": {"openab": {}, "opena\u0062": {}}}`, "same name twice"},
		"too many values":         {"cursor", ".cursor/mcp.json", strings.Repeat("[", values+1), "values"},
		"too large":               {"gemini", ".gemini/settings.json", strings.Repeat(" ", fileBytes+1), "bytes"},
		"an operator's entry":     {"cursor", ".cursor/mcp.json", `{"mcpServers": {"openab": {"url": "http://127.0.0.1:1/mcp"}}}`, "is not this pod's; it is kept"},
		"no TOML":                 {"codex", ".codex/config.toml", "[a\n", "cannot be read"},
		"an inline table of them": {"codex", ".codex/config.toml", "mcp_servers = {}\n", "would not be the same"},
		"an operator's table":     {"codex", ".codex/config.toml", "[mcp_servers.openab]\nurl = \"x\"\n", "is not this pod's; it is kept"},
		"of the pod's own file":   {"generic", ".openab/mcp-facade.json", `{"mcpServers":{"openab":{"url":"http://far.example/mcp"}}}`, "is not this pod's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.write(row.file, row.text)
			p := b.prepare(b.pod(File, row.profile))
			if p.State != Failed || !strings.Contains(p.Reason, row.why) || !strings.HasPrefix(p.Reason, row.file) || strings.Contains(p.Reason, "\n") {
				t.Errorf("%+v", p)
			}
			b.wants(row.file, row.text)
			ready(t, b.prepare(b.pod(ACP, row.profile)))
			b.wants(row.file, row.text)
		})
	}
}

func TestAnOperatorsOwnEntryThatLeadsHereIsKeptAndUsed(t *testing.T) {
	b := newBed(t)
	const text = `{"mcpServers": {"openab": {"url": "` + facadeURL + `", "headers": {"Authorization": "Bearer ${env:OPENAB_SESSION_TOKEN}"}, "disabled": false}}}`
	b.write(".cursor/mcp.json", text)
	p := b.prepare(b.pod(File, "cursor"))
	if p.State != Ready || !strings.Contains(p.Reason, "the operator's own") {
		t.Errorf("%+v", p)
	}
	b.wants(".cursor/mcp.json", text)
	ready(t, b.prepare(b.pod(ACP, "cursor")))
	b.wants(".cursor/mcp.json", text)
}

// The very entry, written by hand, is nobody's to remove.
func TestTheSameEntryByHandIsNotOurs(t *testing.T) {
	b := newBed(t)
	const text = `{ "mcpServers": { "openab": { "headers": {"Authorization": "Bearer ${env:OPENAB_SESSION_TOKEN}"}, "url": "` + facadeURL + `" } } }`
	b.write(".cursor/mcp.json", text)
	ready(t, b.prepare(b.pod(File, "cursor")))
	ready(t, b.prepare(b.pod(ACP, "cursor")))
	b.wants(".cursor/mcp.json", text)
}

func TestAnEntryThatWasChangedSinceIsKept(t *testing.T) {
	b := newBed(t)
	b.write(".cursor/mcp.json", `{"mcpServers":{"a":{}}}`)
	ready(t, b.prepare(b.pod(File, "cursor")))
	changed := strings.Replace(b.read(".cursor/mcp.json"), `"headers"`, `"disabled":true,"headers"`, 1)
	b.write(".cursor/mcp.json", changed)
	ready(t, b.prepare(b.pod(ACP, "cursor")))
	b.wants(".cursor/mcp.json", changed)
}

// What others added meanwhile stays, and what was shaped anew is still known.
func TestAFileThatOthersChangedLosesTheEntryAlone(t *testing.T) {
	for name, row := range map[string]struct{ profile, file, before, meanwhile, after string }{
		"shaped anew": {"claude", ".mcp.json", `{}`, "{\n  \"mcpServers\": {\n    \"a\": {}, // a\n    \"openab\": {\n      \"headers\": {\"Authorization\": \"Bearer ${OPENAB_SESSION_TOKEN}\"},\n      \"type\": \"http\", \"url\": \"" + facadeURL + "\"\n    }\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"a\": {} // a\n    \n  }\n}\n"},
		"more behind": {"claude", ".mcp.json", "absent", `{"mcpServers":{"openab":{"type":"http","url":"` + facadeURL + `","headers":{"Authorization":"Bearer ${OPENAB_SESSION_TOKEN}"}}, "b": {}}}`, `{"mcpServers":{ "b": {}}}`},
		"the last":    {"claude", ".mcp.json", "absent", `{"mcpServers":{"b": {} , "openab":{"type":"http","url":"` + facadeURL + `","headers":{"Authorization":"Bearer ${OPENAB_SESSION_TOKEN}"}}}}`, `{"mcpServers":{"b": {} }}`},
		"a table":     {"codex", ".codex/config.toml", "absent", "[mcp_servers.openab]\nbearer_token_env_var = \"OPENAB_SESSION_TOKEN\"\nurl = '" + facadeURL + "' # here\n\n[b]\nc = 1\n", "\n[b]\nc = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if row.before != "absent" {
				b.write(row.file, row.before)
			}
			ready(t, b.prepare(b.pod(File, row.profile)))
			b.write(row.file, row.meanwhile)
			ready(t, b.prepare(b.pod(ACP, row.profile)))
			b.wants(row.file, row.after)
		})
	}
}

// The very bytes that were put in, where they stand for something else, are not ours.
func TestACopyOfTheEntryElsewhereStays(t *testing.T) {
	b := newBed(t)
	b.write(".mcp.json", `{"mcpServers":{"a":{}}}`)
	ready(t, b.prepare(b.pod(File, "claude")))
	text := b.read(".mcp.json")
	inserted := text[len(`{"mcpServers":{`) : len(text)-len(`"a":{}}}`)]
	shaped := strings.Replace(strings.TrimSpace(inserted), `"type":"http"`, `"type": "http"`, 1)
	b.write(".mcp.json", `{"kept":{`+inserted+`"a":{}},"mcpServers":{`+shaped+`"a":{}}}`)
	ready(t, b.prepare(b.pod(ACP, "claude")))
	b.wants(".mcp.json", `{"kept":{`+inserted+`"a":{}},"mcpServers":{"a":{}}}`)
}

func TestKirosAgentsGetTheEntryAndTheGrant(t *testing.T) {
	b := newBed(t)
	const one, two = "{\n  \"name\": \"one\",\n  \"allowedTools\": [\n    \"read\" // mine\n  ]\n}\n", `{"mcpServers":{"x":{}},"tools":["*"]}`
	b.write(".kiro/agents/one.json", one)
	b.write(".kiro/agents/two.json", two)
	b.write(".kiro/agents/._two.json", "\x00\x05")
	b.write(".kiro/agents/broken.json", "{")
	b.write(".kiro/agents/read.me", "{")
	p := b.prepare(b.pod(File, "kiro"))
	if p.State != Ready || !strings.Contains(p.Reason, ".kiro/agents/broken.json cannot be read") {
		t.Errorf("%+v", p)
	}
	const entry = `"openab": {"url":"http://127.0.0.1:8848/mcp","headers":{"Authorization":"Bearer ${OPENAB_SESSION_TOKEN}"}}`
	b.wants(".kiro/agents/one.json", "{\n  \"mcpServers\": {"+entry+"},\n  \"name\": \"one\",\n  \"allowedTools\": [\n    \"@openab\",\n    \"read\" // mine\n  ]\n}\n")
	b.wants(".kiro/agents/two.json", `{"allowedTools": ["@openab"], "mcpServers":{`+entry+`, "x":{}},"tools":["*"]}`)
	b.wants(".kiro/agents/._two.json", "\x00\x05")
	b.wants(".kiro/agents/broken.json", "{")
	ready(t, b.prepare(b.pod(ACP, "kiro")))
	b.wants(".kiro/agents/one.json", one)
	b.wants(".kiro/agents/two.json", two)
	b.wants(".kiro/settings/mcp.json", "absent")
}

// A session's folder is where its agent looks.
func TestTheEntryStandsInTheFolderOfTheSession(t *testing.T) {
	b := newBed(t)
	b.write("a/b/x", "")
	d := b.pod(File, "cursor")
	ready(t, b.prepare(d, func(a *Ask) { a.Cwd = filepath.Join(b.dir, "a/b") }))
	ready(t, b.prepare(d))
	for _, file := range []string{"a/b/.cursor/mcp.json", ".cursor/mcp.json"} {
		if !strings.Contains(b.read(file), `"openab"`) {
			t.Errorf("%s: %s", file, b.read(file))
		}
	}
	ready(t, b.prepare(b.pod(ACP, "cursor")))
	if left := b.files(); strings.Join(left, " ") != "a a/b a/b/x" {
		t.Errorf("%v are left", left)
	}
}

func TestALinkIsFollowedInsideTheWorkdirAndNotOut(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "mcp.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(b *bed, to, from string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.dir, from)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(b.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for name, make := range map[string]func(b *bed){
		"the file, absolute": func(b *bed) { link(b, filepath.Join(outside, "mcp.json"), ".cursor/mcp.json") },
		"the file, relative": func(b *bed) { link(b, "../../"+filepath.Base(outside)+"/mcp.json", ".cursor/mcp.json") },
		"the folder":         func(b *bed) { link(b, outside, ".cursor") },
		"a file to come":     func(b *bed) { link(b, filepath.Join(outside, "new.json"), ".cursor/mcp.json") },
		"in a circle":        func(b *bed) { link(b, "mcp.json", ".cursor/mcp.json") },
	} {
		b := newBed(t)
		make(b)
		if p := b.prepare(b.pod(File, "cursor")); p.State != Failed {
			t.Errorf("%s: %+v", name, p)
		}
		entries, err := os.ReadDir(outside)
		if text, _ := os.ReadFile(filepath.Join(outside, "mcp.json")); err != nil || string(text) != "{}" || len(entries) != 1 {
			t.Errorf("%s: outside there is %v, %s", name, entries, text)
		}
	}
	b := newBed(t)
	b.write("mine/mcp.json", "{}")
	link(b, "../mine/mcp.json", ".cursor/mcp.json")
	ready(t, b.prepare(b.pod(File, "cursor")))
	if info, err := os.Lstat(filepath.Join(b.dir, ".cursor/mcp.json")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if !strings.Contains(b.read("mine/mcp.json"), `"openab"`) {
		t.Error(b.read("mine/mcp.json"))
	}
}

// A link in a folder that is a link itself starts where that folder really is: the agent reads there, and nowhere else.
func TestALinkBehindALinkedFolderIsFollowedAsTheSystemDoes(t *testing.T) {
	b := newBed(t)
	b.write("config/shared/mcp.json", servers(leftEntry))
	b.write("config/cursor/other", "")
	for from, to := range map[string]string{".cursor": "config/cursor", "config/cursor/mcp.json": "../shared/mcp.json"} {
		if err := os.Symlink(to, filepath.Join(b.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	ready(t, b.prepare(b.pod(File, "cursor")))
	if text := b.read(".cursor/mcp.json"); !strings.Contains(text, `"openab"`) || strings.Contains(text, `"`+directName+`"`) {
		t.Errorf("the agent reads\n%s", text)
	}
	if text := b.read("shared/mcp.json"); text != "absent" {
		t.Errorf("beside it was written\n%s", text)
	}
}

// What somebody else wrote between a look and the writing is never written over.
func TestAFileThatChangedMeanwhileIsNotWrittenOver(t *testing.T) {
	for name, meanwhile := range map[string]func(b *bed){
		"written in place": func(b *bed) { b.write("mcp.json", "{ }") },
		"replaced": func(b *bed) {
			b.write("new", "{}")
			if err := os.Rename(filepath.Join(b.dir, "new"), filepath.Join(b.dir, "mcp.json")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		b := newBed(t)
		b.write("mcp.json", "{}")
		f, err := openFolder(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		was, err := f.load("mcp.json")
		if err != nil {
			t.Fatal(err)
		}
		absent, err := f.load("other.json")
		if err != nil {
			t.Fatal(err)
		}
		meanwhile(b)
		text := b.read("mcp.json")
		b.write("other.json", "theirs")
		for _, err := range []error{second(f.store(was, []byte("ours"), 0o600)), f.discard(was, nil), second(f.store(absent, []byte("ours"), 0o600))} {
			if !errors.Is(err, errBusy) {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.wants("mcp.json", text)
		b.wants("other.json", "theirs")
		if left := b.files(); len(left) != 2 {
			t.Errorf("%s: %v are left", name, left)
		}
	}
}

func second(_ []string, err error) error { return err }

// Two sessions, and two pods with one workdir and state folder, at once: one entry, and a record that knows it.
func TestManyAtOnceWriteOneEntry(t *testing.T) {
	b := newBed(t)
	b.write(".kiro/agents/one.json", `{"allowedTools":["read"]}`)
	pods := []*Deliverer{b.pod(File, "kiro"), b.pod(File, "kiro")}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if p := pods[i%2].Prepare(t.Context(), Ask{Cwd: b.dir}); p.State != Ready {
				t.Errorf("%+v", p)
			}
		})
	}
	all.Wait()
	for _, file := range []string{".kiro/settings/mcp.json", ".kiro/agents/one.json"} {
		if n := strings.Count(b.read(file), `"openab"`); n != 1 {
			t.Errorf("%d entries in %s", n, b.read(file))
		}
	}
	for _, file := range b.files() {
		if strings.Contains(file, "openab-tmp") {
			t.Errorf("%s is left", file)
		}
	}
	ready(t, b.prepare(b.pod(ACP, "kiro")))
	b.wants(".kiro/agents/one.json", `{"allowedTools":["read"]}`)
}
