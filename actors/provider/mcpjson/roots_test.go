package mcpjson

import (
	"reflect"
	"testing"
)

func TestRootsAreFolders(t *testing.T) {
	set := parsed("{\"roots\": [\"/srv/../etc\", \"~/work\", \"~\", \"sub\", \".\", \"${R}\", \"file:///a%20b\", \"file://localhost/c\",\n\"${NONE}\", \"file://other/x\", \"${EMPTY}\", \"${R\"]}")
	got, problems := set.Folders(environment("HOME", "/home/u", "R", "/r", "EMPTY", ""), "/here")
	if want := []string{"/etc", "/home/u/work", "/home/u", "/here/sub", "/here", "/r", "/a b", "/c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(problems) != 4 {
		t.Errorf("%v", problems)
	}
	for _, p := range problems {
		if p.File != "mcp.json" || p.Line != 1 || p.Text == "" {
			t.Errorf("%v", p)
		}
	}
	if _, problems = set.Folders(environment("R", "/r", "EMPTY", "/e", "NONE", "/n"), "/"); len(problems) != 4 {
		t.Errorf("without HOME: %v", problems)
	}
}
