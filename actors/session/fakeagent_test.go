package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// agents are all the agents of a pod.
type agents struct {
	pod  *pod
	info acp.AgentInfo

	mu     sync.Mutex
	mute   bool                               // do not answer session/new
	refuse func(params string) *jsonrpc.Error // of session/new
	early  []string                           // updates before the answer of session/new
	start  error                              // cannot start
	past   []string                           // what it says of the past when it is asked to bring a session back
	hold   bool                               // do not answer that
	back   func(method string) error          // the answer to it
	alike  bool                               // all call their session the same
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
	noise   atomic.Int64

	mu      sync.Mutex
	inner   string   // what it was asked to bring back
	news    []string // params of session/new
	backs   []string // what it was asked to bring back, with the method
	prompts []string
	notes   []string
	replies []string
	turn    *kernel.Question
	others  []*other
	wires   int64
	dead    bool
}

// other is a request that is neither session/new nor a prompt.
type other struct {
	method, params string
	question       *kernel.Question
	wire           *agent.Wire
	withdrawn      bool
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

func (f *fakeAgent) id() string {
	if f.inner != "" {
		return f.inner
	}
	if f.of.alike {
		return "inner"
	}
	return fmt.Sprintf("inner-%d", f.n)
}

// token is what stands in its environment.
func (f *fakeAgent) token() string {
	for _, v := range f.cfg.Env {
		if text, ok := strings.CutPrefix(v, delivery.TokenVariable+"="); ok {
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
	return f.owner.Tell(agent.Ready{From: f.ref, Info: &info, Credits: f.credits, Noise: f.noise.Load})
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
		switch m.Method {
		case acp.MethodSessionResume, acp.MethodSessionLoad, acp.MethodSessionFork, acp.MethodSessionDelete:
			f.back(c, m)
			return nil
		case acp.MethodSessionNew:
			f.news = append(f.news, string(m.Params))
			f.new(c, m)
			return nil
		}
		if m.Wire != nil {
			f.wires++
			m.Wire.Got(f.wires)
		}
		if m.Method != acp.MethodSessionPrompt {
			f.others = append(f.others, &other{method: m.Method, params: string(m.Params), question: c.Question(), wire: m.Wire})
			return nil
		}
		f.prompts = append(f.prompts, string(m.Params))
		f.turn = c.Question()
	case agent.Withdraw:
		for _, o := range f.others {
			o.withdrawn = o.withdrawn || o.wire == m.Wire
		}
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

// back is the agent's session/resume, load, fork and delete.
func (f *fakeAgent) back(c *kernel.Ctx, m agent.Request) {
	f.backs = append(f.backs, m.Method+" "+string(m.Params))
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.inner, _ = acp.ParseSessionID(m.Params)
	for _, text := range f.of.past {
		f.tellUpdate(text)
	}
	if f.of.hold {
		f.turn = c.Question()
		return
	}
	if f.of.back != nil {
		if err := f.of.back(m.Method); err != nil {
			c.Question().Fail(err)
			return
		}
	}
	result := `{}`
	if m.Method == acp.MethodSessionFork {
		f.inner = fmt.Sprintf("%s-copy-%d", f.inner, f.n)
		result = fmt.Sprintf(`{"sessionId":%q}`, f.inner)
	}
	c.Question().Answer(agent.Reply{Result: []byte(result)}, nil)
}

func (f *fakeAgent) new(c *kernel.Ctx, m agent.Request) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for _, text := range f.of.early {
		f.tellUpdate(text)
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
	c.Question().Answer(agent.Reply{Result: fmt.Appendf(nil, `{ "sessionId":%q, "modes":{"currentModeId":"x","availableModes":[{"id":"x","name":"X"},{"id":"y","name":"Y"}]},"configOptions":[{"id":"way","category":"mode","name":"W","type":"select","currentValue":"x","options":[]},{"id":"model","name":"M","type":"select","currentValue":"m","options":[]}],"extra":1.50,"_meta":{"theirs":true}}`, f.id())}, nil)
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
	_ = f.owner.Tell(agent.Update{From: f.ref, Params: params, Held: held, Credit: credit})
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

// other is the n-th request beside session/new and prompts.
func (f *fakeAgent) other(n int) *other {
	f.of.pod.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.others) <= n {
		f.of.pod.t.Fatalf("agent %d was asked %d other things, want more than %d", f.n, len(f.others), n)
	}
	return f.others[n]
}

// reply answers the n-th of those.
func (f *fakeAgent) reply(n int, result string, bad *jsonrpc.Error) {
	f.of.pod.t.Helper()
	o := f.other(n)
	f.do(func(*kernel.Ctx) error {
		if bad != nil {
			o.question.Fail(bad)
		} else {
			o.question.Answer(agent.Reply{Result: []byte(result)}, nil)
		}
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
		return f.owner.Tell(agent.Called{From: f.ref, ID: jsonrpc.IntID(id), Method: method, Params: []byte(params)})
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

// note sends a notification of the agent that is no update.
func (f *fakeAgent) note(method, params string) {
	f.of.pod.t.Helper()
	f.do(func(*kernel.Ctx) error {
		return f.owner.Tell(agent.Noted{From: f.ref, Method: method, Params: []byte(params)})
	})
}
