package delivery

import (
	"bytes"
	"testing"
)

// Whatever a file holds: what is put in and cut out again leaves it to the byte, what is judged by the syntax alone leaves all else as it was,
// and nothing panics.
func FuzzAFileIsTheSameAfterwards(f *testing.F) {
	for _, text := range []string{
		"{}", " { } ", `{"mcpServers":{}}`, `{"mcpServers":{"a":{}},}`, "// x\n{\"mcpServers\": {\n\t\"a\": [1,2,], /* y */ // z\n}, \"allowedTools\": [ \"b\", // b\n ]}",
		`{"mcpServers":{"openab":{"url":"x"}}}`, `{"mcpServers":{"openab-browser":{"command":"openab","args":["browser-bridge"]}},"allowedTools":["@openab-browser"]}`,
		`{"a":1/**/,"mcpServers":{"x":2/*,*/}}`, `{"allowedTools":["@openab","@openab"]}`, "{\r\n\"mcpServers\":{\r\n\"a\":1}}", `{"\u006dcpServers":{}}`, `[1]`, "",
	} {
		f.Add([]byte(text), false)
	}
	for _, text := range []string{"", "a = 1", "[a]\nb=1\n", "[mcp_servers.a]\nx=1 # y", "mcp_servers = {}", "[mcp_servers.openab]\nurl=\"x\"\n[[b]]\n", "[mcp_servers]\nopenab.url = 1\n", "# c\r\n[mcp_servers.openab]\r\nurl = '''\nx'''\r\n"} {
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, toml bool) {
		if len(text) > 64<<10 {
			return
		}
		_, is := withoutDirect(text)
		if is == ours && toml {
			return
		}
		table, entry := "mcpServers", []pair{{"url", `"http://127.0.0.1:1/mcp"`}}
		if toml {
			table = "mcp_servers"
		}
		doc, err := read(toml, text)
		if err != nil {
			return
		}
		if !toml {
			if had, err := doc.granted("allowedTools", "@openab"); err == nil && !had {
				c, err := doc.grant("allowedTools", "@openab")
				if err != nil {
					t.Fatal(err)
				}
				with, err := changed(false, text, doc, c, "allowedTools", "@openab")
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				there(t, with, written{Table: "allowedTools", Name: "@openab", Grant: true, Inserted: c.with}, text)
			}
		}
		_, had, err := doc.entry(table, EntryName)
		if err != nil {
			return
		}
		if had {
			c, err := doc.remove(table, EntryName)
			if err == nil {
				_, _ = changed(toml, text, doc, c, table, EntryName)
			}
			return
		}
		c, err := doc.insert(table, EntryName, entry)
		if err != nil {
			t.Fatal(err)
		}
		with, err := changed(toml, text, doc, c, table, EntryName)
		if err != nil {
			if toml {
				return // a table that cannot be extended
			}
			t.Fatalf("%q: %v", text, err)
		}
		there(t, with, written{TOML: toml, Table: table, Name: EntryName, Inserted: c.with}, text)
	})
}

// there wants what was put in to be found, and to be cut out to the byte.
func there(t *testing.T, with []byte, w written, before []byte) {
	t.Helper()
	doc, err := read(w.TOML, with)
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := present(doc, w); err != nil || !found {
		t.Fatalf("%q: it is not there: %v", with, err)
	}
	out, err := cutOut(with, doc, w)
	if err != nil || !bytes.Equal(out, before) && len(bytes.TrimSpace(before)) > 0 {
		t.Fatalf("%q became %q and then %q: %v", before, with, out, err)
	}
	w.Inserted = "" // as if it had been shaped anew
	if out, err := cutOut(with, doc, w); err != nil {
		t.Fatalf("%q: %v", with, err)
	} else if doc, err := read(w.TOML, out); err != nil {
		t.Fatalf("%q: %v", out, err)
	} else if _, found, err := present(doc, w); err != nil || found {
		t.Fatalf("%q: it is still there: %v", out, err)
	}
}
