//go:build !race

package delivery

import (
	"runtime"
	"strings"
	"testing"
)

// All that one look at the worst of files allocates, what is garbage by then included, is within what the pod's worst case has for it.
func TestTheWorstFileFitsTheFootprint(t *testing.T) {
	fill := func(head, item, tail string, n int) []byte {
		pad := max(fileBytes-len(head)-len(tail)-n*len(item), 0)
		return []byte(head + strings.Repeat(" ", pad) + strings.Repeat(item, n) + tail)
	}
	const entry = `"mcpServers":{"openab-browser":{"command":"openab","args":["browser-bridge"]}},`
	for name, row := range map[string]struct {
		toml bool
		text []byte
	}{
		"numbers":       {false, fill("{"+entry+`"a":[`, "1,", "1]}", values-20)},
		"names":         {false, fill("{"+entry, `"a":1,`, `"b":1}`, values-20)},
		"nested":        {false, []byte("{" + entry + `"a":` + strings.Repeat("[", 8000) + strings.Repeat("]", 8000) + "}")},
		"nested names":  {false, []byte("{" + entry + strings.Repeat(`"a":{`, 8000) + strings.Repeat("}", 8000) + "}")},
		"long texts":    {false, fill("{"+entry+`"a":[`, `"`+strings.Repeat("x", 50)+`",`, "1]}", values-20)},
		"TOML's keys":   {true, fill("", "[a.b]\n", "", 1)},
		"TOML's tables": {true, fill("", "[[a]]\n", "", values/2-20)},
		"TOML's nested": {true, []byte("a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000))},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if row.toml {
			d := New(Config{})
			_, _, err := d.compose(row.text, want{toml: true, table: "mcp_servers", name: EntryName, entry: profileNamed("codex").Files[0].http(facadeURL)}, &written{TOML: true, Table: "mcp_servers", Name: EntryName}, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if _, is := withoutDirect(row.text); is != ours {
			t.Errorf("%s: %q", name, is)
		}
		runtime.ReadMemStats(&after)
		n := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KiB", name, n>>10)
		if n > Footprint {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
	}
}
