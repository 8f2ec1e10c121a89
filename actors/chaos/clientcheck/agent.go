package clientcheck

import (
	"fmt"
	"strings"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// unknownRequest is one that no client knows.
const unknownRequest = "_client-check/there_is_none"

// askAgent sends what an agent may send, and what the pod says of its own.
func (r *run) askAgent() {
	if r.sock == nil {
		return
	}
	if q := r.ask(unknownRequest, []byte("{}")); r.answered(rowUnknown, q) {
		r.sheet.put(judgeUnknown(rowUnknown, outer(*q.reply)))
	} else {
		r.sheet.put(r.unanswered(rowUnknown, "a request"))
	}
	for _, ask := range []func(){r.askUndeclared, r.sendUpdates, r.sendNotes, r.askPermission} {
		if r.sock != nil {
			ask()
		}
	}
}

// outer is an answer that no generation puts anything around.
func outer(f jsonrpc.Frame) reply {
	if f.Error != nil {
		return reply{err: jsonrpc.ParseError(f.Error)}
	}
	return reply{result: f.Result}
}

// askUndeclared asks for what the client said it has not. What it has is not asked: that would read or write its files.
func (r *run) askUndeclared() {
	caps := acp.ParseClientCapabilities(r.first.in.Capabilities)
	session := jsonrpc.AppendString(nil, r.session)
	asked := 0
	for _, one := range []struct {
		declared       bool
		method, params string
	}{
		{caps.ReadTextFile, acp.MethodReadTextFile, `{"sessionId":%s,"path":"/client-check/there/is/none"}`},
		{caps.WriteTextFile, acp.MethodWriteTextFile, `{"sessionId":%s,"path":"/client-check/there/is/none","content":""}`},
		{caps.Terminal, acp.MethodTerminalCreate, `{"sessionId":%s,"command":"true"}`},
		{caps.Form, acp.MethodElicitation, `{"sessionId":%s,"mode":"form","message":"client-check","requestedSchema":{"type":"object","properties":{}}}`},
	} {
		if one.declared || r.sock == nil {
			continue
		}
		asked++
		q := r.ask(one.method, fmt.Appendf(nil, one.params, session))
		if !r.answered(rowUndeclared, q) {
			r.sheet.put(r.unanswered(rowUndeclared, one.method))
			return
		}
		if m := judgeUnknown(rowUndeclared, outer(*q.reply)); m.status != tally.Pass {
			m.came = one.method + ": " + m.came
			r.sheet.put(m)
			return
		}
	}
	if asked == 0 {
		r.sheet.put(skipped(rowUndeclared, "it declares everything"))
		return
	}
	r.sheet.put(passed(rowUndeclared, "%d methods", asked))
}

// updates are one of each kind that ACP knows, and some that nobody knows.
var updates = []string{
	`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"client-check"}}`,
	`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"client-check"}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"client-check \u4f60\ud83d\udc69\u200d\ud83d\udcbb"},"_meta":{"client-check":1}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","name":"client-check","uri":"about:blank"}}`,
	`{"sessionUpdate":"tool_call","toolCallId":"client-check-1","title":"client-check","kind":"other","status":"pending","content":[],"locations":[]}`,
	`{"sessionUpdate":"tool_call_update","toolCallId":"client-check-1","status":"completed"}`,
	`{"sessionUpdate":"tool_call_update","toolCallId":"client-check-of-no-call","status":"completed"}`,
	`{"sessionUpdate":"plan","entries":[{"content":"client-check","priority":"low","status":"pending"}]}`,
	`{"sessionUpdate":"available_commands_update","availableCommands":[]}`,
	`{"sessionUpdate":"current_mode_update","currentModeId":"client-check"}`,
	`{"sessionUpdate":"usage_update","used":1,"size":2}`,
	`{"sessionUpdate":"client-check/there_is_none","a":{"b":[null]}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"client-check/there_is_none"}}`,
}

func (r *run) sendUpdates() {
	r.silently(rowUpdates, func() {
		for _, one := range updates {
			r.update(r.session, one)
		}
	})
}

// sendNotes sends the pod's own notifications, and one that no pod sends yet.
func (r *run) sendNotes() {
	session := jsonrpc.AppendString(nil, r.session)
	r.silently(rowPodNotes, func() {
		r.notify(acp.MethodKeepalive, nil)
		r.notify(acp.MethodServers, r.states())
		r.notify(acp.MethodTurnEnded, fmt.Appendf(nil, `{"sessionId":%s,"stopReason":"end_turn"}`, session))
		r.notify("_acpod/client-check/there_is_none", []byte(`{"a":1}`))
	})
}

// askPermission asks as an agent does in the middle of a turn, or again of a client that resumed.
func (r *run) askPermission() {
	const options = `[{"optionId":"client-check-allow","name":"Allow","kind":"allow_once"},{"optionId":"client-check-reject","name":"Reject","kind":"reject_once"}]`
	r.waiting("an answer to a permission request")
	q := r.ask(acp.MethodPermission, fmt.Appendf(nil, `{"sessionId":%s,"toolCall":{"toolCallId":"client-check-2","title":"acpod-chaos client-check asks; any choice will do","kind":"other","status":"pending"},"options":%s}`,
		jsonrpc.AppendString(nil, r.session), options))
	r.until(r.cfg.Step, func() bool { return r.sock == nil || q.reply != nil })
	switch {
	case q.reply != nil:
		r.sheet.put(judgeOutcome([]string{"client-check-allow", "client-check-reject"}, outer(*q.reply)))
	case r.sock == nil:
		r.sheet.put(r.unanswered(rowPermission, "a permission request"))
	default:
		note := acp.CancelRequest(q.id)
		r.notify(note.Method, note.Params)
		r.sheet.put(skipped(rowPermission, "nobody chose within %v: --step", r.cfg.Step))
	}
}

// padding is a text of that many bytes.
func padding(n int) string { return strings.Repeat("client-check ", n/13+1)[:n] }
