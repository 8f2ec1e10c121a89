package provider

import (
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// request answers what the server asks. Only one question is ever put to somebody: the others are answered here and now.
func (a *actor) request(c *kernel.Ctx, m received) {
	id := m.message.ID
	switch m.message.Method {
	case mcp.MethodPing:
		a.reply(c, jsonrpc.AppendResult(nil, id, []byte("{}")))
	case mcp.MethodRoots:
		a.reply(c, jsonrpc.AppendResult(nil, id, a.s.roots))
	case mcp.MethodElicitation:
		a.elicit(c, m)
	case mcp.MethodSampling:
		c.Refuse("sampling")
		a.reply(c, jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "this client samples nothing, and has not said that it would"}))
	default:
		c.Refuse("server_request")
		a.reply(c, jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "this client serves no such method"}))
	}
}

// reply answers the server.
func (a *actor) reply(c *kernel.Ctx, frame []byte) {
	if a.send(c, link.Message{Head: frame}) != nil {
		c.Refuse("reply")
	}
}

// asked are the questions of a server that lie with the user behind a call.
type asked struct {
	last uint64
	open []question
}

type question struct {
	number uint64
	id     jsonrpc.ID
	call   *call
}

// elicited is what came of a question.
type elicited struct {
	number uint64
	result []byte
	failed *jsonrpc.Error
}

// Size is that of the answer ([kernel.Sized]).
func (m elicited) Size() int { return len(m.result) }

var (
	declined  = []byte(`{"action":"decline"}`)
	cancelled = []byte(`{"action":"cancel"}`)
)

// elicit puts a server's question to the user behind the one call that it can be about, or declines it.
func (a *actor) elicit(c *kernel.Ctx, m received) {
	k := a.answerable(c, m)
	if k == nil || len(a.asked.open) >= maxAsked || !askable(m.message.Params) {
		c.Refuse("elicitation")
		a.reply(c, jsonrpc.AppendResult(nil, m.message.ID, declined))
		return
	}
	a.asked.last++
	number, self := a.asked.last, c.Self()
	a.asked.open = append(a.asked.open, question{number, m.message.ID, k})
	a.extend(c, k)
	k.Elicit(capability.Elicitation{Provider: a.s.entry.Name, Params: slices.Clone(m.message.Params), Answer: func(result []byte, failed *jsonrpc.Error) {
		err := self.Tell(elicited{number, result, failed})
		if _, full := errors.AsType[*kernel.Overloaded](err); full { // then at least the server does not wait
			_ = self.Signal(elicited{number, declined, nil})
		}
	}})
}

// answerable is the call whose caller may be asked: the one on whose stream the question came, else the last of the one session that has
// calls in flight; nil when it could be another's, nobody's, or nobody can be asked.
func (a *actor) answerable(c *kernel.Ctx, m received) *call {
	if k, named := a.named(m.about); named {
		if k == nil || k.Owner == anonymous || k.Elicit == nil {
			return nil
		}
		return k
	}
	owner, one := a.calls.owner(c.Now())
	if !one || owner == anonymous {
		return nil
	}
	var last *call
	for _, k := range slices.Backward(a.calls.sent()) {
		switch {
		case k.Elicit == nil:
		case !slices.ContainsFunc(a.asked.open, func(q question) bool { return q.call == k }):
			return k // rather than one that waits for its user already
		case last == nil:
			last = k
		}
	}
	return last
}

// anonymous is the owner of calls that no session has made.
const anonymous = "-"

// named is the call that a message names by the stream on which it came.
func (a *actor) named(about jsonrpc.ID) (k *call, named bool) {
	if about.IsZero() {
		return nil, false
	}
	id, _ := about.Int()
	return a.calls.byID[id], true
}

// askable tells a question that may be put: a form, or an address that is https and names a host.
func askable(params []byte) bool {
	o, err := jsonrpc.ParseObject(params)
	if err != nil || o.Unique("mode", "url", "message") != nil {
		return false
	}
	mode, err := o.Text("mode")
	switch {
	case err != nil:
		return false
	case mode == "" || mode == "form":
		return !o.Has("url")
	case mode != "url":
		return false
	}
	address, _ := o.Text("url")
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil
}

// elicited hands an answer to the server, when its call is still there.
func (a *actor) elicited(c *kernel.Ctx, m elicited) {
	at := slices.IndexFunc(a.asked.open, func(q question) bool { return q.number == m.number })
	if at < 0 {
		return
	}
	q := a.asked.open[at]
	a.asked.open = slices.Delete(a.asked.open, at, at+1)
	a.use(c)
	a.extend(c, q.call)
	switch {
	case m.failed != nil:
		a.reply(c, jsonrpc.AppendError(nil, q.id, m.failed))
	case !jsonrpc.IsObject(m.result):
		a.reply(c, jsonrpc.AppendResult(nil, q.id, declined))
	default:
		a.reply(c, jsonrpc.AppendResult(nil, q.id, m.result))
	}
}

// over ends the questions of a call that has ended.
func (q *asked) over(a *actor, c *kernel.Ctx, k *call) {
	if len(q.open) == 0 {
		return
	}
	q.open = slices.DeleteFunc(q.open, func(x question) bool {
		if x.call != k {
			return false
		}
		if a.conn != nil && a.conn.phase != ending {
			a.reply(c, jsonrpc.AppendResult(nil, x.id, cancelled))
		}
		return true
	})
}

// setLevelParams are the params of logging/setLevel.
func setLevelParams(level string) []byte {
	return append(jsonrpc.AppendString([]byte(`{"level":`), level), '}')
}

// notified takes what the server says without asking.
func (a *actor) notified(c *kernel.Ctx, m received) {
	switch m.message.Method {
	case mcp.MethodListChanged:
		a.changed(c)
	case mcp.MethodProgress:
		a.progress(c, m.message.Params)
	case mcp.MethodMessage:
		a.logged(c, m)
	case mcp.MethodCancelled: // of a question of its own
		o, err := jsonrpc.ParseObject(m.message.Params)
		if raw, ok := o.Get("requestId"); err == nil && ok {
			a.withdrawn(c, raw)
		}
	default:
		c.Refuse("server_notification")
	}
}

// withdrawn forgets a question that the server has taken back.
func (a *actor) withdrawn(c *kernel.Ctx, raw []byte) {
	if id, ok := jsonrpc.ParseID(raw); ok {
		at := slices.IndexFunc(a.asked.open, func(q question) bool { return q.id.Key() == id.Key() })
		if at < 0 {
			return
		}
		k := a.asked.open[at].call
		a.asked.open = slices.Delete(a.asked.open, at, at+1)
		a.extend(c, k)
	}
}

// logged is a log record of the server: its payload goes to the caller that it must be about, and nowhere else.
func (a *actor) logged(c *kernel.Ctx, m received) {
	params := m.message.Params
	k, named := a.named(m.about)
	if !named && len(a.calls.byID) == 1 {
		if _, one := a.calls.owner(c.Now()); one {
			k = a.calls.sent()[0]
		}
	}
	if k != nil && k.Log != nil {
		k.Log(params)
	}
	if !a.logs.AllowN(c.Now(), 1) {
		c.Refuse("log_records")
		return
	}
	o, _ := jsonrpc.ParseObject(params)
	level, _ := o.Text("level")
	if !slices.Contains(levels, level) {
		level = "other"
	}
	c.Log().Info("a server logs", "server", a.s.entry.Name, "kind", mcp.MethodMessage, "level", level, "bytes", strconv.Itoa(len(params)))
}

// levels are those that a server may give a log record.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
