package clientcheck

import (
	"fmt"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// What nobody has.
const (
	nobody   = "client-check-there-is-none"
	noMethod = "client-check/there_is_none"
)

// probe asks one server what else a pod may ask.
func (r *run) probe(t *tunnel) {
	for _, ask := range []func(*tunnel){r.call, r.callNoTool, r.callWrong, r.askNoMethod, r.tellNoNote, r.addMembers, r.cancel, r.connectNobody, r.messageNobody, r.connectAgain} {
		if r.sock != nil {
			ask(t)
		}
	}
}

// call calls the one tool that may be called.
func (r *run) call(t *tunnel) {
	tool := t.catalog.call
	if tool == nil {
		if t.catalog.named != "" {
			r.sheet.put(skipped(rowCall, "%s, which --tool names, is not listed", jsonrpc.Show(t.catalog.named)))
		}
		return
	}
	arguments, sure := r.arguments(tool)
	token := jsonrpc.StringID("client-check-progress")
	r.watch.tokens[token.Key()] = true
	answer, ok := r.mcp(rowCall, t, t.target, mcp.MethodToolsCall, mcp.CallParams(tool.Name, arguments, token))
	switch {
	case !ok:
	case answer.err != nil && !sure:
		r.sheet.put(skipped(rowCall, "%s refuses arguments that were invented: give some with --arguments", jsonrpc.Show(tool.Name)))
	case answer.err != nil:
		r.sheet.put(failed(rowCall, answer.show(), "a tool that cannot do it says so in a result with isError"))
	default:
		r.sheet.put(passed(rowCall, "%s", jsonrpc.Show(tool.Name)), judgeContent(answer.result))
	}
}

func (r *run) arguments(tool *mcp.Tool) (arguments []byte, sure bool) {
	if r.cfg.Arguments != nil {
		return r.cfg.Arguments, true
	}
	return sample(tool.InputSchema)
}

// refusal wants a request to end in an error.
func (r *run) refusal(row string, t *tunnel, target, method string, params []byte, why string) {
	answer, ok := r.mcp(row, t, target, method, params)
	switch {
	case !ok:
	case !answer.refused():
		r.sheet.put(failed(row, answer.show(), "%s", why))
	default:
		r.sheet.put(passed(row, "%s", answer.show()))
	}
}

func (r *run) callNoTool(t *tunnel) {
	r.refusal(rowNoTool, t, t.target, mcp.MethodToolsCall, mcp.CallParams(nobody, []byte("{}"), jsonrpc.ID{}), "there is no such tool")
}

func (r *run) callWrong(t *tunnel) {
	if t.catalog.call == nil {
		return
	}
	arguments, some := wrong(t.catalog.call.InputSchema)
	if !some {
		r.sheet.put(skipped(rowWrong, "the schema of %s forbids nothing that is plain to see", jsonrpc.Show(t.catalog.call.Name)))
		return
	}
	r.refusal(rowWrong, t, t.target, mcp.MethodToolsCall, mcp.CallParams(t.catalog.call.Name, arguments, jsonrpc.ID{}),
		fmt.Sprintf("its schema does not allow %s", arguments))
}

func (r *run) askNoMethod(t *tunnel) {
	if answer, ok := r.mcp(rowNoMethod, t, t.target, noMethod, []byte("{}")); ok {
		r.sheet.put(judgeUnknown(rowNoMethod, answer))
	}
}

// tellNoNote sends a notification that nobody knows, and looks whether the client goes on. In generation C a pod sends none.
func (r *run) tellNoNote(t *tunnel) {
	if !t.connects() {
		return
	}
	r.silently(rowNoNote, func() { r.tell(t, "notifications/client-check/there_is_none", []byte(`{"a":[1]}`)) })
}

// silently does what must not be answered, and looks whether the client goes on.
func (r *run) silently(row string, do func()) {
	r.watch.silent = row
	do()
	well := r.well(row)
	r.rest(r.cfg.quiet)
	r.watch.silent = ""
	if well {
		r.sheet.put(passed(row, ""))
	}
}

// well asks something that was answered before, so that what was sent earlier has been dealt with.
func (r *run) well(row string) bool {
	for _, t := range r.tunnels {
		if t.usable {
			return r.listed(row, t, t.target)
		}
	}
	if !r.sheet.is(rowUnknown, tally.Pass) {
		return r.sock != nil // there is nothing that it answers
	}
	if r.answered(row, r.ask(unknownRequest, []byte("{}"))) {
		return true
	}
	r.sheet.put(r.unanswered(row, "what came behind it"))
	return false
}

// addMembers asks for tools with members that nobody knows, where a later revision may have some.
func (r *run) addMembers(t *tunnel) {
	params := []byte(`{"_meta":{"client-check":{"a":[null]}},"x-client-check":true}`)
	if t.codec.Stateless() {
		params, _ = mcp.ModernParams(params, build)
	}
	t.requests++
	method, outer := t.codec.Message(t.target, fmt.Sprintf("client-check-%d", t.requests), mcp.MethodToolsList, params)
	o, err := jsonrpc.ParseObject(outer)
	if err != nil {
		return // it is our own
	}
	outer = o.Set("_meta", []byte(`{"client-check":1}`))
	a := asking{t, r.ask(method, outer)}
	if !r.answered(rowMembers, a.q) {
		r.sheet.put(r.unanswered(rowMembers, "tools/list with unknown members"))
		return
	}
	one, _ := t.same(rowMembers, a.reply())
	r.sheet.put(one)
}

// cancel takes a request back at once, and one that there is not.
func (r *run) cancel(t *tunnel) {
	method, params := mcp.MethodToolsList, []byte(nil)
	if tool := t.catalog.call; tool != nil {
		arguments, _ := r.arguments(tool)
		method, params = mcp.MethodToolsCall, mcp.CallParams(tool.Name, arguments, jsonrpc.ID{})
	}
	a := r.inner(t, t.target, method, params)
	a.q.twice = rowCancel
	for _, id := range []jsonrpc.ID{a.q.id, jsonrpc.IntID(1 << 40)} {
		for _, note := range t.codec.CancelFrames(id) {
			r.notify(note.Method, note.Params)
		}
	}
	r.watch.silent = rowCancel
	well := r.listed(rowCancel, t, t.target)
	r.rest(r.cfg.quiet)
	r.watch.silent = ""
	switch {
	case !well:
	case a.q.reply == nil:
		r.sheet.put(passed(rowCancel, "not answered so far"))
	default:
		r.sheet.put(passed(rowCancel, "%s", a.reply().show()))
	}
}

// connectNobody asks for a connection to a server that was not declared.
func (r *run) connectNobody(t *tunnel) {
	if !t.connects() {
		return
	}
	stranger := t.declared
	stranger.ID = nobody
	if t.declared.Form == acp.FormURL {
		stranger.ID = "acp:" + nobody
	}
	method, params, _ := t.codec.Connect(stranger)
	q := r.ask(method, params)
	switch {
	case !r.answered(rowNoServer, q):
		r.sheet.put(r.unanswered(rowNoServer, "connect"))
	case q.reply.Error == nil:
		r.sheet.put(failed(rowNoServer, show(*q.reply), "nobody declared it"))
	default:
		r.sheet.put(passed(rowNoServer, "%s", show(*q.reply)))
	}
}

// messageNobody asks for the tools of a connection, or server, that there is not.
func (r *run) messageNobody(t *tunnel) {
	r.refusal(rowNoTarget, t, nobody, mcp.MethodToolsList, nil, "there is no such connection")
}

// connectAgain opens another connection to the same server, as another session that declares it would.
func (r *run) connectAgain(t *tunnel) {
	method, params, ok := t.codec.Connect(t.declared)
	if !ok {
		return
	}
	q := r.ask(method, params)
	if !r.answered(rowDistinct, q) {
		r.sheet.put(r.unanswered(rowDistinct, "a second connect"))
		return
	}
	if q.reply.Error != nil { // which it may
		r.sheet.put(skipped(rowDistinct, "it takes one connection to a server at a time: %s", show(*q.reply)))
		return
	}
	id, err := t.codec.ParseConnected(q.reply.Result)
	switch {
	case err != nil:
		r.sheet.put(failed(rowDistinct, show(*q.reply), "%s", err))
		return
	case r.watch.targets[id]:
		r.sheet.put(failed(rowDistinct, "connection id "+jsonrpc.Show(id), "the open connection has it"))
		return
	}
	r.watch.targets[id] = true
	r.sheet.put(passed(rowDistinct, ""))
	if answer, ok := r.mcp(rowHandshake, t, id, mcp.MethodInitialize, mcp.InitializeParams(build)); ok {
		r.sheet.put(judgeHandshake(answer))
		if _, err := mcp.ParseInitialized(answer.result); answer.err == nil && err == nil {
			r.silently(rowInitialized, func() {
				outer, wrapped := t.codec.Message(id, "", mcp.MethodInitialized, nil)
				r.notify(outer, wrapped)
			})
			t.second = id
		}
	}
}
