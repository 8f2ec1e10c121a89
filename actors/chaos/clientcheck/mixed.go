package clientcheck

import (
	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// rounds are how often each question stands among those that are asked at once.
const rounds = 3

// mixed asks everything at once that was answered well one by one, on all connections: each answer has to be that of its request.
func (r *run) mixed() {
	type expectation struct {
		a     asking
		judge func(reply) mark
	}
	var all []expectation
	var questions []*question
	add := func(a asking, judge func(reply) mark) {
		all = append(all, expectation{a, judge})
		questions = append(questions, a.q)
	}
	for range rounds {
		for _, t := range r.tunnels {
			if !t.usable || r.sock == nil {
				continue
			}
			for _, target := range []string{t.target, t.second} {
				if target == "" {
					continue
				}
				add(r.inner(t, target, mcp.MethodToolsList, nil), func(got reply) mark { one, _ := t.same(rowMixed, got); return one })
				if r.sheet.is(rowNoMethod, tally.Pass) {
					add(r.inner(t, target, noMethod, []byte("{}")), func(got reply) mark { return judgeUnknown(rowMixed, got) })
				}
				if r.sheet.is(rowNoTool, tally.Pass) {
					add(r.inner(t, target, mcp.MethodToolsCall, mcp.CallParams(nobody, []byte("{}"), jsonrpc.ID{})), func(got reply) mark {
						if !got.refused() {
							return failed(rowMixed, got.show(), "it is no answer to a call of a tool that there is not")
						}
						return passed(rowMixed, "")
					})
				}
			}
		}
	}
	if len(all) == 0 {
		return
	}
	if !r.answered(rowMixed, questions...) {
		r.sheet.put(r.unanswered(rowMixed, "one of several requests at once"))
		return
	}
	defer func() {
		for _, q := range questions {
			r.watch.judged(q)
		}
	}()
	for _, one := range all {
		if m := one.judge(one.a.reply()); m.status != tally.Pass {
			r.sheet.put(m)
			return
		}
	}
	r.sheet.put(passed(rowMixed, "%d at once", len(all)))
}

// endConnections takes connections back: the second one first, and then the first one has to be well.
func (r *run) endConnections() {
	done := map[string]bool{}
	for _, t := range r.tunnels {
		if !t.usable || done[t.codec.Name()] || r.sock == nil {
			continue
		}
		done[t.codec.Name()] = true
		target := t.second
		if target == "" {
			target = t.target
		}
		if !r.disconnect(t, target) {
			continue
		}
		other := target != t.target
		if !other {
			t.usable = false
		}
		r.refusal(rowEnded, t, target, mcp.MethodToolsList, nil, "it was disconnected")
		if other && r.listed(rowOther, t, t.target) {
			r.sheet.put(passed(rowOther, ""))
		}
	}
}

// disconnect ends a connection in the way of its generation.
func (r *run) disconnect(t *tunnel, target string) bool {
	method, params, request, ok := t.codec.Disconnect(target)
	if !ok {
		return false
	}
	if !request {
		r.silently(rowDisconnect, func() { r.notify(method, params) })
		return r.sock != nil
	}
	q := r.ask(method, params)
	switch {
	case !r.answered(rowDisconnect, q):
		r.sheet.put(r.unanswered(rowDisconnect, "disconnect"))
		return false
	case q.reply.Error != nil:
		r.sheet.put(failed(rowDisconnect, show(*q.reply), "the connection was open"))
		return false
	}
	r.sheet.put(passed(rowDisconnect, "%s", show(*q.reply)))
	return true
}
