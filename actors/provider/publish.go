package provider

import (
	"cmp"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/capability/redact"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
)

// publish shows where the server stands, when that is another place than the one that is shown.
func (a *actor) publish(c *kernel.Ctx) {
	state, why, cause := a.state(c)
	c.Attr("breaker", a.breaker.state(c.Now()))
	now := a.s.Tools()
	if now.State == state && now.Reason == why && now.List == a.list.list {
		return
	}
	if !a.s.show(c.Self().Gen(), &capability.Toolset{State: state, Reason: why, Cause: cause, List: a.list.list}) {
		c.Refuse("abandoned")
		return
	}
	c.Attr("state", state.String())
	c.Attr("reason", cmp.Or(why, "none"))
	if why == "" {
		c.Attr("reason", nil)
	}
	c.Attr("tools", len(a.list.list.All()))
}

// state is where callers stand with the server, and why.
func (a *actor) state(c *kernel.Ctx) (capability.State, string, error) {
	n := a.conn
	switch {
	case a.login.refused:
		return capability.LoggedOut, shown(a.login.err), a.refusal(a.login.err)
	case !a.breaker.closed():
		_, after := a.breaker.admits(c.Now())
		open := &capability.BreakerError{Server: a.s.entry.Name, RetryAfter: max(after, time.Second)}
		if a.ended == nil {
			return capability.Failed, open.Error(), open
		}
		return capability.Failed, shown(a.ended), open
	case n != nil && n.phase == ready:
		return capability.Ready, a.list.reason, nil
	case n != nil && n.phase != ending && a.list.list == nil:
		if a.ended != nil { // it is tried again: who asks is told why, and not for ever that it is about to be there
			return capability.Connecting, shown(a.ended), a.ended
		}
		return capability.Connecting, "", nil
	case a.ended != nil && (a.failures > 1 || a.list.list == nil):
		return capability.Failed, shown(a.ended), a.ended
	}
	return capability.Idle, "", nil
}

// shown is an error for people: one line, printable, bounded.
func shown(err error) string { return kernel.Escape(err.Error(), 300) }

// redacted is an error whose text holds no secret. Its kind is kept.
func (a *actor) redacted(err error) error {
	if a.conn == nil {
		return err
	}
	clean := func(s string) string { return redact.TextWith(a.conn.resolved.Secrets, s) }
	text := err.Error()
	if exit, ok := errors.AsType[*link.ExitError](err); ok {
		bare := &link.ExitError{How: exit.How, Stderr: clean(exit.Stderr)}
		if text == exit.Error() {
			return bare
		}
		return &masked{clean(text), bare}
	}
	if now := clean(text); now != text {
		return &masked{now, err}
	}
	return err
}

// masked is an error whose text was changed.
type masked struct {
	text string
	err  error
}

func (e *masked) Error() string { return e.text }
func (e *masked) Unwrap() error { return e.err }
