package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// All pages of a list are read; a cursor that comes again, one without an end and too many tools stop the reading and are told.
func TestAllPagesAreReadAndEndlessOnesAreNot(t *testing.T) {
	t.Parallel()
	three := newEvil(t, evilScript{Name: "three", Paging: "three", Count: 28})
	repeated := newEvil(t, evilScript{Name: "repeated", Paging: "repeated"})
	endless := newEvil(t, evilScript{Name: "endless", Paging: "endless"})
	_, a := startEvil(t, providersConfig, three, repeated, endless)
	seen := a.everything()
	count := map[string]int{}
	for _, one := range seen.Capabilities {
		count[one.Provider]++
	}
	if count["three"] != 29 || len(three.journal("list")) != 3 {
		t.Errorf("of three pages with 29 tools %d were listed, by %d requests", count["three"], len(three.journal("list")))
	}
	if n := len(repeated.journal("list")); n != 2 || count["repeated"] == 0 && seen.without("repeated") == "" {
		t.Errorf("a repeated cursor: %d requests, %d tools, %q", n, count["repeated"], seen.without("repeated"))
	}
	if n := len(endless.journal("list")); n != 100 {
		t.Errorf("endless cursors: %d requests", n)
	}
	for _, name := range []string{"repeated", "endless"} {
		if why := seen.without(name); why == "" {
			t.Errorf("nothing says that the list of %s is not whole: %+v", name, seen.Unavailable)
		} else {
			t.Logf("%s: %s", name, why)
		}
	}
}

// Ten thousand tools are listed and the rest is told of.
func TestMoreThanTenThousandToolsAreCutAndTold(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "many", Paging: "three", Count: 10_050})
	_, a := startEvil(t, providersConfig, s)
	var seen searchAnswer
	until(t, "the list of so many tools", func() bool { // a search waits 10 s for it, which a busy machine may need for more
		seen = a.search(`{"query":"plain_77","limit":5}`)
		return seen.Total > 0
	})
	if seen.Total == 0 || seen.Total > 10_000 || !strings.Contains(seen.without("many"), "10000") && !strings.Contains(seen.without("many"), "10,000") {
		t.Errorf("total %d, unavailable %+v", seen.Total, seen.Unavailable)
	}
	if all := a.search(`{"limit":1}`); all.Total != 10_000 {
		t.Errorf("%d tools are listed", all.Total)
	}
	a.says("many.plain_77", `{}`, `plain_77 {}`)
}

// safeName is what a capability may be called.
var safeName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// Names of any kind are shown in one alphabet, each its own, and what is sent is what was published.
func TestOddNamesAreShownSafelyAndSentAsPublished(t *testing.T) {
	t.Parallel()
	odd := []string{
		"a.b", "a/b", "a_b", "a b", " a", "a ", "ünïcode_名", "emoji😀", "quo\"te", "back\\slash", "per%cent", "a%2Fb", "UPPER", "upper", "x:y", "..", "-",
		strings.Repeat("n", 100), strings.Repeat("n", 128), strings.Repeat("n", 129), strings.Repeat("m", 256), strings.Repeat("m", 255) + "x", strings.Repeat("名", 80),
	}
	// What nobody could tell from another name, and what has no end, is left out and told of.
	leftOut := []string{"zero\u200bwidth", "a\x00b", "new\nline", "no\u00a0break", strings.Repeat("m", 300)}
	var raw []json.RawMessage
	for _, name := range append(slices.Clone(odd), leftOut...) {
		text, _ := json.Marshal(name)
		raw = append(raw, json.RawMessage(`{"name":`+string(text)+`,"description":"`+fmt.Sprint(len(raw))+` odd","inputSchema":{"type":"object"}}`))
	}
	s := newEvil(t, evilScript{Name: "odd", Offer: []string{}, Raw: raw})
	p, a := startEvil(t, providersConfig, s)
	shown := map[string]bool{}
	for _, one := range a.everything().Capabilities {
		if !safeName.MatchString(one.Name) || shown[one.Name] {
			t.Errorf("a capability is called %q", one.Name)
		}
		shown[one.Name] = true
		var index int
		_, _ = fmt.Sscan(one.Description, &index)
		want, _ := json.Marshal(odd[index])
		got := a.ask(one.Name, `{}`)
		sent, _, _ := strings.Cut(got.Result.text(), " {")
		if sent != odd[index] {
			t.Errorf("%s stands for %s; the server was asked for %q", one.Name, want, sent)
		}
	}
	if len(shown) != len(odd) {
		t.Errorf("%d of %d tools are shown: %v", len(shown), len(odd), slices.Sorted(maps.Keys(shown)))
	}
	if why := a.search(`{}`).without("odd"); !strings.Contains(why, fmt.Sprint(len(leftOut))) {
		t.Errorf("of what is left out it says %q", why)
	}
	again := anonymous(t, p)
	_, session := p.session()
	for _, caller := range []agentClient{again, session} {
		for _, one := range caller.everything().Capabilities {
			if !shown[one.Name] {
				t.Errorf("another caller sees %q", one.Name)
			}
		}
	}
}

// Two servers with equal tools, and servers whose names run into their tools', stay apart.
func TestEqualNamesOfServersStayApart(t *testing.T) {
	t.Parallel()
	a1 := newEvil(t, evilScript{Name: "acme", Offer: []string{"whoami", "_status", "search"}})
	a2 := newEvil(t, evilScript{Name: "acme_", Offer: []string{"whoami", "status", "search"}})
	a3 := newEvil(t, evilScript{Name: "acme-x", Offer: []string{"acme.search", "search"}})
	_, a := startEvil(t, providersConfig, a1, a2, a3)
	seen := a.everything()
	if len(seen.Capabilities) != 8 {
		t.Errorf("%d of 8 are shown", len(seen.Capabilities))
	}
	for _, one := range seen.Capabilities {
		if one.Provider == "" {
			t.Errorf("%s has no provider", one.Name)
		}
	}
	a.runs(a1)
	a.runs(a2)
	for name, s := range map[string]*evilServer{"acme.search": a1, "acme_.search": a2, "acme-x.search": a3, "acme-x.acme.search": a3, "acme._status": a1, "acme_.status": a2} {
		before := len(s.journal("call"))
		if got := a.ask(name, `{}`); got.Result.IsError || len(s.journal("call")) != before+1 {
			t.Errorf("%s did not reach %s: %s", name, s.script.Name, got.raw)
		}
	}
}

// Of a tunnelled and a configured tool with one name the configured one has the plain name.
func TestAConfiguredToolKeepsThePlainNameBesideAClientsTool(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "desk", Offer: []string{"katashiro.click"}})
	p := startPod(t, providersConfig, mcpJSON(t, s))
	e := dial(t, p)
	tunnelled := newServer("katashiro", genA, "katashiro.click")
	a := e.facadeOf(e.open(tunnelled))
	seen := a.search(`{}`)
	plain, _ := seen.get("katashiro.click")
	qualified, _ := seen.get("katashiro.katashiro.click")
	if plain.Provider != "desk" || qualified.Provider != "openab-browser" || seen.Total != 2 {
		t.Errorf("%+v", seen.Capabilities)
	}
	a.says("katashiro.click", `{"n":1}`, `katashiro.click {"n":1}`)
	a.ask("katashiro.katashiro.click", `{"n":2}`)
	if s.calls("katashiro.click") != 1 || tunnelled.callCount() != 1 {
		t.Errorf("%d calls of the configured one, %d of the client's", s.calls("katashiro.click"), tunnelled.callCount())
	}
	if anonymousSees := anonymous(t, p).search(`{}`); anonymousSees.Total != 1 || !anonymousSees.has("katashiro.click") {
		t.Errorf("without a token: %+v", anonymousSees)
	}
}

// What a server adds is found by the next search within a second, what it takes away is gone, and what is not shown cannot be called.
func TestAChangedListIsSeenByTheNextSearch(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "moody", Offer: []string{"change"}, Raw: []json.RawMessage{plainTool("before")}, Later: []json.RawMessage{plainTool("after")}})
	_, a := startEvil(t, providersConfig, s)
	if seen := a.search(`{}`); !seen.has("before") || seen.has("after") {
		t.Fatalf("%+v", seen)
	}
	a.says("change", `{}`, "changed")
	start := time.Now()
	until(t, "the new tool", func() bool { return a.search(`{}`).has("after") })
	t.Logf("it was found after %v; the issue gives a second", time.Since(start))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it was found after %v", took)
	}
	if a.search(`{}`).has("before") {
		t.Error("what was taken away is still shown")
	}
	a.says("after", `{}`, `after {}`)
	if got := a.ask("before", `{}`); !got.Result.IsError || s.calls("before") != 0 {
		t.Errorf("what was taken away: %s", got.raw)
	}
}

// Storms of list changes, of each list, at once or for ever, or with every answer, make few requests and hold no call up.
func TestStormsOfListChangesMakeFewRequests(t *testing.T) {
	t.Parallel()
	burst := newEvil(t, evilScript{Name: "burst", Offer: []string{"storm", "whoami"}})
	forever := newEvil(t, evilScript{Name: "forever", Offer: []string{"whoami"}, StormEvery: 30 * time.Millisecond})
	lists := newEvil(t, evilScript{Name: "lists", Offer: []string{"whoami"}, StormLists: true})
	_, a := startEvil(t, providersConfig, burst, forever, lists)
	a.search(`{}`)
	start := time.Now()
	for _, list := range []string{"tools", "resources", "prompts"} {
		a.says("storm", fmt.Sprintf(`{"n":200,"list":%q}`, list), "stormed")
	}
	for time.Since(start) < 2*time.Second {
		a.runs(burst)
		a.runs(forever)
		a.runs(lists)
		a.search(`{}`)
	}
	seconds := time.Since(start).Seconds()
	for _, s := range []*evilServer{burst, forever, lists} {
		n := len(s.journal("list"))
		t.Logf("%s: %d requests of its list in %.1f s", s.script.Name, n, seconds)
		if float64(n) > 4+3*seconds {
			t.Errorf("%s was asked for its list %d times in %.1f s", s.script.Name, n, seconds)
		}
	}
}

// A search while a server is still starting says so and is not kept: the next one has its tools. The others are usable at once.
func TestASlowStartIsPendingAndThenThere(t *testing.T) {
	t.Parallel()
	slow := newEvil(t, evilScript{Name: "slow", Offer: []string{"whoami"}, StartAfter: 12 * time.Second})
	fast := newEvil(t, evilScript{Name: "fast"})
	_, a := startEvil(t, providersConfig, slow, fast)
	start := time.Now()
	a.says("fast.echo", `{}`, `echo {}`)
	t.Logf("the fast one answered after %v", time.Since(start))
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("the fast one answered only after %v", took)
	}
	seen := a.search(`{}`)
	t.Logf("a search was answered after %v", time.Since(start))
	if !seen.has("echo") || len(seen.Pending) != 1 || !strings.Contains(encode(t, seen.Pending), "slow") {
		t.Errorf("%+v", seen)
	}
	until(t, "the slow one's tools", func() bool { return a.search(`{}`).has("whoami") })
	if again := a.search(`{}`); len(again.Pending) != 0 || again.Total != 2 {
		t.Errorf("%+v", again)
	}
	a.runs(slow)
	if slow.starts() != 1 {
		t.Errorf("it was started %d times", slow.starts())
	}
}

// A first search finds what a server offers though nothing ran before.
func TestTheFirstSearchFindsWhatNeverRan(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "lazy", StartAfter: 700 * time.Millisecond})
	_, a := startEvil(t, providersConfig, s)
	if s.starts() != 0 {
		t.Error("it runs though nobody asked")
	}
	if seen := a.search(`{"query":"echo"}`); !seen.has("echo") || len(seen.Pending) != 0 {
		t.Errorf("%+v", seen)
	}
}

// Malformed tools are put right or left out, each with its reason, and their siblings live.
func TestAMalformedToolHurtsNoSibling(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "sloppy", Paging: "three", Raw: []json.RawMessage{
		json.RawMessage(`{"name":"empty_schema","inputSchema":{}}`),
		json.RawMessage(`{"name":"null_required","inputSchema":{"type":"object","properties":{},"required":null}}`),
		json.RawMessage(`{"name":"null_properties","inputSchema":{"type":"object","properties":null}}`),
		json.RawMessage(`{"name":"no_schema","description":"none"}`),
		json.RawMessage(`{"name":"null_schema","inputSchema":null}`),
		json.RawMessage(`{"name":"any_of","inputSchema":{"anyOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}}`),
		json.RawMessage(`{"name":"null_description","description":null,"title":null,"annotations":null,"inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":7,"inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"description":"nameless","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"","inputSchema":{"type":"object"}}`),
		json.RawMessage(`"a string"`), json.RawMessage(`null`), json.RawMessage(`[]`), json.RawMessage(`7`),
		json.RawMessage(`{"name":"string_schema","inputSchema":"object"}`),
		json.RawMessage(`{"name":"double","description":"the first","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"double","description":"the second","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"sibling","inputSchema":{"type":"object"}}`),
	}})
	_, a := startEvil(t, providersConfig, s)
	seen := a.everything()
	for _, name := range []string{"echo", "empty_schema", "null_required", "null_properties", "no_schema", "any_of", "null_description", "double", "sibling"} {
		if !seen.has(name) {
			t.Errorf("%s is not shown", name)
			continue
		}
		one, _ := seen.get(name)
		var schema struct{ Type any }
		if err := json.Unmarshal(one.InputSchema, &schema); err != nil {
			t.Errorf("%s has the schema %s", name, one.InputSchema)
		}
		arguments := `{"a":1}`
		a.says(name, arguments, name+" "+arguments)
	}
	for _, name := range []string{"", "7", "string_schema"} {
		if seen.has(name) {
			t.Errorf("%q is shown", name)
		}
	}
	if why := seen.without("sloppy"); why == "" {
		t.Errorf("nothing says what was left out: %+v", seen.Unavailable)
	} else {
		t.Log(why)
	}
	if got := a.ask("any_of", `{}`); got.Result.refusal() != "bad_arguments" {
		t.Errorf("any_of without a and b: %s", got.raw)
	}
}

// What the filter leaves out stands in no list and no answer, and a call of it starts nothing.
func TestAnExcludedToolOfAServerThatNeverRanStartsNothing(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "mail", Offer: []string{"read_mail", "send_mail", "SEND_MAIL", "draft.delete", "draft.create"}}).
		set("tool_filter", object{"include": []string{"read_*", "draft.*", "SEND*"}, "exclude": []string{"*.delete", "send_mail"}})
	excluded := []string{"send_mail", "draft.delete", "mail.send_mail", "mail.draft.delete", "unheard", "mail.unheard"}
	p, a := startEvil(t, providersConfig, s)
	_, session := p.session()
	for _, caller := range []agentClient{a, session} {
		for _, name := range excluded {
			caller.refuses("unknown", name, `{}`)
		}
	}
	if s.starts() != 0 {
		t.Error("a call of an excluded tool started the server")
	}
	for _, caller := range []agentClient{a, session} {
		names := caller.names()
		slices.Sort(names)
		if want := []string{"SEND_MAIL", "draft.create", "read_mail"}; !slices.Equal(names, want) {
			t.Errorf("shown are %v, want %v", names, want)
		}
		for _, name := range excluded {
			caller.refuses("unknown", name, `{}`)
		}
		if result := caller.tool("search_capabilities", `{"query":"send_mail delete","limit":100}`); strings.Contains(strings.ReplaceAll(result.text(), "SEND_MAIL", ""), "send_mail") || strings.Contains(result.text(), "delete") {
			t.Errorf("a search shows what is excluded: %s", result.text())
		}
	}
	a.says("read_mail", `{}`, `read_mail {}`)
	if n := len(s.journal("call")); n != 1 {
		t.Errorf("%d calls reached the server: %v", n, s.journal("call"))
	}
	audit := p.log.String()
	if !strings.Contains(audit, "event=refused") {
		t.Error("no refusal stands in the audit")
	}
}

// Whatever is wrong in mcp.json is wrong for its entry alone, and no value that may be secret is shown.
func TestABadEntrySinksNoOther(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "good"})
	good := encode(t, s.entry)
	text := "\ufeff// comments, a byte order mark, CRLF and trailing commas\r\n{\r\n  \"mcpServers\": {\r\n" +
		"    \"nothing\": {},\r\n" +
		"    \"both\": {\"command\": \"x\", \"url\": \"http://127.0.0.1:1/\"}, /* two ways */\r\n" +
		"    \"header\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:1/mcp\", \"headers\": {\"X-Key\": \"SECRETVALUE\\r\\nX-More: 1\"}},\r\n" +
		"    \"odd name!\": {\"command\": \"x\"},\r\n" +
		"    \"typed\": {\"command\": 7, \"env\": {\"KEY\": \"SECRETVALUE\"}},\r\n" +
		"    \"good\": " + good + ",\r\n  },\r\n}\r\n"
	p := startPod(t, providersConfig, mcpText(t, text))
	a := anonymous(t, p)
	a.says("echo", `{"n":1}`, `echo {"n":1}`)
	seen := a.search(`{}`)
	if seen.Total != 1 {
		t.Errorf("%+v", seen)
	}
	log := p.log.String()
	for _, name := range []string{"nothing", "header", "typed"} {
		if !strings.Contains(log, name) {
			t.Errorf("the log does not name %q", name)
		}
	}
	for _, line := range []string{"4", "6", "8"} {
		if !regexp.MustCompile(`mcp\.json:` + line + `\b|line=?.?` + line + `\b`).MatchString(log) {
			t.Errorf("the log does not name line %s", line)
		}
	}
	noneOf(t, "the log", log, "SECRETVALUE")
	noneOf(t, "a search", encode(t, seen), "SECRETVALUE")
	if _, err := os.Stat(s.script.Journal); err != nil {
		t.Error(err)
	}
}
