package jsonrpc

import (
	"strings"
	"testing"
)

func TestStringsDecodeWhatTheyCan(t *testing.T) {
	for raw, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\u0061\n\/"`: "a\n/", `"\ud83d\ude00"`: "😀", `"\ud800"`: "\uFFFD", `"\udc00\ud800x"`: "\uFFFD\uFFFDx", "\"\xff\"": "\uFFFD",
	} {
		if got, ok := String([]byte(raw)); !ok || got != want {
			t.Errorf("%s is %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{"", "1", "null", "{}", `"`} {
		if got, ok := String([]byte(raw)); ok {
			t.Errorf("%s is the string %q", raw, got)
		}
	}
}

func TestIntegersAreLiterals(t *testing.T) {
	for _, raw := range []string{"", "1.0", "1e3", `"1"`, "true", "9223372036854775808", "-", "1 "} {
		if n, ok := Int([]byte(raw)); ok {
			t.Errorf("%q is the integer %d", raw, n)
		}
	}
	if n, ok := Int([]byte("-12")); !ok || n != -12 {
		t.Errorf("-12 is %d, %v", n, ok)
	}
}

func TestAStringOfOursIsValidWhateverIsInIt(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\x00", "<&>\u2028", "\xff\xfe", "😀"} {
		literal := AppendString(nil, s)
		back, ok := String(literal)
		if !ok || !Valid(literal) || back != strings.ToValidUTF8(s, "\uFFFD") && s != "\xff\xfe" {
			t.Errorf("%q became %s", s, literal)
		}
	}
}

func TestOnlyBadBytesAreReplaced(t *testing.T) {
	good := []byte("grün 😀 \uFFFD")
	if out, n := ValidUTF8(good); n != 0 || &out[0] != &good[0] {
		t.Error("valid text was copied")
	}
	if out, n := ValidUTF8([]byte("a\xffé\xc3b\xe2\x82")); n != 4 || string(out) != "a\uFFFDé\uFFFDb\uFFFD\uFFFD" {
		t.Errorf("%q, %d", out, n)
	}
}

func TestShownTextIsShortAndOnOneLine(t *testing.T) {
	if got := Show("a\n\x1b<\u202e>"); got != `"a\n\x1b<\u202e>"` {
		t.Errorf("shown as %s", got)
	}
	if got := Show(strings.Repeat("ä", 65)); got != `"`+strings.Repeat(`\u00e4`, 64)+`"...` {
		t.Errorf("shown as %s", got)
	}
	if got := Show(strings.Repeat("a", 64)); got != `"`+strings.Repeat("a", 64)+`"` {
		t.Errorf("shown as %s", got)
	}
}

func TestKindsOfValues(t *testing.T) {
	for raw, want := range map[string]string{"{}": "object", "[1]": "array", "true": "true", "false": "false", "null": "null", "1": "", `"{"`: "", "": ""} {
		got := ""
		switch on, isBool := Bool([]byte(raw)); {
		case isBool && on:
			got = "true"
		case isBool:
			got = "false"
		case IsObject([]byte(raw)):
			got = "object"
		case IsArray([]byte(raw)):
			got = "array"
		case IsNull([]byte(raw)):
			got = "null"
		}
		if got != want {
			t.Errorf("%q is taken for %q", raw, got)
		}
	}
}
