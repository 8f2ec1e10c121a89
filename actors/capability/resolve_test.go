package capability

import (
	"strings"
	"testing"
)

func TestANameLeadsToACapabilityARefusalOrAWait(t *testing.T) {
	five := DefaultGrants()
	granted := NewGrants([]Grant{{Name: "shop", Tools: []string{"buy", "shop.list"}}, {Name: "empty"}, {Name: "open", Tools: []string{"*"}}})
	for _, tc := range []struct {
		what     string
		grants   *Grants
		declared []string
		sources  []*fakeSource
		name     string
		waited   bool
		want     Code // "" = a capability
		wait     bool
		tool     string // of the capability
	}{
		{what: "a listed and granted tool", grants: five, sources: []*fakeSource{newSource("katashiro", Ready, tools("katashiro.click"))}, name: "katashiro.click", tool: "katashiro.click"},
		{what: "its qualified form", grants: five, sources: []*fakeSource{newSource("katashiro", Ready, tools("katashiro.click"))}, name: "katashiro.katashiro.click", tool: "katashiro.click"},
		{what: "a bare published name", grants: granted, sources: []*fakeSource{newSource("shop", Ready, tools("buy"))}, name: "buy", tool: "buy"},
		{what: "a bare name in its qualified form", grants: granted, sources: []*fakeSource{newSource("shop", Ready, tools("buy"))}, name: "shop.buy", tool: "buy"},
		{what: "a listed tool that is not granted", grants: five, sources: []*fakeSource{newSource("katashiro", Ready, tools("katashiro.click", "katashiro.eval"))}, name: "katashiro.eval", want: ToolNotGranted},
		{what: "a tool that is neither granted nor listed", grants: five, sources: []*fakeSource{newSource("katashiro", Ready, tools("katashiro.click"))}, name: "katashiro.nope", want: ToolNotGranted},
		{what: "a granted tool that the server does not list", grants: five, sources: []*fakeSource{newSource("katashiro", Ready, tools("katashiro.click"))}, name: "katashiro.type", want: Unknown},
		{what: "a server that grants everything does not list it", grants: granted, sources: []*fakeSource{newSource("open", Ready, tools("a"))}, name: "open.b", want: Unknown},
		{what: "a server whose entry has no tools", grants: granted, sources: []*fakeSource{newSource("empty", Ready, tools("empty.a"))}, name: "empty.a", want: ToolNotGranted},
		{what: "a declared server without a grant", grants: five, declared: []string{"evil"}, name: "evil.tool", want: ServerNotGranted},
		{what: "a server that nobody declared", grants: five, declared: []string{"katashiro"}, name: "evil.tool", want: Unknown},
		{what: "a name without a dot, a server declared", grants: five, declared: []string{"katashiro"}, name: "click", want: MalformedName},
		{what: "an empty name, a server declared", grants: five, declared: []string{"katashiro"}, name: "", want: MalformedName},
		{what: "a name without a dot, none declared", grants: five, name: "click", want: Unknown},
		{what: "an anonymous caller", grants: five, name: "katashiro.click", want: Unknown},
		{what: "a connecting server, name not known", grants: five, sources: []*fakeSource{newSource("katashiro", Connecting, nil)}, name: "katashiro.click", wait: true},
		{what: "the same after the wait", grants: five, sources: []*fakeSource{newSource("katashiro", Connecting, nil)}, name: "katashiro.click", waited: true, want: NotAttached},
		{what: "another server connects, name not known", grants: granted, declared: []string{"shop"}, sources: []*fakeSource{newSource("open", Connecting, nil)}, name: "something", wait: true},
		{what: "the same after the wait, without a dot", grants: granted, sources: []*fakeSource{newSource("open", Connecting, nil)}, name: "something", waited: true, want: Unknown},
		{what: "the same after the wait, another server's prefix", grants: granted, sources: []*fakeSource{newSource("open", Connecting, nil), newSource("shop", Ready, tools("buy"))}, name: "shop.shop.list", waited: true, want: Unknown},
		{what: "a tool that is not granted does not wait", grants: five, sources: []*fakeSource{newSource("katashiro", Connecting, nil)}, name: "katashiro.eval", want: ToolNotGranted},
		{what: "a server without a grant does not wait", grants: five, declared: []string{"evil"}, sources: []*fakeSource{newSource("katashiro", Connecting, nil)}, name: "evil.x", want: ServerNotGranted},
		{what: "an early tool waits for its server", grants: five, sources: []*fakeSource{newSource("katashiro", Connecting, listOf(true, "katashiro.click"))}, name: "katashiro.click", wait: true},
		{what: "and is detached when that does not come", grants: five, sources: []*fakeSource{newSource("katashiro", Connecting, listOf(true, "katashiro.click"))}, name: "katashiro.click", waited: true, want: NotAttached},
		{what: "an early tool that is not granted", grants: five, sources: []*fakeSource{newSource("katashiro", Connecting, listOf(true, "katashiro.eval"))}, name: "katashiro.eval", want: ToolNotGranted},
		{what: "a tool of a server that is gone", grants: five, sources: []*fakeSource{newSource("katashiro", Detached, tools("katashiro.click"))}, name: "katashiro.click", want: NotAttached},
		{what: "a tool of a server that failed before it listed", grants: five, sources: []*fakeSource{newSource("katashiro", Failed, nil)}, name: "katashiro.click", want: NotAttached},
		{what: "a granted tool of a server that went before it listed", grants: five, declared: []string{"katashiro"}, name: "katashiro.click", want: NotAttached},
	} {
		r := viewOf(tc.grants, tc.declared, tc.sources...).Resolve(tc.name, tc.waited)
		got := Code("")
		if r.Refusal != nil {
			got = r.Refusal.Code
		}
		if got != tc.want || r.Wait != tc.wait {
			t.Errorf("%s: got %q wait=%v, want %q wait=%v", tc.what, got, r.Wait, tc.want, tc.wait)
		}
		if tool := r.Capability.Tool; tc.tool != "" && (tool == nil || tool.Name != tc.tool) {
			t.Errorf("%s: got the tool %v, want %s", tc.what, tool, tc.tool)
		}
		if r.Refusal != nil && (strings.ContainsAny(r.Refusal.Text, "\n\r") || r.Refusal.Text == "") {
			t.Errorf("%s: the text is not one line: %q", tc.what, r.Refusal.Text)
		}
	}
}

func TestRefusalsReadDifferentlyAndEscapeWhatWasAsked(t *testing.T) {
	v := viewOf(DefaultGrants(), []string{"evil", "katashiro"}, newSource("katashiro", Ready, tools("katashiro.click")))
	seen := map[string]string{}
	for _, name := range []string{"evil.x", "katashiro.eval", "nodot", "other.x"} {
		text := v.Resolve(name, false).Refusal.Text
		if before, twice := seen[text]; twice {
			t.Errorf("%q and %q are refused in the same words", before, name)
		}
		seen[text] = name
	}
	text := v.Resolve("katashiro.\x1b[31m\n<b>"+strings.Repeat("x", 500), false).Refusal.Text
	if strings.ContainsAny(text, "\x1b\n") || len(text) > 400 {
		t.Errorf("not escaped or not bounded: %q", text)
	}
}

func TestNoListShowsMoreThanThePolicy(t *testing.T) {
	seven := []string{"katashiro.read_dom", "katashiro.screenshot", "katashiro.navigate", "katashiro.click", "katashiro.type", "katashiro.eval", "katashiro.cookies"}
	for what, src := range map[string]*fakeSource{
		"early":  newSource("katashiro", Connecting, listOf(true, seven...)),
		"real":   newSource("katashiro", Ready, tools(seven...)),
		"gone":   newSource("katashiro", Detached, tools(seven...)),
		"failed": newSource("katashiro", Failed, tools(seven...)),
		"late":   newSource("katashiro", Ready, tools(append(seven, "katashiro.a", "katashiro.b")...)),
	} {
		if got := len(viewOf(DefaultGrants(), nil, src).Catalog()); got != 5 {
			t.Errorf("%s list: %d capabilities, want the five that are granted", what, got)
		}
		if got := len(viewOf(NewGrants(nil), nil, src).Catalog()); got != 0 {
			t.Errorf("%s list: %d capabilities without a grant", what, got)
		}
	}
}

func TestAListThatChangesIsReadAtOnceAndShowsNoUnnamedTool(t *testing.T) {
	src := newSource("open", Ready, tools("a", "b"))
	v := viewOf(all("open"), nil, src)
	src.set.Store(&Toolset{State: Ready, List: tools("b", "c")})
	var got []string
	for _, c := range v.Catalog() {
		got = append(got, c.Name)
	}
	if len(got) != 1 || got[0] != "b" {
		t.Fatalf("got %v: a is gone and c has no name yet", got)
	}
}

func TestGrantsAdmitWhatTheyNameAndNothingElse(t *testing.T) {
	for _, tc := range []struct {
		what         string
		grants       *Grants
		server, tool string
		admits, uses bool
	}{
		{"the default", DefaultGrants(), "katashiro", "katashiro.click", true, true},
		{"the default, another tool", DefaultGrants(), "katashiro", "click", true, false},
		{"the default, another server", DefaultGrants(), "other", "katashiro.click", false, false},
		{"none", NewGrants(nil), "katashiro", "katashiro.click", false, false},
		{"an entry without tools", NewGrants([]Grant{{Name: "a"}}), "a", "x", true, false},
		{"all tools", NewGrants([]Grant{{Name: "a", Tools: []string{"*"}}}), "a", "x", true, true},
		{"two entries add up", NewGrants([]Grant{{Name: "a", Tools: []string{"x"}}, {Name: "a", Tools: []string{"y"}}}), "a", "y", true, true},
		{"every server", NewGrants([]Grant{{Name: "*", Tools: []string{"x"}}}), "b", "x", true, true},
		{"every server, another tool", NewGrants([]Grant{{Name: "*", Tools: []string{"x"}}}), "b", "y", true, false},
	} {
		if got := tc.grants.Server(tc.server); got != tc.admits {
			t.Errorf("%s: admits %v", tc.what, got)
		}
		if got := tc.grants.Tool(tc.server, tc.tool); got != tc.uses {
			t.Errorf("%s: uses %v", tc.what, got)
		}
	}
}
