package agent

import (
	"bytes"
	"encoding/json/v2"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// bench is an agent with an owner that takes what it says, in order.
type bench struct {
	t     *testing.T
	k     *kernel.Kernel
	owner kernel.Ref
	probe *kerneltest.Probe
	agent kernel.Ref
	log   *kerneltest.Log
}

// launch starts an agent of that role. At the test's end all is stopped and must be at rest.
func launch(t *testing.T, role string, change func(*Config)) *bench {
	t.Helper()
	return launchIn(t, kernel.Options{}, 0, role, change)
}

// launchIn is launch with an account of limit bytes for owner and agent; 0 = the root's.
func launchIn(t *testing.T, o kernel.Options, limit int64, role string, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, log: &kerneltest.Log{}}
	b.k = kerneltest.Start(t, o)
	root, _ := kerneltest.Root(t, b.k)
	b.probe = kerneltest.NewProbe()
	spec := b.probe.Spec("owner")
	if limit > 0 {
		spec.Scope, spec.Limit = "session_bytes", limit
	}
	b.owner = kerneltest.Spawn(t, root, spec)
	cfg := Config{
		Command: roleOf(role), Env: []string{"GORACE=" + os.Getenv("GORACE"), "GIVEN=yes"}, Dir: t.TempDir(),
		StopGrace: 5 * time.Second, Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	b.agent = kerneltest.Spawn(t, b.owner, Spec(cfg, b.owner, "agent"))
	t.Cleanup(func() {
		b.agent.Stop(nil)
		b.ended()
		b.rest()
	})
	return b
}

// ended waits for the end of the agent and gives its cause.
func (b *bench) ended() error {
	b.t.Helper()
	select {
	case <-b.agent.Done():
	case <-time.After(2 * kerneltest.Deadline):
		b.t.Fatal("the agent does not end")
	}
	return b.agent.Cause()
}

// rest takes all that is left, in order.
func (b *bench) rest() []kernel.Msg {
	b.t.Helper()
	kerneltest.Do(b.t, b.owner, func(*kernel.Ctx) {}) // behind all that was told
	var all []kernel.Msg
	for b.probe.Pending() > 0 {
		all = append(all, b.next())
	}
	return all
}

// raw takes the next message; its lease and credit are the caller's.
func (b *bench) raw() kernel.Msg {
	b.t.Helper()
	return b.probe.Next(b.t).Msg
}

// next takes the next message and gives back what it holds.
func (b *bench) next() kernel.Msg {
	b.t.Helper()
	m := b.raw()
	giveBack(m)
	return m
}

func giveBack(m kernel.Msg) {
	switch m := m.(type) {
	case Update:
		m.Held.Release()
		m.Credit.Done()
	case Called:
		m.Held.Release()
	case Noted:
		m.Held.Release()
	case kernel.Answer:
		m.Lease.Release()
	}
}

// ready waits until the handshake is done; notifications before it are dropped.
func (b *bench) ready() Ready {
	b.t.Helper()
	for {
		switch m := b.next().(type) {
		case Ready:
			return m
		case Noted:
		default:
			b.t.Fatalf("%T instead of Ready: %+v; log:\n%s", m, m, b.log)
		}
	}
}

// ask puts a request to the agent.
func (b *bench) ask(method, params string) kernel.Ticket {
	b.t.Helper()
	var ticket kernel.Ticket
	var err error
	var raw []byte
	if params != "" {
		raw = []byte(params)
	}
	kerneltest.Do(b.t, b.owner, func(c *kernel.Ctx) { ticket, err = c.Request(b.agent, Request{Method: method, Params: raw}) })
	if err != nil {
		b.t.Fatalf("ask %s: %v", method, err)
	}
	return ticket
}

func (b *bench) tell(m kernel.Msg) {
	b.t.Helper()
	if err := b.agent.Tell(m); err != nil {
		b.t.Fatalf("tell %T: %v", m, err)
	}
}

// answer takes messages until the answer of a ticket comes, and gives what came before it.
func (b *bench) answer(ticket kernel.Ticket) (before []kernel.Msg, answer kernel.Answer) {
	b.t.Helper()
	for {
		m := b.next()
		if a, ok := m.(kernel.Answer); ok && a.Ticket == ticket {
			return before, a
		}
		before = append(before, m)
	}
}

// do asks and expects a result.
func (b *bench) do(method, params string) (before []kernel.Msg, result string) {
	b.t.Helper()
	before, a := b.answer(b.ask(method, params))
	if a.Err != nil {
		b.t.Fatalf("%s: %v; log:\n%s", method, a.Err, b.log)
	}
	return before, string(a.Msg.(Reply).Result)
}

// texts are those of the updates among the messages.
func (b *bench) texts(all []kernel.Msg) []string {
	b.t.Helper()
	var texts []string
	for _, m := range all {
		u, ok := m.(Update)
		if !ok {
			continue
		}
		var p struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(u.Params, &p); err != nil {
			b.t.Fatal(err)
		}
		texts = append(texts, p.Text)
	}
	return texts
}

// refused is what the agent's node counts under a scope.
func (b *bench) refused(scope string) int64 {
	b.t.Helper()
	return b.node().Refused[scope]
}

func (b *bench) node() kernel.Node {
	b.t.Helper()
	owner := b.k.Tree().Children[0]
	if len(owner.Children) == 0 {
		return kernel.Node{}
	}
	return owner.Children[0]
}

// runs tells whether a process lives; a zombie does not.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	state := stat[bytes.LastIndexByte(stat, ')')+2]
	return state != 'Z' && state != 'X'
}
