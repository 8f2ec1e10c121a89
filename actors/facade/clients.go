package facade

import (
	"slices"
	"sync"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// introduction is what the MCP client behind one token has said of itself, in the versions that shake hands. Immutable.
type introduction struct {
	elicits elicits
	level   string // of logging/setLevel, "" = it did not ask for log records

	desk kernel.Ref
	paid *kernel.Lease
}

// clientBytes is what one of them costs its session.
const clientBytes = 512

// clientsOfDesk is how many clients of one session are remembered: an agent that was started again has another token,
// and the last ones count.
const clientsOfDesk = 4

// clients is what is known of each token's client. The actor `questions` alone writes it; requests read it.
type clients struct{ known sync.Map } // [32]byte → *introduction

// of is never nil: nothing is known of most clients, and of anonymous ones never anything.
func (c *clients) of(caller capability.Caller) *introduction {
	if !caller.Anonymous() {
		if known, ok := c.known.Load(caller.Token); ok {
			return known.(*introduction)
		}
	}
	return &introduction{}
}

func (c *clients) forget(token [32]byte) {
	if known, ok := c.known.LoadAndDelete(token); ok {
		known.(*introduction).paid.Release()
	}
}

// said is what a client says of itself, asked of the actor `questions` by the request that brings it, so that the next
// request finds it. change makes the new client out of what was known before.
type said struct {
	caller capability.Caller
	change func(before introduction) introduction
}

// said takes down what a client says. What says nothing is not kept.
func (a *questions) said(c *kernel.Ctx, m said) {
	before := a.clients.of(m.caller)
	now := m.change(introduction{elicits: before.elicits, level: before.level})
	defer answerTo(c, true)
	a.clients.forget(m.caller.Token)
	if now.elicits == 0 && now.level == "" || m.caller.Account == nil {
		return
	}
	paid, err := m.caller.Account.Acquire(clientBytes)
	if err != nil {
		c.Refuse("client_unknown")
		return
	}
	now.desk, now.paid = m.caller.Desk, paid
	a.watch(c, m.caller.Desk)
	tokens := append(slices.DeleteFunc(a.desks[m.caller.Desk], func(t [32]byte) bool { return t == m.caller.Token }), m.caller.Token)
	for len(tokens) > clientsOfDesk {
		a.clients.forget(tokens[0])
		tokens = tokens[1:]
	}
	a.desks[m.caller.Desk] = tokens
	a.clients.known.Store(m.caller.Token, &now)
}

// tell has something said of a caller's client, and waits until it is known.
func (x *exchange) tell(change func(introduction) introduction) {
	p, err := x.front.questions.Current().Ask(said{caller: x.caller, change: change})
	if err != nil {
		return // then it is not known, and its calls go on without
	}
	defer p.Drop()
	_, lease, _ := p.Wait(x.ctx)
	lease.Release()
}

// introduced takes down what an initialize says, before it is answered.
func (x *exchange) introduced(params []byte) {
	object, _ := jsonrpc.ParseObject(params)
	raw, _ := object.Get("capabilities")
	capabilities, _ := jsonrpc.ParseObject(raw)
	can := elicitsOf(capabilities)
	if before := x.front.clients.of(x.caller); can != 0 || !before.desk.IsZero() {
		x.tell(func(introduction) introduction { return introduction{elicits: can} }) // another client begins
	}
}

// setLevel answers logging/setLevel. Who has no token is not known again, and so has no level.
func (x *exchange) setLevel(params []byte) {
	object, err := jsonrpc.ParseObject(params)
	level := ""
	if err == nil && object.Unique("level") == nil {
		level, _ = object.Text("level")
	}
	if !slices.Contains(levels, level) {
		bad := jsonrpc.BadParams("level must be one of debug, info, notice, warning, error, critical, alert, emergency")
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "level", err: bad})
		return
	}
	x.tell(func(before introduction) introduction { before.level = level; return before })
	_ = x.out.answer(resultAnswer(x.id, []byte("{}"), x.stateless), 200)
}
