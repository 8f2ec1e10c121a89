package session

import (
	"context"
	"crypto/sha256"
	"encoding/json/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(scriptedAgent) != "" {
		runScriptedAgent(os.Stdin, os.Stdout)
		return
	}
	goleak.VerifyTestMain(m)
}

// pod is the sessions with everything around them in fakes, in a bubble with its own time.
type pod struct {
	t        *testing.T
	k        *kernel.Kernel
	root     kernel.Ref
	s        *Sessions
	sessions kernel.Ref
	agents   *agents
	records  *records
	stopped  bool // the sessions' supervisor was stopped
	rank     uint64
	req      uint64
	rest     func() // lets everybody do what can be done without time passing
}

// inPod runs a test in a bubble.
func inPod(t *testing.T, set func(*Config), f func(p *pod)) {
	t.Helper()
	workdir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{t: t, k: kerneltest.Start(t, kernel.Options{}), rest: synctest.Wait}
		p.root, _ = kerneltest.Root(t, p.k)
		cfg := Config{Workdir: workdir, FacadeURL: "http://127.0.0.1:1/mcp", Desk: capability.DeskConfig{Grants: capability.NewGrants([]capability.Grant{{Name: "room", Tools: []string{"room.click"}}})}}
		p.records = newRecords()
		cfg.Store = p.records
		if set != nil {
			set(&cfg)
		}
		p.s = New(cfg)
		p.agents = &agents{info: acp.AgentInfo{MCP: acp.MCPCapabilities{HTTP: true}}, pod: p}
		p.s.agentSpec = p.agents.spec
		p.s.learnAgent = func(context.Context, agent.Config) (*agent.Info, error) { info := p.agents.info; return &info, nil }
		p.sessions = kerneltest.Spawn(t, p.root, p.s.Spec())
		p.settle()
		f(p)
	})
}

func (p *pod) settle() { p.rest() }

// after lets time pass.
func (p *pod) after(d time.Duration) {
	time.Sleep(d)
	p.rest()
}

// atRest checks the contract's rest below `sessions`.
func (p *pod) atRest() {
	p.t.Helper()
	p.settle()
	tree := p.k.Tree()
	var walk func(n kernel.Node)
	walk = func(n kernel.Node) {
		if n.Account.Used != 0 {
			p.t.Errorf("%s: %d bytes are charged at rest", n.Path, n.Account.Used)
		}
		if n.Kind != "client" && len(n.Owes) > 0 {
			p.t.Errorf("%s owes %v at rest", n.Path, n.Owes)
		}
		if n.Kind == Kind {
			p.t.Errorf("%s is there at rest", n.Path)
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(tree)
	if n := p.s.Tokens().Live(); n != 0 {
		p.t.Errorf("%d tokens live at rest", n)
	}
	for _, c := range p.s.gate.desk.Counts() {
		if c.Used != 0 || c.Admitted != c.Released {
			p.t.Errorf("slots at rest: %+v", c)
		}
	}
	if a, n := p.s.Agents(), p.s.Turns(); a != 0 || n != 0 {
		p.t.Errorf("%d agents, %d turns at rest", a, n)
	}
}

// node finds an actor in the tree.
func (p *pod) node(path string) (kernel.Node, bool) {
	var find func(n kernel.Node) (kernel.Node, bool)
	find = func(n kernel.Node) (kernel.Node, bool) {
		if n.Path == path {
			return n, true
		}
		for _, child := range n.Children {
			if got, ok := find(child); ok {
				return got, true
			}
		}
		return kernel.Node{}, false
	}
	return find(p.k.Tree())
}

// texts is the words of the updates in what a client heard, answers as "answer N".
func texts(said []string) []string {
	var list []string
	for _, frame := range said {
		if rest, ok := strings.CutPrefix(frame, `{"jsonrpc":"2.0","method":"session/update"`); ok {
			_, after, _ := strings.Cut(rest, `"text":"`)
			if text, _, ok := strings.Cut(after, `"`); ok && after != "" {
				if _, inner, ok := strings.Cut(after, `"text":"`); ok {
					text, _, _ = strings.Cut(inner, `"`)
				}
				list = append(list, text)
				continue
			}
			list = append(list, "update")
			continue
		}
		if strings.HasPrefix(frame, "answer ") || strings.HasPrefix(frame, "ask") {
			list = append(list, frame)
			continue
		}
		var n struct {
			Method string `json:"method"`
		}
		_ = json.Unmarshal([]byte(frame), &n)
		if n.Method != acp.MethodServers {
			list = append(list, n.Method)
		}
	}
	return list
}

func sum(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// startError is an agent that exits with that code at start, or with 0 one that never answers.
func startError(code int) error {
	e := &agent.StartError{Command: "x", Timeout: time.Second}
	if code != 0 {
		e.Err = &agent.Exited{Code: code, Stderr: "secret of the agent"}
	}
	return e
}

func replyFor(result string) agent.Reply { return agent.Reply{Result: []byte(result)} }

func agentExit(code int) error { return &agent.Exited{Code: code} }

func canceledAfter(d time.Duration) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(d, cancel)
	return ctx
}
