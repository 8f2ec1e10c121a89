package capability

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var sound128 = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

func TestPublishedNamesAreShownAsTheyAreWhereTheyCanBe(t *testing.T) {
	for published, want := range map[string]string{
		"read_file":              "read_file",
		"katashiro.read-dom":     "katashiro.read-dom",
		"ns:tool":                "ns:tool",
		"a":                      "a",
		"x":                      "x",
		strings.Repeat("n", 128): strings.Repeat("n", 128),
		"a b":                    "x:a:20b",
		"a/b":                    "x:a:2fb",
		"ns:a/b":                 "x:ns:3aa:2fb",
		"ü":                      "x::c3:bc",
		"x:y":                    "x:x:3ay", // it could be taken for a form
		"x:":                     "x:x:3a",
		strings.Repeat("n", 129): "x:" + strings.Repeat("n", 92) + "::",
		strings.Repeat("ü", 120): "x:" + strings.Repeat(":c3:bc", 15) + "::",
	} {
		got := shown(published)
		if strings.HasSuffix(want, sumMark) { // and a digest
			want += got[max(0, len(got)-sumDigits):]
		}
		if got != want {
			t.Errorf("%.20q is shown as %q, want %q", published, got, want)
		}
	}
}

func TestAShownFormLeadsBackToItsNameAlone(t *testing.T) {
	for _, form := range []string{"x:", "x::", "x:a:2", "x:a:zz", "x:ab", "x:a:41", "x:::3", "a b", "", strings.Repeat("n", 129)} {
		if name, ok := unshown(form); ok {
			t.Errorf("%q is taken for the form of %q", form, name)
		}
	}
	alphabet := rapid.StringOf(rapid.SampledFrom([]rune("ab:x .ü2f\U0001F600")))
	rapid.Check(t, func(t *rapid.T) {
		a, b := alphabet.Filter(func(s string) bool { return s != "" }).Draw(t, "a"), rapid.OneOf(alphabet, rapid.String()).Draw(t, "b")
		checkShown(t, a)
		if b != "" && a != b && shown(a) == shown(b) {
			t.Fatalf("%q and %q have one form: %q", a, b, shown(a))
		}
		if b != a && b != "" && shown(b) == a && plainName(a) {
			t.Fatalf("%q is shown as %q, which is a name of its own", b, a)
		}
	})
}

type failer interface{ Fatalf(string, ...any) }

func checkShown(t failer, name string) {
	form := shown(name)
	if !sound128.MatchString(form) {
		t.Fatalf("%q is shown as %q", name, form)
	}
	if back, ok := unshown(form); ok && back != name || !ok && !strings.Contains(form, sumMark) {
		t.Fatalf("%q is shown as %q, which leads to %q", name, form, back)
	}
}

func FuzzShownNames(f *testing.F) {
	for _, s := range []string{"a", "x:a:20b", "a/b", "\xff", strings.Repeat(":", 100), "x:::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return
		}
		checkShown(t, name)
		if back, ok := unshown(name); ok && shown(back) != name {
			t.Fatalf("%q is taken for the form of %q, which is shown as %q", name, back, shown(back))
		}
	})
}

// Two servers whose qualified names could be one: none of them ever leads to the other's tool.
func TestAQualifiedNameNeverLeadsToAnothersTool(t *testing.T) {
	for _, tc := range []struct {
		offered []binding
		asked   string
		want    binding // zero = nothing
	}{
		{[]binding{of("acme_", "status"), of("acme", "_status")}, "acme_.status", of("acme_", "status")},
		{[]binding{of("acme_", "status"), of("acme", "_status")}, "acme._status", of("acme", "_status")},
		{[]binding{of("acme_", "status"), of("acme", "_status")}, "acme__status", binding{}},
		{[]binding{configuredTool("a", "b.c"), configuredTool("a.b", "c")}, "a.b.c", binding{}},
		{[]binding{configuredTool("a", "b.c"), configuredTool("a.b", "c")}, "b.c", configuredTool("a", "b.c")},
		{[]binding{configuredTool("a.b", "c")}, "a.b.c", configuredTool("a.b", "c")},
		{[]binding{configuredTool("git", "status"), of("git", "status")}, "status", configuredTool("git", "status")},
		{[]binding{configuredTool("git", "status"), of("git", "status")}, "git.status", of("git", "status")},
		{[]binding{of("git", "a b")}, "a b", of("git", "a b")},
		{[]binding{of("git", "a b")}, "x:a:20b", of("git", "a b")},
		{[]binding{of("git", "a b")}, "git.a b", of("git", "a b")},
		{[]binding{of("git", "a b")}, "git.x:a:20b", of("git", "a b")},
		{[]binding{of("git", "a b"), of("git", "x:a:20b")}, "x:a:20b", of("git", "a b")},
		{[]binding{of("git", "a b"), of("git", "x:a:20b")}, "git.x:a:20b", of("git", "a b")},
		{[]binding{of("git", "a b"), of("git", "x:a:20b")}, "x:x:3aa:3a20b", of("git", "x:a:20b")},
		{[]binding{of("git", "a b"), of("hub", "a b")}, "git.a b", of("git", "a b")},
		{[]binding{of("git", "a b"), of("hub", "a b")}, "hub.x:a:20b", of("hub", "a b")},
	} {
		got, ok := names{}.extend(tc.offered).find(tc.asked)
		if got != tc.want || ok != (tc.want != binding{}) {
			t.Errorf("%v: %q leads to %v, want %v", tc.offered, tc.asked, got, tc.want)
		}
	}
}

// Whatever is published by whom, and in whatever order it comes: each tool has a sound name of its own that always means it, and whatever else is
// accepted for a tool never leads to another one later.
func TestNamesOfConfiguredServersHoldTheirInvariants(t *testing.T) {
	server := rapid.SampledFrom([]string{"a", "b", "a.b", "acme", "acme_", "x:a", "a b"})
	tool := rapid.SampledFrom([]string{"x", "b.x", "a.b.x", "_x", "a x", "x:a:20x", "x.2", "a.x", "ü", strings.Repeat("n", 200), "b." + strings.Repeat("n", 126)})
	one := rapid.Custom(func(t *rapid.T) binding {
		return binding{place{rapid.Bool().Draw(t, "configured"), server.Draw(t, "server")}, tool.Draw(t, "tool")}
	})
	rapid.Check(t, func(t *rapid.T) {
		n := names{}
		led := map[string]binding{}
		if rapid.Bool().Draw(t, "based") {
			base := names{}.extend(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) binding {
				return binding{place{true, server.Draw(t, "server")}, tool.Draw(t, "tool")}
			}), 1, 8).Draw(t, "base"))
			n = names{base: &base}
		}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			offered := rapid.SliceOfN(one, 0, 8).Draw(t, "offered")
			next := n.extend(offered)
			if other := n.extend(rapid.Permutation(offered).Draw(t, "order")); fmt.Sprint(next.meaning) != fmt.Sprint(other.meaning) {
				t.Fatalf("the order of %v matters: %v, %v", offered, next.meaning, other.meaning)
			}
			for name, b := range led {
				if got, ok := next.find(name); ok && got != b {
					t.Fatalf("%q led to %v and leads to %v", name, b, got)
				}
			}
			next.all(func(name string, b binding) {
				if !sound128.MatchString(name) {
					t.Fatalf("%v is shown as %q", b, name)
				}
				if got, ok := next.find(name); !ok || got != b {
					t.Fatalf("%q of %v leads to %v", name, b, got)
				}
				for _, alias := range []string{b.qualified(), b.server + "." + b.tool, b.tool} {
					if got, ok := next.find(alias); ok {
						name, _ := next.of(got)
						if !slices.Contains([]string{name, got.qualified(), got.server + "." + got.tool, got.tool}, alias) {
							t.Fatalf("%q leads to %v", alias, got)
						}
						led[alias] = got
					}
				}
			})
			for _, b := range offered {
				if _, named := next.of(b); !named {
					t.Fatalf("%v has no name", b)
				}
			}
			n = next
		}
	})
}
