package mcpjson

import (
	"strings"
	"testing"
)

// environment is a fixed one.
func environment(pairs ...string) func(string) (string, bool) {
	table := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		table[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := table[name]; return v, ok }
}

func TestVariablesAreReplaced(t *testing.T) {
	env := environment("A", "one", "B_2", "two $A ${A}", "EMPTY", "")
	for in, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"${A}":                    "one",
		"${env:A}":                "one",
		"x${A}y${env:A}z":         "xoneyonez",
		"${B_2}":                  "two $A ${A}", // a value is never looked into
		"${EMPTY}":                "",
		"${EMPTY:-d}":             "d",
		"${NONE:-d}":              "d",
		"${env:NONE:-d e:-f$}":    "d e:-f$",
		"${NONE:-}":               "",
		"$$":                      "$",
		"$${A}":                   "${A}",
		"$$${A}":                  "$one",
		"$A $ $1 a$":              "$A $ $1 a$",
		"100% ${A:-x}{}":          "100% one{}",
		`C:\Program Files\${A}\b`: `C:\Program Files\one\b`,
	} {
		got, _, _, bad := expand(in, env)
		if bad != "" || got != want {
			t.Errorf("%q became %q (%s), want %q", in, got, bad, want)
		}
	}
}

func TestWhatCannotBeReplacedIsAFaultWithoutAValue(t *testing.T) {
	env := environment("A", "hidden-value")
	for in, unset := range map[string]string{
		"${NONE}":                 "NONE",
		"${A} ${env:NONE}":        "NONE",
		"Bearer ${A":              "",
		"secret-in-text ${":       "",
		"${}":                     "",
		"${env:}":                 "",
		"${1A}":                   "",
		"${A B}":                  "",
		"${sk-live-0123456789}":   "",
		"${input:token}":          "",
		"${NONE:-${A}}":           "",
		"${A:+x}":                 "",
		"${A:-" + "x" + "${A}y}}": "",
	} {
		got, used, missing, bad := expand(in, env)
		if bad == "" || got != "" || used != nil || missing != unset {
			t.Errorf("%q became %q, missing %q (%q)", in, got, missing, bad)
		}
		for _, hidden := range []string{"hidden-value", "sk-live", "secret-in-text", "input:token"} {
			if strings.Contains(bad, hidden) {
				t.Errorf("%q: the fault tells %q: %s", in, hidden, bad)
			}
		}
	}
}

func TestAValueThatGrowsPastItsBoundIsRefused(t *testing.T) {
	env := environment("A", strings.Repeat("x", MaxString/2+1))
	if _, _, _, bad := expand("${A}", env); bad != "" {
		t.Error(bad)
	}
	if _, _, _, bad := expand("${A}${A}", env); !strings.Contains(bad, "bytes") {
		t.Errorf("%q", bad)
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"${A}", "$$${env:A:-x}", "${", "a$b${A:-${B}}", "${NONE}", "}{$"} {
		f.Add(seed)
	}
	env := environment("A", "\x01value\x02", "B", "")
	f.Fuzz(func(t *testing.T, in string) {
		out, used, unset, bad := expand(in, env)
		if bad != "" {
			if out != "" || used != nil || strings.Contains(bad, "\x01value\x02") || unset != "" && !isVariable(unset) {
				t.Fatalf("%q: %q, %v, %q, %s", in, out, used, unset, bad)
			}
			return
		}
		if n := strings.Count(in, "$"); n == 0 && out != in {
			t.Fatalf("%q became %q", in, out)
		}
		if !strings.Contains(in, "$$") && strings.Contains(out, "${") {
			t.Fatalf("%q became %q, which still has a reference", in, out)
		}
	})
}
