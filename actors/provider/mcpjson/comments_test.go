package mcpjson

import (
	"bytes"
	"encoding/json/jsontext"
	"testing"
)

func TestCommentsAndTrailingCommasBecomeSpaces(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{`{"a": 1} // end`, `{"a": 1}       `},
		{"{/* x\r\n y */\"a\":1}", "{    \r\n     \"a\":1}"},
		{`{"a": [1, 2, ], }`, `{"a": [1, 2  ]  }`},
		{"{\"a\": 1, // one\n}", "{\"a\": 1        \n}"},
		{`{"a": "// no /* comment */ ,]"}`, `{"a": "// no /* comment */ ,]"}`},
		{`{"a": "\\", "b": "\",}"}`, `{"a": "\\", "b": "\",}"}`},
		{"\xef\xbb\xbf{}", "   {}"},
		{"{} // to\r[]", "{}      \r[]"},
	} {
		got, open := plainJSON([]byte(row.in))
		if open >= 0 || string(got) != row.want {
			t.Errorf("%q became %q (open at %d), want %q", row.in, got, open, row.want)
		}
	}
}

func TestWhatIsNoTrailingCommaStays(t *testing.T) {
	for _, text := range []string{`[,]`, `{,}`, `[1,,]`, `[,1]`, `,`, `{"a":,}`, `[[],,]`} {
		plain, _ := plainJSON([]byte(text))
		if jsontext.Value(bytes.TrimSpace(plain)).IsValid() {
			t.Errorf("%q became %q, which is JSON", text, plain)
		}
	}
}

func TestACommentThatNeverEndsIsToldWhereItBegins(t *testing.T) {
	for text, want := range map[string]int{`{} /* x`: 3, `/*/`: 0, `{"a": "/*"} /`: -1} {
		if _, open := plainJSON([]byte(text)); open != want {
			t.Errorf("%q: open at %d, want %d", text, open, want)
		}
	}
}

func FuzzPlainJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,],}`, "// x\n{}", `/* */ {"a":"\"//"}`, "\xef\xbb\xbf{}\r\n", `{"a":1,/**/}`, `/*`, `"\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		plain, open := plainJSON(text)
		if len(plain) != len(text) {
			t.Fatalf("%d bytes became %d", len(text), len(plain))
		}
		if open >= 0 {
			return
		}
		for i, c := range text {
			if c != plain[i] && plain[i] != ' ' {
				t.Fatalf("byte %d was %q and became %q", i, c, plain[i])
			}
			if (c == '\n' || c == '\r') && plain[i] != c {
				t.Fatalf("the line end at %d is gone", i)
			}
		}
		if jsontext.Value(text).IsValid() && !bytes.Equal(plain, text) {
			t.Fatalf("%q is JSON and was changed to %q", text, plain)
		}
		again, _ := plainJSON(plain)
		if !bytes.Equal(again, plain) && jsontext.Value(plain).IsValid() {
			t.Fatalf("%q changes once more, to %q", plain, again)
		}
	})
}
