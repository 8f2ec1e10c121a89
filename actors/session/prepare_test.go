package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/runtime/kernel"
)

// delivered is a setting that lets the agents of a pod learn of their tools in that way.
func delivered(mode delivery.Mode, profile, state string) func(*Config) {
	return func(c *Config) {
		c.Delivery = delivery.New(delivery.Config{Mode: mode, Profile: profile, Workdir: c.Workdir, State: state, FacadeURL: c.FacadeURL,
			Bridge: delivery.BridgeCommand{Program: "/opt/acpod", Socket: "/run/acpod.sock"}})
	}
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if os.IsNotExist(err) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// facadeOf is what the answer of session/new says of the facade.
func facadeOf(result string) string {
	_, after, _ := strings.Cut(result, `"facade":`)
	text, _, _ := strings.Cut(after, "}")
	return text + "}"
}

func TestWhatTheAgentReadsIsThereBeforeItStarts(t *testing.T) {
	state := t.TempDir()
	inPod(t, delivered(delivery.File, "cursor", state), func(p *pod) {
		c := p.client("", 0)
		got := c.answer(c.open("[]"))
		if got == nil || got.err != nil || facadeOf(got.result) != `{"state":"ready","delivery":"file"}` {
			t.Fatalf("%+v", got)
		}
		a := p.agents.last()
		if _, ok := resolves(p.s.tokens, a.token()); !ok {
			t.Error("the agent has no token that works")
		}
		if news := a.see(&a.news)[0]; !strings.Contains(news, `"mcpServers":[]`) {
			t.Errorf("the agent got %s", news)
		}
		text := readFile(t, p.s.cfg.Workdir, ".cursor/mcp.json")
		if !strings.Contains(text, `"openab"`) || strings.Contains(text, a.token()) || strings.Contains(readFile(t, state, "delivery.json"), a.token()) {
			t.Errorf("the file is %s", text)
		}
		for id := range c.sessions {
			node, _ := p.node("test/sessions/" + c.sessions[id].Name())
			if node.Attrs["facade"] != "ready" || node.Attrs["delivery"] != "file" {
				t.Errorf("the tree shows %v", node.Attrs)
			}
			c.close(id)
		}
		p.atRest()
	})
}

// What cannot be set up, or would not be the only way, leaves a session without tools and without a token; it opens, and says why.
func TestADeliveryThatCannotBeSetUpLeavesASessionWithoutTools(t *testing.T) {
	for name, row := range map[string]struct {
		mode       delivery.Mode
		file, text string
		want       []string
	}{
		"the file is in the way":     {delivery.File, ".cursor", "x", []string{`"state":"failed"`, "cannot be written", `"delivery":"file"`}},
		"it cannot be read":          {delivery.File, ".cursor/mcp.json", "{", []string{`"state":"failed"`, "left as it is", `"delivery":"file"`}},
		"there is a way around":      {delivery.ACP, ".cursor/mcp.json", `{"mcpServers":{"openab-browser":{}}}`, []string{`"state":"bypass"`, "agent.allow_direct", `"delivery":"acp"`}},
		"there is no proxy":          {delivery.Proxy, "x", "", []string{`"state":"failed"`, "own address", `"delivery":"proxy"`}},
		"… a way around any of them": {delivery.File, ".kiro/agents/a.json", `{"mcpServers":{"openab-browser":{}}}`, []string{`"state":"bypass"`, `"delivery":"file"`}},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(c *Config) {
				full := filepath.Join(c.Workdir, row.file)
				if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(row.text), 0o600); err != nil {
					t.Fatal(err)
				}
				delivered(row.mode, "cursor", "")(c)
			}, func(p *pod) {
				c := p.client("", 0)
				got := c.answer(c.open(roomServer))
				if got == nil || got.err != nil {
					t.Fatalf("%+v", got)
				}
				for _, text := range row.want {
					if !strings.Contains(facadeOf(got.result), text) {
						t.Errorf("%q is not in %s", text, facadeOf(got.result))
					}
				}
				a := p.agents.last()
				if a.token() != "" || p.s.Tokens().Live() != 0 {
					t.Errorf("the agent has the token %q, %d live", a.token(), p.s.Tokens().Live())
				}
				if news := a.see(&a.news)[0]; !strings.Contains(news, `"mcpServers":[]`) {
					t.Errorf("the agent got %s", news)
				}
				if text := readFile(t, p.s.cfg.Workdir, row.file); text != row.text {
					t.Errorf("%s is %s", row.file, text)
				}
			})
		})
	}
}

func TestAnAgentThatTakesNoHTTPGetsTheBridge(t *testing.T) {
	inPod(t, delivered(delivery.ACP, "auto", ""), func(p *pod) {
		p.agents.is(func(a *agents) { a.info.MCP.HTTP = false })
		c := p.client("", 0)
		got := c.answer(c.open("[]"))
		if got == nil || got.err != nil || facadeOf(got.result) != `{"state":"ready","delivery":"acp"}` {
			t.Fatalf("%+v", got)
		}
		if a := p.agents.last(); !strings.Contains(a.see(&a.news)[0], `"mcpServers":[{"name":"openab","command":"/opt/acpod","args":["bridge"]`) || a.token() == "" {
			t.Errorf("the agent got %s", a.see(&a.news)[0])
		}
	})
}

// A folder that does not answer holds nobody up for longer than it says, and nothing that comes too late counts.
func TestAPreparationThatHangsIsGivenUp(t *testing.T) {
	state := t.TempDir()
	lock, err := os.Create(filepath.Join(state, "delivery.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	inPod(t, func(c *Config) { delivered(delivery.File, "cursor", state)(c); c.MaxSessions = 3 }, func(p *pod) {
		p.after(21 * time.Second) // the supervisor's own look at the record
		c := p.client("", 0)
		first, second, third := c.open("[]"), c.open("[]"), c.open("[]")
		p.after(DefaultPrepareTimeout - time.Second)
		if got := c.answer(first); got == nil || !strings.Contains(facadeOf(got.result), "is locked by another pod") {
			t.Errorf("%+v", got)
		}
		if c.answer(third) != nil {
			t.Error("it did not wait")
		}
		p.after(2 * time.Second)
		for _, req := range []uint64{second, third} {
			if got := c.answer(req); got == nil || !strings.Contains(facadeOf(got.result), "could not be prepared in time") {
				t.Errorf("%+v", got)
			}
		}
		p.after(time.Minute)
		if n := p.agents.count(); n != 3 || p.s.Tokens().Live() != 0 {
			t.Errorf("%d agents, %d tokens", n, p.s.Tokens().Live())
		}
		c.leave()
	})
}

// A session that ends while its agent is being prepared starts none.
func TestASessionThatEndsWhileItsAgentIsPreparedStartsNone(t *testing.T) {
	state := t.TempDir()
	lock, err := os.Create(filepath.Join(state, "delivery.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	inPod(t, delivered(delivery.File, "cursor", state), func(p *pod) {
		p.after(21 * time.Second)
		c := p.client("", 0)
		req := c.open("[]")
		p.after(time.Second)
		if c.answer(req) != nil {
			t.Fatal("it did not wait")
		}
		c.leave()
		p.after(time.Minute)
		if p.agents.count() != 0 {
			t.Error("an agent was started")
		}
		p.atRest()
	})
}

// A preparation that was given up says nothing about the one after it.
func TestTheOutcomeOfAnEarlierPreparationDoesNotCount(t *testing.T) {
	state := t.TempDir()
	lock, err := os.Create(filepath.Join(state, "delivery.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	inPod(t, delivered(delivery.File, "cursor", state), func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		p.agents.last().exit(1)
		p.settle()
		c.promptSoon(id, "again")
		p.after(time.Second)
		ref, ok := c.session(id)
		if !ok {
			t.Fatal("no session")
		}
		_ = ref.Tell(prepared{7, delivery.Prepared{Mode: delivery.File, State: delivery.Ready}})
		p.settle()
		if n := p.agents.count(); n != 1 || p.s.Tokens().Live() != 0 {
			t.Errorf("%d agents, %d tokens", n, p.s.Tokens().Live())
		}
		if node, _ := p.node(ref.Path()); node.Attrs["agent"] != "preparing" {
			t.Errorf("the tree shows %v", node.Attrs)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
		p.after(time.Second)
		if n := p.agents.count(); n != 2 || p.s.Tokens().Live() != 1 {
			t.Errorf("%d agents, %d tokens", n, p.s.Tokens().Live())
		}
		c.close(id)
		p.atRest()
	})
}

// proxyActor is a session's own address in miniature.
type proxyActor struct {
	of   ProxyOf
	n    int
	mute bool
}

func (a *proxyActor) Start(*kernel.Ctx) error {
	if a.mute {
		return fmt.Errorf("no port")
	}
	a.of.Ready(fmt.Sprintf("http://127.0.0.1:%d/mcp", 4000+a.n))
	return nil
}

func (a *proxyActor) Receive(*kernel.Ctx, kernel.Msg) error { return nil }

// The address comes before the entry that names it, and both end with the session.
func TestAProxyAndItsEntryEndWithTheSession(t *testing.T) {
	n, mute := 0, false
	inPod(t, func(c *Config) {
		delivered(delivery.Proxy, "cursor", t.TempDir())(c)
		c.Proxy = func(of ProxyOf) kernel.Spec {
			n++
			a := &proxyActor{of: of, n: n, mute: mute}
			return kernel.Spec{Kind: "proxy", New: func() kernel.Behavior { return a }}
		}
	}, func(p *pod) {
		entry := func() string { return readFile(t, p.s.cfg.Workdir, ".cursor/mcp.json") }
		c := p.client("", 0)
		id := c.opened("[]")
		if got := facadeOf(c.answer(1).result); got != `{"state":"ready","delivery":"proxy"}` {
			t.Errorf("the facade is %s", got)
		}
		if text := entry(); !strings.Contains(text, "http://127.0.0.1:4001/mcp") || strings.Contains(text, p.agents.last().token()) {
			t.Errorf("the entry is %s", text)
		}
		p.agents.last().exit(1)
		p.settle()
		c.prompt(id, "again")
		if text := entry(); n != 1 || p.agents.count() != 2 || !strings.Contains(text, "http://127.0.0.1:4001/mcp") {
			t.Errorf("%d proxies, %d agents, the entry is %s", n, p.agents.count(), text)
		}
		proxy, ok := c.session(id)
		if !ok {
			t.Fatal("no session")
		}
		if _, ok := p.node(proxy.Path() + "/proxy"); !ok {
			t.Error("the proxy is not in the tree")
		}
		other := c.opened("[]")
		if text := entry(); !strings.Contains(text, "http://127.0.0.1:4002/mcp") {
			t.Errorf("the entry is %s", text)
		}
		c.close(id)
		p.settle()
		if text := entry(); !strings.Contains(text, "http://127.0.0.1:4002/mcp") {
			t.Errorf("the entry of the other session is %s", text)
		}
		c.close(other)
		p.settle()
		if text := entry(); text != "absent" {
			t.Errorf("the entry is %s", text)
		}
		mute = true
		got := c.answer(c.open("[]"))
		if got == nil || got.err != nil || !strings.Contains(facadeOf(got.result), `"state":"failed","reason":"the session's own address could not be opened"`) {
			t.Errorf("%+v", got)
		}
		for id := range c.sessions {
			c.close(id)
		}
		p.atRest()
	})
}
