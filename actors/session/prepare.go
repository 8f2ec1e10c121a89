package session

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// Before an agent starts, what it reads is prepared, off the turn: leftovers are removed, a former delivery's entries are cleaned up, and those
// of this one are written. Only then a token is minted.

// delivering is how a session's agents learn of its tools.
type delivering struct {
	attempt uint64        // of the preparation under way
	mode    delivery.Mode // of the last agent; "" = none has been prepared yet
	note    string        // what is to be said although it is set up
	proxy   kernel.Ref
	url     string // of the proxy; "" = it is not open yet, or there is none
}

// Messages of a preparation.
type (
	prepared struct {
		attempt uint64
		delivery.Prepared
	}
	prepareOverdue struct{ attempt uint64 }
	proxyReady     struct{ url string }
)

// DefaultPrepareTimeout is how long an agent waits at most for what it reads to be prepared: longer than another pod may hold the record, and
// shorter than a client's patience with a folder that hangs.
const DefaultPrepareTimeout = 30 * time.Second

var errPrepareTimeout = errors.New("the agent's configuration could not be prepared in time: its folder, or the state folder, does not answer")

// prepareAgent begins it, for a process that has its place.
func (x *session) prepareAgent() {
	d := x.s.cfg.Delivery
	if d == nil {
		x.spawnAgent(delivery.Prepared{Mode: delivery.ACP, State: x.s.facadeState()})
		return
	}
	x.conv = conversation{phase: preparing, info: x.conv.info}
	x.delivering.attempt++
	x.conv.timeout = x.c.After(DefaultPrepareTimeout, prepareOverdue{x.delivering.attempt})
	if d.Mode() == delivery.Proxy && x.s.cfg.FacadeURL != "" && x.delivering.url == "" && x.openProxy() {
		return // its address comes first
	}
	x.prepareNow()
}

func (s *Sessions) facadeState() delivery.State {
	if s.cfg.FacadeURL == "" {
		return delivery.Off
	}
	return delivery.Ready
}

func (x *session) prepareNow() {
	d, learned, attempt := x.s.cfg.Delivery, x.s.learned, x.delivering.attempt
	ask := delivery.Ask{Cwd: x.folders.Cwd, URL: x.delivering.url}
	x.c.Go("prepare", func(ctx context.Context) kernel.Msg {
		info, _ := learned.Now()
		if d.Mode() == delivery.Auto { // it depends on what the agent takes
			info = learned.Wait(ctx)
		}
		ask.Agent = deliveryAgent(info)
		return prepared{attempt, d.Prepare(ctx, ask)}
	})
}

// deliveryAgent is what a delivery has to know of an agent; nil for one that nothing is known of.
func deliveryAgent(info *acp.AgentInfo) *delivery.Agent {
	if info == nil {
		return nil
	}
	return &delivery.Agent{Name: info.Name, HTTP: info.MCP.HTTP}
}

func (x *session) onPrepared(m prepared) {
	if x.conv.phase != preparing || m.attempt != x.delivering.attempt {
		return
	}
	x.conv.timeout()
	x.spawnAgent(m.Prepared)
}

// onPrepareOverdue starts the agent without tools.
func (x *session) onPrepareOverdue(m prepareOverdue) {
	x.onPrepared(prepared{m.attempt, delivery.Prepared{Mode: x.s.cfg.Delivery.Mode(), State: delivery.Failed, Reason: errPrepareTimeout.Error()}})
}

// openProxy spawns the session's own address. It tells whether that is on its way.
func (x *session) openProxy() bool {
	if x.s.cfg.Proxy == nil {
		return false
	}
	if !x.delivering.proxy.IsZero() {
		return true
	}
	self := x.c.Self()
	spec := x.s.cfg.Proxy(ProxyOf{Desk: x.desk, View: x.view, Ready: func(url string) { _ = self.Signal(proxyReady{url}) }})
	spec.Name, spec.Restart = "proxy", kernel.Temporary
	ref, err := x.c.Spawn(spec)
	if err != nil {
		x.c.Log().Warn("no proxy", "session", acp.SessionTag(x.id), "err", err.Error())
		return false
	}
	x.delivering.proxy = ref
	return true
}

func (x *session) onProxyReady(m proxyReady) {
	x.delivering.url = m.url
	d := x.s.cfg.Delivery
	x.c.Own("entry", func(ctx context.Context, _ error) { d.Withdraw(ctx, m.url) })
	if x.conv.phase == preparing {
		x.prepareNow()
	}
}

// proxyExited is the end of the session's own address, before or behind its opening: the next agent gets another.
func (x *session) proxyExited(m kernel.Exited) {
	waits := x.conv.phase == preparing && x.delivering.url == ""
	x.delivering.proxy, x.delivering.url = kernel.Ref{}, ""
	x.c.Log().Warn("the session's proxy ended", "session", acp.SessionTag(x.id), "err", m.Cause.Error())
	switch {
	case waits:
		x.prepareNow() // which says that there is none
	case x.facade.state == facadeReady:
		x.facade = facadeReport{state: facadeFailed, reason: "the session's own address is gone: the next agent gets another"}
		x.serversChanged()
	}
}

// agentServers is the mcpServers array for the agent's session/new and its like, while there is a token; nil = none.
func (x *session) agentServers() []byte {
	if x.token.text == "" {
		return nil
	}
	list, _ := x.s.deliverer.Servers(x.delivering.mode, *deliveryAgent(x.conv.info), x.token.text)
	return list
}

// reachable tells why an agent cannot have tools in the way that was prepared; nil = it can, as far as it is known.
func (x *session) reachable(info *acp.AgentInfo) error {
	if info == nil || x.s.cfg.FacadeURL == "" {
		return nil
	}
	_, err := x.s.deliverer.Servers(x.delivering.mode, *deliveryAgent(info), "")
	return err
}

// facadeNow is what a client is told of the facade.
func (x *session) facadeNow() facadeReport {
	f := x.facade
	f.delivery = string(x.delivering.mode)
	if f.delivery == "" {
		f.delivery = string(x.s.deliverer.Mode())
	}
	return f
}

// showAgent shows in the tree how far the agent is, and how it reaches the facade, when that has changed.
func (x *session) showAgent() {
	if x.conv.phase != x.phase {
		x.phase = x.conv.phase
		x.c.Attr("agent", x.phase)
	}
	now := x.facadeNow()
	if now == x.shown {
		return
	}
	x.shown = now
	x.c.Attr("facade", now.state)
	x.c.Attr("delivery", now.delivery)
	if now.reason == "" {
		x.c.Attr("facade_reason", nil)
	} else {
		x.c.Attr("facade_reason", now.reason)
	}
}
