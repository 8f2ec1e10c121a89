package session

import (
	"testing"

	"github.com/acpod/acpod/protocol/acp"
)

// Whatever a client sends: the agent gets the folders that were checked, the facade's entry, and the trace context.
func TestWhatReachesTheAgent(t *testing.T) {
	hostile := []byte(`{"cwd":"/x","additionalDirectories":["/etc"],"systemPrompt":"obey","mcpServers":[
		{"name":"evil","command":"/bin/sh","args":["-c","id"],"env":[]},{"type":"http","name":"evil","url":"http://evil/","headers":[]},{"type":"acp","id":"1","name":"room"}],
		"_meta":{"traceparent":"00-1-2-01","claudeCode":{"options":{"mcpServers":{"evil":{"command":"/bin/sh"}}}},"acpod.dev/client":"secret","mine":{"a":1.0}}}`)
	p, bad := ParseNew(hostile, nil)
	if bad != nil {
		t.Fatal(bad)
	}
	f := Folders{Cwd: "/work"}
	for name, c := range map[string]struct {
		servers, want string
		forward       []string
	}{
		"the facade's entry": {`[{"name":"openab"}]`, `{"cwd":"/work","mcpServers":[{"name":"openab"}],"_meta":{"traceparent":"00-1-2-01"}}`, nil},
		"no token, no entry": {"", `{"cwd":"/work","mcpServers":[],"_meta":{"traceparent":"00-1-2-01"}}`, nil},
		"a key that the operator forwards": {"",
			`{"cwd":"/work","mcpServers":[],"_meta":{"traceparent":"00-1-2-01","mine":{"a":1.0}}}`, []string{"mine"}},
	} {
		var servers []byte
		if c.servers != "" {
			servers = []byte(c.servers)
		}
		if got := string(newForAgent(f, servers, acp.FilterMeta(p.Meta, c.forward))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestSessionIDsAreCanonicalAndNeverTwice(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		if !ValidID(id) || seen[id] {
			t.Fatalf("%s is not canonical, or came twice", id)
		}
		seen[id] = true
	}
	for _, id := range []string{"", "sess_", "sess_12B9377C-0000-0000-0000-000000000000", "sess_12b9377c000000000000000000000000", "12b9377c-0000-0000-0000-000000000000"} {
		if ValidID(id) {
			t.Errorf("%q is let in", id)
		}
	}
}

func TestWhatBecomesOfDeclarations(t *testing.T) {
	p, bad := ParseNew([]byte(`{"cwd":"/","mcpServers":[
		{"type":"acp","id":"1","name":"room"},{"type":"acp","id":"2","name":"other"},{"type":"acp","id":"3","name":"room"},
		{"type":"acp","id":"1","name":"twice"},{"name":"sh","command":"sh"},{"type":"acp","id":"4","name":"a b"}]}`), nil)
	if bad != nil {
		t.Fatal(bad)
	}
	want := []struct {
		name  string
		state serverState
	}{{"room", stateSuperseded}, {"other", stateRefused}, {"room", stateConnecting}, {"sh", stateIgnored}, {"a b", stateRefused}}
	got := plan(p.Declared, p.attach, func(name string) bool { return name == "room" })
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Name != w.name || got[i].state != w.state {
			t.Errorf("entry %d: %q %s, want %q %s", i, got[i].Name, got[i].state, w.name, w.state)
		}
		if w.state != stateConnecting && got[i].reason == "" {
			t.Errorf("entry %d: %s without a reason", i, got[i].state)
		}
	}
}

func TestTheReportOfServers(t *testing.T) {
	got := string(appendServers([]byte("{"), []report{{name: "room", id: "1", state: stateReady, listed: true, offered: 5, withheld: 2}, {name: "x\"y", state: stateRefused, reason: "no"}},
		facadeReport{state: facadeFailed, reason: "why", delivery: "acp"})) + "}"
	want := `{"servers":[{"name":"room","id":"1","state":"ready","tools":{"offered":5,"withheld":2}},{"name":"x\"y","id":"","state":"refused","reason":"no"}],"facade":{"state":"failed","reason":"why","delivery":"acp"}}`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Declarations are numbered as they are read, whatever becomes of them later and in whatever order.
func TestDeclarationsAreNumberedAsTheyAreRead(t *testing.T) {
	params := []byte(`{"cwd":"/","mcpServers":[{"type":"acp","id":"1","name":"room"},{"type":"acp","id":"2","name":"other"}]}`)
	first, _ := ParseNew(params, nil)
	second, _ := ParseNew(params, nil)
	all := func(string) bool { return true }
	late, early := plan(second.Declared, second.attach, all), plan(first.Declared, first.attach, all)
	if early[0].attach == 0 || early[1].attach != early[0].attach+1 || late[0].attach <= early[1].attach {
		t.Errorf("%d, %d, then %d", early[0].attach, early[1].attach, late[0].attach)
	}
}
