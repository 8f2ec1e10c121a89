package search

import (
	"fmt"
	"slices"
	"testing"
)

func docs() ([]Entry, []string) {
	var entries []Entry
	var names []string
	add := func(server, name, description, schema string) {
		entries = append(entries, Entry{NewDoc(name, description, []byte(schema)), server})
		names = append(names, name)
	}
	add("katashiro", "katashiro.click", "Clicks an element of the page", `{"properties":{"selector":{}}}`)
	add("katashiro", "katashiro.navigate", "Opens a URL in the active tab", `{"properties":{"url":{}}}`)
	add("katashiro", "katashiro.read_dom", "Reads the DOM of the page, or of one element", `{"properties":{"selector":{}}}`)
	add("katashiro", "katashiro.screenshot", "Takes a picture of the visible page", `{}`)
	add("katashiro", "katashiro.type", "Types text into a field", `{"properties":{"selector":{},"text":{}}}`)
	add("shop", "buy", "Buys what is in the basket", `{"properties":{"voucher":{}}}`)
	add("shop", "searchProducts", "Finds products by words", `{"properties":{"query":{},"page":{}}}`)
	return entries, names
}

func TestTheBestAnswerComesFirst(t *testing.T) {
	entries, names := docs()
	for query, want := range map[string]string{
		"click":                        "katashiro.click",
		"clicking a button":            "katashiro.click",
		"take a screenshot":            "katashiro.screenshot",
		"picture of the page":          "katashiro.screenshot",
		"read dom":                     "katashiro.read_dom",
		"open url":                     "katashiro.navigate",
		"type text into field":         "katashiro.type",
		"product search":               "searchProducts",
		"shop buy":                     "buy",
		"voucher":                      "buy",
		"KATASHIRO.CLICK":              "katashiro.click",
		"screen":                       "katashiro.screenshot",
		"what is in the basket please": "buy",
		"capture an image of the site": "katashiro.screenshot",
		"look up goods, by shop":       "searchProducts",
		"screnshot":                    "katashiro.screenshot",
		"tap on something":             "katashiro.click",
		"enter my name":                "katashiro.type",
		"purchase":                     "buy",
	} {
		got := Rank(query, entries)
		if len(got) == 0 || names[got[0]] != want {
			var list []string
			for _, i := range got {
				list = append(list, names[i])
			}
			t.Errorf("%q: got %q, want %s first", query, list, want)
		}
	}
}

func TestWhatSaysNothingFindsNothing(t *testing.T) {
	entries, _ := docs()
	for _, query := range []string{"zzz", "the", "...", "qqq www"} {
		if got := Rank(query, entries); query != "..." && len(got) != 0 {
			t.Errorf("%q found %v", query, got)
		}
	}
	if got := Rank("click", nil); len(got) != 0 {
		t.Errorf("found %v in nothing", got)
	}
}

func TestTheSameQueryGivesTheSameOrder(t *testing.T) {
	var entries []Entry
	for i := range 200 {
		entries = append(entries, Entry{NewDoc(fmt.Sprintf("tool%d", i), "does the same thing as all others", nil), "s"})
	}
	first := Rank("same thing", entries)
	if !slices.IsSorted(first) || len(first) != 200 {
		t.Fatalf("ties are not in the order given: %v", first)
	}
	for range 5 {
		if !slices.Equal(first, Rank("same thing", entries)) {
			t.Fatal("another order")
		}
	}
}

func TestASchemaOfWhateverKindCountsForNothingWorse(t *testing.T) {
	for _, schema := range []string{``, `null`, `[]`, `{"properties":[]}`, `{"properties":{"a":1,"a":2}}`, `{`} {
		if got := Rank("name", []Entry{{NewDoc("name", "", []byte(schema)), ""}}); len(got) != 1 {
			t.Errorf("%q: the tool is not found", schema)
		}
	}
}

func TestAToolIsFoundByItsNameHoweverThatIsSpelt(t *testing.T) {
	var entries []Entry
	for _, name := range []string{"read_file_list", "list_read_files", "readMe", "read_file", "get-user", "user", "users"} {
		entries = append(entries, Entry{NewDoc(name, "Reads a file: read_file, read file, readFile, get user, users", nil), "disk"})
	}
	for query, want := range map[string]int{
		"read_file": 3, "READ_FILE": 3, "readFile": 3, "ReadFile": 3, "read file": 3, "read-file": 3, " Read.File ": 3,
		"disk.read_file": 3, "disk_read_file": 3, "disk/readFile": 3, "DiskReadFile": 3,
		"please use read_file for it": 3, "call disk.read_file now": 3, "try readFile.": 3,
		"read_file_list": 0, "user": 5, "users": 6, "get user": 4,
	} {
		if got := Rank(query, entries); len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %v, want %d first", query, got, want)
		}
	}
	for query, want := range map[string][]int{"ile_li": {0}, "d_fil": {3, 0}, "eadm": {2}, "_": {0, 1, 3}, "adFil": {0, 1, 3}, "ET US": {4}} {
		got := Rank(query, entries)
		for _, i := range want {
			if !slices.Contains(got, i) {
				t.Errorf("%q: got %v, and not %d, whose name contains it", query, got, i)
			}
		}
	}
}

func TestOtherLanguagesAndNumbersAreWords(t *testing.T) {
	var entries []Entry
	for _, text := range []string{"截取当前页面的屏幕截图", "打开一个网址", "スクリーンショットを撮る", "сделать снимок экрана", "größe des fensters ändern", "ถ่ายภาพหน้าจอ", "takes photo 360", "takes photo 24"} {
		entries = append(entries, Entry{NewDoc("tool", text, nil), "s"})
	}
	for query, want := range map[string]int{
		"屏幕截图": 0, "网址": 1, "スクリーン": 2, "СНИМОК": 3, "Fenster Größe": 4, "ภาพหน้าจอ": 5, "360": 6, "photo 24": 7,
	} {
		if got := Rank(query, entries); len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %v, want %d first", query, got, want)
		}
	}
}

// A word that stands in the name is worth more than one in the description, and that more than one of a parameter; a
// tool that has all words comes before one that has one of them often.
func TestWhereAWordStandsDecides(t *testing.T) {
	list := []Entry{
		{NewDoc("alpha", "does things", []byte(`{"properties":{"kayak":{}}}`)), "s"},
		{NewDoc("beta", "does things. At the end there is a kayak", nil), "s"},
		{NewDoc("gamma", "does things to a kayak", nil), "s"},
		{NewDoc("kayak", "does things", nil), "s"},
		{NewDoc("delta", "does things", nil), "kayak"},
	}
	got := Rank("kayak", list)
	at := func(i int) int { return slices.Index(got, i) }
	if len(got) != 5 || got[0] != 3 || at(2) > at(0) || at(2) > at(1) {
		t.Errorf("got %v, want all, the name first, and the first sentence before what comes later", got)
	}
	all := []Entry{
		{NewDoc("kayak_weekend", "", nil), "s"},
		{NewDoc("other", "Rents a kayak quietly for the weekend", nil), "s"},
		{NewDoc("first", "Rents a flat for some days of one year", nil), "s"},
		{NewDoc("second", "Quietly goes through the forest with nobody", nil), "s"},
	}
	if got := Rank("quietly rent weekend kayak", all); got[0] != 1 {
		t.Errorf("got %v, want the one with all words first", got)
	}
}

// Words speak for the decoy, the name for the other.
func TestANameCountsMoreThanAllWords(t *testing.T) {
	entries := []Entry{
		{NewDoc("fetch_page_page_fetch", "Fetch page, please: call to fetch a page. Call it for each page", nil), "s"},
		{NewDoc("fetch_page", "", nil), "s"},
	}
	for _, query := range []string{"fetch page", "please call fetch_page for each page", "please call s.fetchPage for each page"} {
		if got := Rank(query, entries); got[0] != 1 {
			t.Errorf("%q: got %v", query, got)
		}
	}
}
