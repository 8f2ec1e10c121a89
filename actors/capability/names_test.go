package capability

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesAreGivenByTheKeeperRules(t *testing.T) {
	for _, tc := range []struct {
		what    string
		offered []binding
		want    map[string]binding
	}{
		{"one server keeps its published names", []binding{of("katashiro", "katashiro.click"), of("katashiro", "type")},
			map[string]binding{"katashiro.click": of("katashiro", "katashiro.click"), "type": of("katashiro", "type")}},
		{"of two with one name the smaller server keeps it", []binding{of("b", "search"), of("a", "search")},
			map[string]binding{"search": of("a", "search"), "b.search": of("b", "search")}},
		{"the server that the prefix names keeps it though it is not the smallest", []binding{of("alpha", "zeta.go"), of("zeta", "zeta.go")},
			map[string]binding{"zeta.go": of("zeta", "zeta.go"), "alpha.zeta.go": of("alpha", "zeta.go")}},
		{"a qualified name never takes one that was published", []binding{of("a", "x"), of("b", "x"), of("b", "b.x")},
			map[string]binding{"x": of("a", "x"), "b.x.2": of("b", "x"), "b.b.x": of("b", "b.x")}},
		{"a published name that is another's qualified name is qualified itself", []binding{of("a", "b.x"), of("b", "x")},
			map[string]binding{"x": of("b", "x"), "a.b.x": of("a", "b.x")}},
		{"three holders", []binding{of("c", "go"), of("a", "go"), of("b", "go")},
			map[string]binding{"go": of("a", "go"), "b.go": of("b", "go"), "c.go": of("c", "go")}},
		{"the same tool twice is one", []binding{of("a", "go"), of("a", "go")}, map[string]binding{"go": of("a", "go")}},
	} {
		got := names{}.extend(tc.offered).meaning
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.what, got, tc.want)
		}
	}
}

func TestANameOnceGivenKeepsItsMeaningWhoeverComesLater(t *testing.T) {
	n := names{}.extend([]binding{of("shop", "search")})
	n = n.extend([]binding{of("shop", "search"), of("amazon", "search")}) // sorts before, and comes later
	want := map[string]binding{"search": of("shop", "search"), "amazon.search": of("amazon", "search")}
	if !maps.Equal(n.meaning, want) {
		t.Fatalf("got %v, want %v", n.meaning, want)
	}
	n = n.extend([]binding{of("amazon", "search"), of("search", "search")}) // shop lists it no more
	if n.meaning["search"] != of("shop", "search") {
		t.Fatalf("the name of a tool that is gone was given away: %v", n.meaning)
	}
	if b, ok := n.find("shop.search"); !ok || b != of("shop", "search") {
		t.Fatalf("the qualified form is not accepted: %v %v", b, ok)
	}
	if _, ok := n.find("nobody.search"); ok {
		t.Fatal("a qualified form of an unknown server was found")
	}
}

func TestNamesHoldTheirInvariantsForWhateverServersPublish(t *testing.T) {
	server := rapid.SampledFrom([]string{"a", "b", "c", "a-b"})
	tool := rapid.SampledFrom([]string{"x", "y", "a.x", "b.x", "b.x.2", "a.b.x", "c.y", "x.2"})
	one := rapid.Custom(func(t *rapid.T) binding { return of(server.Draw(t, "server"), tool.Draw(t, "tool")) })
	rapid.Check(t, func(t *rapid.T) {
		n := names{}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			offered := rapid.SliceOfN(one, 0, 10).Draw(t, "offered")
			before := maps.Clone(n.meaning)
			shuffled := rapid.Permutation(offered).Draw(t, "order")
			next := n.extend(offered)
			if other := n.extend(shuffled); !maps.Equal(next.meaning, other.meaning) {
				t.Fatalf("the order of %v matters: %v, %v", offered, next.meaning, other.meaning)
			}
			if !maps.Equal(before, n.meaning) {
				t.Fatal("extend changed its receiver")
			}
			for name, b := range before {
				if next.meaning[name] != b {
					t.Fatalf("%q meant %v and means %v", name, b, next.meaning[name])
				}
			}
			for _, b := range offered {
				if next.meaning[next.name[b]] != b {
					t.Fatalf("%v has no name of its own: %v", b, next.meaning)
				}
			}
			if len(next.meaning) != len(next.name) {
				t.Fatalf("names and tools are not one to one: %v", next.meaning)
			}
			n = next
		}
	})
}

func TestQualifiedNamesSplitAtTheFirstDotBecauseServersHaveNone(t *testing.T) {
	n := names{}.extend([]binding{of("a", "go"), of("b", "go"), of("b", "b.go")})
	for _, b := range []binding{of("a", "go"), of("b", "go"), of("b", "b.go")} {
		got, ok := n.find(b.qualified())
		shown, isShown := n.meaning[b.qualified()]
		if !ok || !isShown && got != b || isShown && got != shown {
			t.Errorf("%q leads to %v, %v", b.qualified(), got, ok)
		}
	}
	if keys := slices.Sorted(maps.Keys(n.meaning)); !slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "b.go") }) {
		t.Errorf("no name begins with b.go: %v", keys)
	}
}
