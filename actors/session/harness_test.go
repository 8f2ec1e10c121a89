package session

import (
	"context"
	"crypto/sha256"
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
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

// client is a connection in miniature: it says what it got in words.
type client struct {
	p      *pod
	rank   uint64
	key    string
	secret [32]byte
	ref    kernel.Ref
	far    bool // not on loopback

	mu       sync.Mutex
	said     []string // what reached the socket, in order
	answers  map[uint64]*answered
	sessions map[string]kernel.Ref
	full     bool    // the stream takes nothing
	queue    []*sent // offered and not written, while slow
	slow     bool
	gone     chan struct{}
	mcp      []string // frames of tunnels, in order
	asked    map[string]*kernel.Question
	silent   bool // does not answer mcp/connect
}

type answered struct {
	result string
	err    *jsonrpc.Error
}

type sent struct {
	frame string
	lease *kernel.Lease
	done  func(bool)
}

var _ Client = (*client)(nil)

type carried_ struct{ out tunnel.Out }
type relayed struct{}

func (p *pod) client(key string, secret byte) *client {
	c, spec := p.connection(key, secret)
	c.ref = kerneltest.Spawn(p.t, p.root, spec)
	return c
}

// connection is a client whose actor is still to be spawned.
func (p *pod) connection(key string, secret byte) (*client, kernel.Spec) {
	p.rank++
	c := &client{p: p, rank: p.rank, key: key, answers: map[uint64]*answered{}, sessions: map[string]kernel.Ref{}, gone: make(chan struct{}), asked: map[string]*kernel.Question{}}
	if secret != 0 {
		c.secret[0] = secret
	}
	probe := kerneltest.NewProbe()
	probe.On = c.receive
	spec := probe.Spec(fmt.Sprintf("conn-%d", c.rank))
	spec.Kind = "client"
	return c, spec
}

func (c *client) Rank() uint64          { return c.rank }
func (c *client) Ref() kernel.Ref       { return c.ref }
func (c *client) Key() string           { return c.key }
func (c *client) Secret() [32]byte      { return c.secret }
func (c *client) Loopback() bool        { return !c.far }
func (c *client) Gone() <-chan struct{} { return c.gone }

func (c *client) Request(by *kernel.Ctx, out tunnel.Out) (kernel.Ticket, error) {
	return by.Request(c.ref, carried_{out})
}

func (c *client) Call(by *kernel.Ctx, _, _ string, params []byte) (kernel.Ticket, error) {
	ticket, err := by.Request(c.ref, relayed{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || gone(c) {
		return ticket, tunnel.ErrGone
	}
	if c.full {
		by.Cancel(ticket)
		return kernel.Ticket{}, &kernel.Overloaded{Scope: "outbound_frames"}
	}
	c.said = append(c.said, "ask "+string(params))
	return ticket, nil
}

func (c *client) Notify(_, method string, params []byte) error {
	c.wire(method, params)
	return nil
}

func (c *client) Disconnect(_ context.Context, f tunnel.Farewell) error {
	if gone(c) {
		return tunnel.ErrGone
	}
	c.wire(f.Method, []byte(f.ConnectionID))
	return nil
}

func (c *client) Bind(string, kernel.Ref) error { return nil }
func (c *client) Unbind(string)                 {}

// receive is the connection's actor.
func (c *client) receive(ctx *kernel.Ctx, m kernel.Msg) (bool, error) {
	switch m := m.(type) {
	case carried_:
		c.wire(m.out.Method, m.out.Params)
		c.mcpAnswer(ctx.Question(), m.out)
	case relayed:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked[fmt.Sprint(len(c.asked))] = ctx.Question()
	case kernel.Cancelled:
		if !slices.Contains(slices.Collect(maps.Values(c.asked)), m.Question) {
			return true, nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, "ask withdrawn")
	}
	return true, nil
}

// mcpAnswer is a server with two tools.
func (c *client) mcpAnswer(q *kernel.Question, out tunnel.Out) {
	reply := func(result string) { q.Answer(tunnel.Reply{Result: []byte(result)}, nil) }
	switch {
	case c.silent:
	case out.Method == acp.MethodMCPConnect:
		var params struct {
			AcpID string `json:"acpId"`
		}
		_ = json.Unmarshal(out.Params, &params)
		if out.Arrived != nil {
			out.Arrived([]byte(`{"connectionId":"c-` + params.AcpID + `"}`))
		}
		reply(`{"connectionId":"c-` + params.AcpID + `"}`)
	case strings.Contains(string(out.Params), `"tools/list"`):
		reply(`{"tools":[{"name":"room.click","inputSchema":{"type":"object"}},{"name":"room.other","inputSchema":{"type":"object"}}]}`)
	case strings.Contains(string(out.Params), `"initialize"`):
		reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"r","version":"1"}}`)
	}
}

func (c *client) wire(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mcp = append(c.mcp, method+" "+string(params))
}

// frames counts the frames of tunnels with that method.
func (c *client) frames(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, f := range c.mcp {
		if strings.HasPrefix(f, method+" ") {
			n++
		}
	}
	return n
}

func (c *client) Offer(_ string, frame []byte, lease *kernel.Lease, done func(bool)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone(c) {
		return tunnel.ErrGone
	}
	if c.full {
		return &kernel.Overloaded{Scope: "outbound_frames"}
	}
	s := &sent{string(frame), lease, done}
	if c.slow {
		c.queue = append(c.queue, s)
		return nil
	}
	c.write(s)
	return nil
}

func (c *client) write(s *sent) {
	c.said = append(c.said, s.frame)
	s.lease.Release()
	if s.done != nil {
		s.done(true)
	}
}

func (c *client) Respond(_ string, req uint64, result []byte, lease *kernel.Lease, err *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lease.Release()
	if c.answers[req] != nil {
		c.p.t.Errorf("request %d was answered twice: first %v, now %s %v", req, c.answers[req], result, err)
		return
	}
	if gone(c) {
		return
	}
	c.answers[req] = &answered{string(result), err}
	c.said = append(c.said, fmt.Sprintf("answer %d", req))
}

func (c *client) Granted(id string, ref kernel.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[id] = ref
}

func (c *client) Lost(id string, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, id)
	c.dropQueue()
}

func (c *client) dropQueue() {
	for _, s := range c.queue {
		s.lease.Release()
		if s.done != nil {
			s.done(false)
		}
	}
	c.queue = nil
}

// leave ends the connection as a lost socket does.
func (c *client) leave() {
	c.mu.Lock()
	close(c.gone)
	c.dropQueue()
	c.mu.Unlock()
	c.ref.Stop(nil)
	c.p.settle()
}

// flow makes the socket take what it did not.
func (c *client) flow() {
	c.mu.Lock()
	c.full, c.slow = false, false
	for _, s := range c.queue {
		c.write(s)
	}
	c.queue = nil
	c.mu.Unlock()
	c.p.settle()
}

// heard is what the client got since it last asked.
func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.said
	c.said = nil
	return said
}

func (c *client) answer(req uint64) *answered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[req]
}

// session tells whether the client owns the session, and its actor.
func (c *client) session(id string) (kernel.Ref, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ref, ok := c.sessions[id]
	return ref, ok
}

const roomServer = `[{"type":"acp","id":"r1","name":"room"}]`

// ask sends session/new or session/resume.
func (c *client) open(servers string) uint64 { return c.openAt("/", servers) }

func (c *client) openAt(cwd, servers string) uint64 {
	c.p.t.Helper()
	c.p.req++
	params, bad := ParseNew(fmt.Appendf(nil, `{"cwd":%q,"mcpServers":%s}`, cwd, servers), nil)
	if bad != nil {
		c.p.t.Fatal(bad)
	}
	held, err := c.p.k.Account().Acquire(1000)
	if err != nil {
		c.p.t.Fatal(err)
	}
	if err := c.p.sessions.Tell(Open{Client: c, Req: c.p.req, Params: params, Held: held}); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.p.req
}

// resume sends session/resume; servers "" = no member.
func (c *client) resume(id, servers string) uint64 {
	c.p.t.Helper()
	c.p.req++
	raw := fmt.Appendf(nil, `{"sessionId":%q,"cwd":"/"`, id)
	if servers != "" {
		raw = append(raw, `,"mcpServers":`+servers...)
	}
	params, bad := ParseResume(append(raw, '}'))
	if bad != nil {
		c.p.t.Fatal(bad)
	}
	if err := c.p.sessions.Tell(Resume{Client: c, Req: c.p.req, Params: params}); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.p.req
}

// opened opens a session and returns its id.
func (c *client) opened(servers string) string {
	c.p.t.Helper()
	a := c.answer(c.open(servers))
	if a == nil || a.err != nil {
		c.p.t.Fatalf("session/new was answered %+v", a)
	}
	var result struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal([]byte(a.result), &result); err != nil || !ValidID(result.SessionID) {
		c.p.t.Fatalf("session/new: %s, %v", a.result, err)
	}
	c.heard()
	return result.SessionID
}

// tell sends a message to a session that the client owns.
func (c *client) tell(id string, m kernel.Msg) {
	c.p.t.Helper()
	ref, ok := c.session(id)
	if !ok {
		c.p.t.Fatalf("the client does not own %s", id)
	}
	if err := ref.Tell(m); err != nil {
		c.p.t.Fatal(err)
	}
}

func (c *client) prompt(id, text string) uint64 {
	c.p.t.Helper()
	req := c.promptSoon(id, text)
	c.p.settle()
	return req
}

// promptSoon does not wait for what comes of it.
func (c *client) promptSoon(id, text string) uint64 {
	c.p.t.Helper()
	c.p.req++
	c.tell(id, Prompt{Client: c, Req: c.p.req, Params: fmt.Appendf(nil, `{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text)})
	return c.p.req
}

func (c *client) close(id string) uint64 {
	c.p.t.Helper()
	c.p.req++
	c.tell(id, Close{Client: c, Req: c.p.req})
	c.p.settle()
	return c.p.req
}

// want checks one answer.
func (c *client) want(req uint64, result string) {
	c.p.t.Helper()
	a := c.answer(req)
	if a == nil || a.err != nil || a.result != result {
		c.p.t.Errorf("request %d: %+v, want %s", req, a, result)
	}
}

func (c *client) wantError(req uint64, code int, reason string) {
	c.p.t.Helper()
	a := c.answer(req)
	switch {
	case a == nil:
		c.p.t.Errorf("request %d has no answer, want error %d", req, code)
	case a.err == nil:
		c.p.t.Errorf("request %d: %s, want error %d", req, a.result, code)
	case a.err.Code != code || reason != "" && !strings.Contains(string(a.err.AppendObject(nil)), `"`+reason+`"`):
		c.p.t.Errorf("request %d: %s, want code %d with %q", req, a.err.AppendObject(nil), code, reason)
	}
}

// agents are all the agents of a pod.
type agents struct {
	pod  *pod
	info acp.AgentInfo

	mu     sync.Mutex
	mute   bool                               // do not answer session/new
	refuse func(params string) *jsonrpc.Error // of session/new
	early  int                                // updates before the answer of session/new
	start  error                              // cannot start
	slow   time.Duration                      // time that a stop takes
	all    []*fakeAgent
}

// fakeAgent is one process in miniature.
type fakeAgent struct {
	of      *agents
	n       int
	cfg     agent.Config
	owner   kernel.Ref
	ref     kernel.Ref
	credits *agent.Credits

	mu      sync.Mutex
	news    []string // params of session/new
	prompts []string
	notes   []string
	replies []string
	turn    *kernel.Question
	dead    bool
	live    func() bool // a token was alive when it was stopped
}

func (a *agents) spec(cfg agent.Config, owner kernel.Ref, name string) kernel.Spec {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &fakeAgent{of: a, n: len(a.all) + 1, cfg: cfg, owner: owner, credits: agent.NewCredits()}
	a.all = append(a.all, f)
	return kernel.Spec{Name: name, Kind: "agent", Grace: time.Hour, New: func() kernel.Behavior { return f }}
}

// last is the agent that was started last.
func (a *agents) last() *fakeAgent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) == 0 {
		a.pod.t.Fatal("no agent was started")
	}
	return a.all[len(a.all)-1]
}

func (a *agents) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}

func (f *fakeAgent) id() string { return fmt.Sprintf("inner-%d", f.n) }

// token is what stands in its environment.
func (f *fakeAgent) token() string {
	for _, v := range f.cfg.Env {
		if text, ok := strings.CutPrefix(v, tokenVariable+"="); ok {
			return text
		}
	}
	return ""
}

func (f *fakeAgent) Start(c *kernel.Ctx) error {
	f.ref = c.Self()
	if f.of.start != nil {
		return f.of.start
	}
	info := f.of.info
	return f.owner.Tell(agent.Ready{Info: &info, Credits: f.credits})
}

func (f *fakeAgent) Stop(_ *kernel.Ctx, cause error) {
	f.mu.Lock()
	f.dead = true
	f.mu.Unlock()
	var exited *agent.Exited
	if _, ok := resolves(f.of.pod.s.tokens, f.token()); ok && !asError(cause, &exited) && f.of.start == nil {
		f.of.pod.t.Errorf("agent %d is being stopped while its token works", f.n)
	}
	if f.of.slow > 0 {
		time.Sleep(f.of.slow)
	}
}

type inAgent func(c *kernel.Ctx) error

func (f *fakeAgent) Receive(c *kernel.Ctx, m kernel.Msg) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m := m.(type) {
	case agent.Request:
		m.Held.Release()
		if m.Method == acp.MethodSessionNew {
			f.news = append(f.news, string(m.Params))
			f.new(c, m)
			return nil
		}
		f.prompts = append(f.prompts, string(m.Params))
		f.turn = c.Question()
	case agent.Notify:
		f.notes = append(f.notes, m.Method+" "+string(m.Params))
	case agent.Respond:
		if m.Err != nil {
			f.replies = append(f.replies, fmt.Sprintf("%s error %d", m.ID.Raw(), m.Err.Code))
		} else {
			f.replies = append(f.replies, fmt.Sprintf("%s %s", m.ID.Raw(), m.Result))
		}
	case inAgent:
		return m(c)
	}
	return nil
}

func (f *fakeAgent) new(c *kernel.Ctx, m agent.Request) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for i := range f.of.early {
		f.tellUpdate(fmt.Sprintf("early %d", i))
	}
	switch {
	case f.of.mute:
		f.turn = c.Question()
		return
	case f.of.refuse != nil:
		if bad := f.of.refuse(string(m.Params)); bad != nil {
			c.Question().Fail(bad)
			return
		}
	}
	c.Question().Answer(agent.Reply{Result: fmt.Appendf(nil, `{ "sessionId":%q, "modes":{"currentModeId":"x"},"extra":1.50,"_meta":{"theirs":true}}`, f.id())}, nil)
}

// do runs in a turn of the agent.
func (f *fakeAgent) do(do inAgent) {
	f.of.pod.t.Helper()
	if err := f.ref.Tell(do); err != nil {
		f.of.pod.t.Fatal(err)
	}
	f.of.pod.settle()
}

func (f *fakeAgent) tellUpdate(text string) {
	params := fmt.Appendf(nil, `{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}`, f.id(), text)
	f.tellRaw(params)
}

func (f *fakeAgent) tellRaw(params []byte) {
	credit, err := f.credits.Take(canceled(), len(params))
	if err != nil {
		credit = nil // more than a pump would pass on
	}
	held, _ := f.owner.Account().Acquire(int64(len(params)))
	_ = f.owner.Tell(agent.Update{Params: params, Held: held, Credit: credit})
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (f *fakeAgent) say(texts ...string) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error {
		for _, text := range texts {
			f.tellUpdate(text)
		}
		return nil
	})
}

// end answers the prompt.
func (f *fakeAgent) end(result string) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error {
		f.turn.Answer(agent.Reply{Result: []byte(result)}, nil)
		return nil
	})
}

func (f *fakeAgent) fail(bad *jsonrpc.Error) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error {
		f.turn.Fail(bad)
		return nil
	})
}

func (f *fakeAgent) exit(code int) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error { return &agent.Exited{Code: code, Stderr: "secret of the agent"} })
}

// ask sends a request of the agent.
func (f *fakeAgent) ask(id int64, method, params string) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error {
		return f.owner.Tell(agent.Called{ID: jsonrpc.IntID(id), Method: method, Params: []byte(params)})
	})
}

func (f *fakeAgent) askPermission(id int64) {
	f.of.pod.t.Helper()
	f.ask(id, acp.MethodPermission, fmt.Sprintf(`{"sessionId":%q,"toolCall":{"toolCallId":"t"},"options":[{"optionId":"all","name":"A","kind":"allow_always"},{"optionId":"once","name":"A","kind":"allow_once"},{"optionId":"no","name":"R","kind":"reject_once"}]}`, f.id()))
}

func (f *fakeAgent) got(of *[]string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := *of
	*of = nil
	return list
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

// note sends a notification of the agent that is no update.
func (f *fakeAgent) note(method, params string) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error { return f.owner.Tell(agent.Noted{Method: method, Params: []byte(params)}) })
}

func (f *fakeAgent) see(of *[]string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(*of)
}

func (f *fakeAgent) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

func (f *fakeAgent) lastReplies() []string { return f.see(&f.replies) }

// is sets how the agents behave from now on.
func (a *agents) is(set func(a *agents)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	set(a)
}
