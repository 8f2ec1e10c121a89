package session

import (
	"crypto/sha256"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// asError is errors.As for one target.
func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// onUpdate passes one session/update on: to the byte, save for the session's id.
func (x *session) onUpdate(m agent.Update) {
	x.touch()
	o, err := jsonrpc.ParseObject(m.Params)
	if err != nil || x.foreign(m.From, o) {
		x.c.Refuse("agent_update")
		m.Held.Release()
		m.Credit.Done()
		return
	}
	raw, _ := o.Get("update")
	update, _ := jsonrpc.ParseObject(raw) // one without members is passed on as well
	kind, _ := update.Text("sessionUpdate")
	if x.recalled(m, o, kind) {
		return
	}
	if m.From == x.conv.ref {
		x.settings.heed(x.c, update, kind)
	}
	w := x.tools.note(update, kind, x.c.Now())
	it := newUpdate(x.translated(acp.MethodSessionUpdate, o), m.Held, m.Credit, w)
	it.past = m.From == x.conv.ref && x.conv.replay != nil
	if m.From == x.conv.ref && x.conv.phase != alive && x.conv.replay == nil {
		about, _ := o.Text("sessionId") // foreign has read it
		x.out.wait(it, about)
		return
	}
	x.out.push(it)
}

// translated is the notification with our session id in place of the agent's.
func (x *session) translated(method string, params jsonrpc.Object) []byte {
	b := make([]byte, 0, len(params.Raw())+len(method)+len(x.id)+64)
	b = jsonrpc.AppendNotification(b, method, nil)
	b = append(b[:len(b)-1], `,"params":`...)
	b = params.Apply(b, jsonrpc.Edit{Name: "sessionId", Value: jsonrpc.AppendString(nil, x.id)})
	return append(b, '}')
}

// methodFrame is a notification of the pod's own about a session; rest follows the id, with its comma and the bracket.
func methodFrame(method, id string, rest []byte) []byte {
	params := append(jsonrpc.AppendString([]byte(`{"sessionId":`), id), rest...)
	return jsonrpc.AppendNotification(nil, method, params)
}

// notify says something of the pod's own in the session's stream, to the client that is there.
func (x *session) notify(method string, rest []byte) {
	x.push(methodFrame(method, x.id, rest), fleeting)
}

// push says one frame of the pod's own, which the session pays for.
func (x *session) push(frame []byte, w weight) {
	lease, err := x.c.Account().Acquire(int64(cap(frame)) + itemBytes)
	if err != nil {
		x.c.Refuse("session_bytes")
		return
	}
	x.out.push(newFrame(frame, lease, w))
}

// onSkipped is an update of the agent that was never read whole.
func (x *session) onSkipped(m agent.Skipped) {
	x.touch()
	x.c.Refuse(m.Scope)
	if x.silenced(m.From) || m.From == x.conv.ref && x.conv.quiet { // the latter was said before
		return
	}
	x.out.skip(gap{updates: 1, bytes: m.Bytes, scope: m.Scope})
}

// onNoted is any other notification of the agent: it passes like an update, unless it would speak in the pod's place.
func (x *session) onNoted(m agent.Noted) {
	x.touch()
	drop := func() {
		m.Held.Release()
		m.Credit.Done()
	}
	if m.Method == acp.MethodCancelRequest {
		if id, ok := acp.ParseCancelRequest(m.Params); ok && m.From == x.conv.ref {
			x.withdrawAsk(id)
		}
		drop()
		return
	}
	o, _ := jsonrpc.ParseObject(m.Params) // params that are none name no session
	about, err := o.Text("sessionId")
	switch {
	case acp.Reserved(m.Method), err != nil, x.silenced(m.From), about != "" && x.foreign(m.From, o),
		m.Method == acp.MethodElicitationDone && !x.caps.serves.URL:
		x.c.Refuse("agent_notification")
		drop()
		return
	}
	frame := jsonrpc.AppendNotification(nil, m.Method, m.Params)
	if about != "" {
		frame = x.translated(m.Method, o)
	}
	it := newUpdate(frame, m.Held, m.Credit, plain)
	it.words.known = true // it is no text that goes on
	if m.From == x.conv.ref && x.conv.phase != alive {
		x.out.wait(it, about)
		return
	}
	x.out.push(it)
}

// maxToolCalls bounds how many open tool calls of an agent are remembered.
const maxToolCalls = 256

// toolCalls remembers what keeps a silent turn alive: calls in the facade, and those that the agent reports as open.
type toolCalls struct {
	inFacade bool
	since    map[[sha256.Size]byte]time.Time // by the hash of the id as the agent writes it: ids are of any length
}

func (t *toolCalls) facade(open bool) { t.inFacade = open }
func (t *toolCalls) clear()           { t.since = nil }

// open tells whether a tool call is open; one that the agent reported counts for at most limit.
func (t *toolCalls) open(now time.Time, limit time.Duration) bool {
	if t.inFacade {
		return true
	}
	for _, since := range t.since {
		if now.Sub(since) < limit {
			return true
		}
	}
	return false
}

// note reads what an update says of a tool call, and how much it weighs when updates have to be dropped.
func (t *toolCalls) note(update jsonrpc.Object, kind string, now time.Time) weight {
	if kind != acp.UpdateToolCall && kind != acp.UpdateToolCallUpdate {
		return plain
	}
	raw, named := update.Get("toolCallId")
	id := sha256.Sum256(raw)
	status, _ := update.Text("status")
	switch status {
	case "completed", "failed":
		delete(t.since, id)
		return terminal
	case "pending", "in_progress":
	default:
		if kind != acp.UpdateToolCall { // an update without a status changes none
			return plain
		}
	}
	if _, known := t.since[id]; !known && len(t.since) < maxToolCalls && named {
		if t.since == nil {
			t.since = make(map[[sha256.Size]byte]time.Time)
		}
		t.since[id] = now
	}
	return plain
}
