package search

import (
	"slices"
	"testing"
)

func TestWordsAreSplitWherePeopleSplitThem(t *testing.T) {
	for in, want := range map[string][]string{
		"katashiro.read_dom":       {"katashiro", "read", "dom"},
		"getHTTPServerStatus":      {"get", "http", "server", "status"},
		"list-open-tabs2":          {"list", "open", "tab", "2"},
		"Clicked, clicking, click": {"click", "click", "click"},
		"typing a typed type":      {"typ", "typ", "typ"},
		"queries query queried":    {"query", "query", "query"},
		"größe żółć":               {"größ", "żółć"},
		"Привет МИР":               {"привет", "мир"},
		"हिन्दी भाषा":              {"हिन्दी", "भाषा"},
		"屏幕截图":                     {"屏幕", "幕截", "截图"},
		"打开url链接":                  {"打开", "url", "链接"},
		"図 z":                      {"図", "z"},
		"cafe\u0301":               {"cafe\u0301"},
		"  -- ":                    nil,
		"the of and":               nil,
		"\xff\xfez\xffb":           {"z", "b"},
	} {
		got := termsOf(in)
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFormsOfAWordMeet(t *testing.T) {
	for _, forms := range [][]string{
		{"click", "clicks", "clicked", "clicking"},
		{"delete", "deletes", "deleted", "deleting", "deletion", "deletions"},
		{"create", "creates", "creating", "creation"},
		{"navigate", "navigated", "navigation"},
		{"tap", "taps", "tapped", "tapping"},
		{"page", "pages"},
		{"box", "boxes"},
		{"branch", "branches"},
		{"address", "addresses"},
		{"status", "statuses"},
		{"repository", "repositories"},
		{"copy", "copies", "copied", "copying"},
		{"execute", "execution", "executing"},
		{"compress", "compression", "compressed"},
		{"write", "writes", "wrote", "written", "writing"},
		{"person", "people", "persons"},
	} {
		for _, form := range forms {
			if stem(form) != stem(forms[0]) {
				t.Errorf("%s is cut to %q and %s to %q", form, stem(form), forms[0], stem(forms[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"string", "str"}, {"feed", "fee"}, {"analysis", "analysi"}, {"station", "stat"}, {"press", "pres"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%s is cut to %s", pair[0], pair[1])
		}
	}
}

func TestACompoundIsFoundHoweverItIsWritten(t *testing.T) {
	for _, description := range []string{"Chooses from a dropdown", "Chooses from a drop-down"} {
		entries := []Entry{{NewDoc("other", "Throws things down to drop them", nil), ""}, {NewDoc("choose", description, nil), ""}}
		for _, query := range []string{"dropdown", "drop-down", "drop down"} {
			if got := Rank(query, entries); len(got) == 0 || got[0] != 1 {
				t.Errorf("%q in %q: got %v", query, description, got)
			}
		}
	}
}

func TestAWordThatIsOneLetterOff(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"screenshot", "screnshot"}:   true,
		{"screenshot", "screeenshot"}: true,
		{"branch", "brnach"}:          true,
		{"branch", "brunch"}:          true,
		{"branch", "branch"}:          false,
		{"branch", "crunch"}:          false,
		{"branch", "brands"}:          false,
		{"tab", "tabs"}:               false,
		{"page", "pages"}:             true,
		{"merge", "merges"}:           true,
	} {
		if oneOff(pair[0], pair[1]) != want || oneOff(pair[1], pair[0]) != want {
			t.Errorf("%v: not %v both ways", pair, want)
		}
	}
}
