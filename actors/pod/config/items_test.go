package config

import (
	"slices"
	"testing"
)

// A list after --set or in a variable has commas, or is an array as in the file; an array that is none is refused, for it
// would else be a list of pieces of it.
func TestAListInOneString(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b": {"a", "b"}, " a , b ": {"a", "b"}, "": nil, ",": nil, "a": {"a"},
		`["a","b"]`: {"a", "b"}, ` [ "a, with a comma" ] `: {"a, with a comma"}, "[]": {},
	} {
		got, err := itemsOf(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	for _, text := range []string{"[", `["a"`, "[a]", `["a"] x`, "[1]", "[\"a\"]\nother = 1"} {
		if got, err := itemsOf(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}
