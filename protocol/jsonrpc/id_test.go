package jsonrpc

import (
	"math"
	"strings"
	"testing"
)

func TestIDsAreKeptAsTheyCame(t *testing.T) {
	for _, raw := range []string{"null", "0", "-0", "-7", "9007199254740993", "99999999999999999999999", `""`, `"a"`, `"\u0061"`, `"\ud800"`, `"1"`} {
		id, ok := ParseID([]byte(raw))
		if !ok {
			t.Errorf("%s is no id", raw)
		}
		if string(id.Raw()) != raw || string(id.Append(nil)) != raw {
			t.Errorf("%s became %s", raw, id.Raw())
		}
	}
	for _, raw := range []string{"", "1.0", "1e3", "true", "{}", "[]", `"a`, `"a" `, `"a"b"`, "01", "nul", `"` + strings.Repeat("x", MaxIDBytes) + `"`} {
		if id, ok := ParseID([]byte(raw)); ok {
			t.Errorf("%q is an id: %s", raw, id)
		}
	}
}

func TestKeysAreEqualForEqualIDsOnly(t *testing.T) {
	key := func(raw string) string {
		id, ok := ParseID([]byte(raw))
		if !ok {
			t.Fatalf("%s is no id", raw)
		}
		return id.Key()
	}
	if key(`"ab"`) != key(`"a\u0062"`) || key("0") != key("-0") {
		t.Error("two spellings of one id have different keys")
	}
	keys := map[string]string{}
	for _, raw := range []string{"null", `"null"`, "1", `"1"`, `""`, "0", `"-0"`, `"\"1"`} {
		if other, taken := keys[key(raw)]; taken {
			t.Errorf("%s and %s have one key", raw, other)
		}
		keys[key(raw)] = raw
	}
}

func TestTheIntegerOfAnID(t *testing.T) {
	for raw, want := range map[string]int64{"7": 7, `"7"`: 7, "-3": -3, `"\u0037"`: 7, "9223372036854775807": math.MaxInt64} {
		id, _ := ParseID([]byte(raw))
		if n, ok := id.Int(); !ok || n != want {
			t.Errorf("%s is %d, %v", raw, n, ok)
		}
	}
	for _, raw := range []string{"null", `"a"`, `""`, `" 7"`, `"7.0"`, `"+7"`, `"07"`, "9223372036854775808"} {
		id, _ := ParseID([]byte(raw))
		if n, ok := id.Int(); ok {
			t.Errorf("%s is the integer %d", raw, n)
		}
	}
}

func TestConstructedIDs(t *testing.T) {
	for want, id := range map[string]ID{`"a\"b"`: StringID(`a"b`), "-5": IntID(-5), "null": NullID()} {
		if string(id.Raw()) != want {
			t.Errorf("%s, want %s", id.Raw(), want)
		}
	}
	var none ID
	if !none.IsZero() || none.IsNull() || none.Raw() != nil || string(none.Append(nil)) != "null" {
		t.Error("the zero id is not absent")
	}
	if NullID().IsZero() || !NullID().IsNull() {
		t.Error("null is an id")
	}
}

func TestAnIDIsShownOnOneShortLine(t *testing.T) {
	id, _ := ParseID([]byte(`"` + strings.Repeat("\u2028\u202e", 100) + `"`))
	if s := id.String(); strings.ContainsAny(s, "\n\u2028\u202e") || len(s) > 6*ShownRunes+8 {
		t.Errorf("shown as %s", s)
	}
}
