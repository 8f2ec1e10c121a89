package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
)

// syntaxSeeds are texts on both sides of every rule of JSON's grammar.
var syntaxSeeds = []string{
	``, ` `, `{}`, `[]`, ` { } `, `[ ]`, `{"a":1}`, `{"a" : [1 , 2]}`, `[[],{},[{}]]`, `{"a":{"b":[null,true,false]}}`,
	`nul`, `null`, `nullx`, `true`, `tru`, `false`, `falsey`, `truefalse`, `nan`,
	`0`, `-0`, `-`, `01`, `1.`, `.1`, `1.0`, `1e`, `1e+`, `1e+9`, `1E-09`, `1.5e300`, `+1`, `0x1`, `--1`, `1 2`, `-a`,
	`""`, `"a`, `"`, `"\`, `"\"`, `"\""`, `"\\"`, `"\u12"`, `"\u12x4"`, `"\uD800"`, `"\ud83d\ude00"`, `"\a"`, `"\/"`, `"\b\f\n\r\t"`,
	"\"\t\"", "\"\x00\"", "\"\x1f\"", "\"\x20\x7f\"", "\"\xff\"", "\"\xc3\xa9\"", "\"1234567\t\"", "\"12345678\x1f\"", "\"123456789012345\\u12\"", "\"\x80\x81\x00\"", "\"!!!!!!!!\"",
	`{`, `[`, `}`, `]`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `[1 1]`, `{"a":1 "b":2}`, `{1:2}`, `{"a":1}}`, `[[]`, `{"a":[}`,
	"\v1", "\f", "\u00a01", "\r\n\t 1 \r\n\t", "\xef\xbb\xbf1", `/**/1`, `[1,//
]`, `'a'`, `{a:1}`, `{"a":[{"b":[{"c":[{}]}]}]}`,
}

func TestSyntaxAgreesWithTheStandardLibrary(t *testing.T) {
	for _, s := range syntaxSeeds {
		if got, want := Valid([]byte(s)), json.Valid([]byte(s)); got != want {
			t.Errorf("%q: valid %v, encoding/json says %v", s, got, want)
		}
	}
}

func TestEveryByteOfAStringIsJudgedAtEveryOffset(t *testing.T) {
	for offset := range 24 {
		for c := range 256 {
			s := `"` + strings.Repeat("a", offset) + string([]byte{byte(c)}) + `bcdefghijklmnop"`
			if got, want := Valid([]byte(s)), json.Valid([]byte(s)); got != want {
				t.Errorf("byte %#x at %d: valid %v, encoding/json says %v", c, offset, got, want)
			}
		}
	}
}

func TestDepthIsCountedNotRecursed(t *testing.T) {
	for _, unit := range [][2]string{{"[", "]"}, {`{"a":`, "}"}, {`[{"a":`, "}]"}} {
		levels := strings.Count(unit[0], "[") + strings.Count(unit[0], "{")
		text := func(units int) []byte {
			return []byte(strings.Repeat(unit[0], units) + "1" + strings.Repeat(unit[1], units))
		}
		if !Valid(text(MaxDepth / levels)) {
			t.Errorf("%q: %d levels were refused", unit[0], MaxDepth)
		}
		if Valid(text(MaxDepth/levels + 1)) {
			t.Errorf("%q: more than %d levels were let pass", unit[0], MaxDepth)
		}
	}
	endless := []byte(strings.Repeat("[", 1<<20))
	if _, v := onlyValue(endless); v != tooDeep {
		t.Errorf("a megabyte of brackets gave %v", v)
	}
}
