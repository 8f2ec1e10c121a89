package facade

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// proxied gives a session a proxy, and the world its address.
func (w *world) proxied(s *session, places *ProxyPlaces) kernel.Ref {
	w.t.Helper()
	url := make(chan string, 1)
	caller, _ := w.tokens.Resolve(sha256.Sum256([]byte(s.token)))
	ref := kerneltest.Spawn(w.t, w.root, ProxySpec(ProxyConfig{Callers: w.tokens, Of: caller.View, Desk: s.desk, Places: places, Version: "test",
		Ready: func(at string) { url <- at }}))
	w.baseURL = strings.TrimSuffix(<-url, endpoint)
	return ref
}

func TestAProxyShowsTheSessionsToolsAsToolsOfTheirOwn(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	w.proxied(s, nil)
	list := w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: bearer(s.token)})
	for _, want := range []string{`"name":"katashiro.read"`, `"name":"katashiro.write"`, `"properties":{"n":{"type":"integer"}}`, `"readOnlyHint":true`, "reads the page"} {
		if !strings.Contains(list.body, want) {
			t.Errorf("%s is missing in %s", want, list.body)
		}
	}
	if strings.Contains(list.body, searchTool) || strings.Contains(list.body, executeTool) {
		t.Errorf("%s", list.body)
	}
	if got := w.do(request{body: directCall("katashiro.write", `,"arguments":{"n":5}`), header: bearer(s.token)}); !strings.Contains(got.body, `"got":{"n":5}`) || !strings.Contains(got.body, `"x/y":1.50`) {
		t.Errorf("%s", got.body)
	}
	if got := w.do(request{body: directCall("katashiro.write", `,"arguments":{"n":"five"}`), header: bearer(s.token)}); refusalOf(t, got) != "bad_arguments" {
		t.Errorf("%s", got.body)
	}
	for _, unknown := range []string{"nobody.has_it", searchTool, executeTool, "x"} {
		if got := w.do(request{body: directCall(unknown, `,"arguments":{}`), header: bearer(s.token)}); !strings.Contains(got.body, "-32602") || strings.Contains(got.body, "run by") {
			t.Errorf("%s: %s", unknown, got.body)
		}
	}
	calls := 0
	for _, entry := range w.audit.all() {
		if entry.Event == capability.EventCall && entry.Session == "#alice" {
			calls++
		}
	}
	if calls == 0 {
		t.Error("a call through a proxy is in no audit")
	}
	if got := w.do(request{body: hello(`{}`), header: bearer(s.token)}); strings.Contains(got.body, executeTool) || !strings.Contains(got.body, "under its own name") {
		t.Errorf("%s", got.body)
	}
}

func TestAProxyIsOpenToTheTokensOfItsSessionAlone(t *testing.T) {
	w := newWorld(t, nil)
	alice, bob := w.session("alice", capability.Ready, echo), w.session("bob", capability.Ready, echo)
	w.proxied(alice, nil)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"its own token":      {bearer(alice.token), 200},
		"another session's":  {bearer(bob.token), 401},
		"none":               {nil, 401},
		"a dead one":         {bearer("nothing"), 401},
		"a foreign host":     {with(bearer(alice.token), "Host", "evil.example"), 403},
		"a foreign origin":   {with(bearer(alice.token), "Origin", "https://evil.example"), 403},
		"a cross-site fetch": {with(bearer(alice.token), "Sec-Fetch-Site", "cross-site"), 403},
	} {
		if got := w.do(request{body: ping, header: c.header}); got.status != c.status {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := w.do(request{method: http.MethodGet, header: bearer(alice.token)}); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", got.status)
	}
	w.tokens.revoke(alice.token)
	if got := w.do(request{body: ping, header: bearer(alice.token)}); got.status != 401 {
		t.Errorf("a revoked token: %d", got.status)
	}
}

func TestAProxyAndItsPlaceEndTogether(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	places := NewProxyPlaces(1)
	ref := w.proxied(s, places)
	kerneltest.Do(t, w.root, func(c *kernel.Ctx) {
		spec := ProxySpec(ProxyConfig{Callers: w.tokens, Desk: s.desk, Places: places, Ready: func(string) { t.Error("one more than there may be was opened") }})
		spec.Name = "another"
		another, err := c.Spawn(spec)
		if err == nil {
			go func() { <-another.Done() }()
		}
	})
	w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header: bearer(s.token)})
	ref.Stop(kernel.ErrShutdown)
	<-ref.Done()
	kerneltest.Eventually(t, "the address is closed and the place free", func() bool {
		_, err := w.try(request{body: `{}`, header: bearer(s.token)})
		return err != nil && places.taken.Load() == 0
	})
}
