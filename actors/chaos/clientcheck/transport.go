package clientcheck

import (
	"crypto/rand"
	"fmt"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// askTransport asks what lies below the messages.
func (r *run) askTransport() {
	for _, ask := range []func(){r.ping, r.sendFragments, r.sendLarge} {
		if r.sock != nil {
			ask()
		}
	}
}

// ping wants a pong with what the ping had.
func (r *run) ping() {
	payload := "client-check " + rand.Text()
	clear(r.pongs)
	_ = r.sock.raw(r.cfg.Patience, wire.PingFrame, true, []byte(payload))
	r.until(r.cfg.patience(rowPing), func() bool { return r.sock == nil || r.pongs[payload] })
	switch {
	case r.pongs[payload]:
		r.sheet.put(passed(rowPing, ""))
	case r.sock == nil:
		r.sheet.put(r.unanswered(rowPing, "a ping"))
	case len(r.pongs) > 0:
		r.sheet.put(failed(rowPing, "a pong with other bytes", "a pong has the bytes of its ping"))
	default:
		r.sheet.put(failed(rowPing, "", "no pong within %v; a pod closes such a client after its pong_timeout", r.cfg.patience(rowPing)))
	}
}

// probeFrame is a request that the client has answered before, with params of that size; nil when there is none.
func (r *run) probeFrame(size int) (frame []byte, q *question, judge func(row string) mark) {
	for _, t := range r.tunnels {
		if !t.usable || !r.sheet.is(rowNoTool, tally.Pass) {
			continue
		}
		params := mcp.CallParams(nobody, fmt.Appendf(nil, `{"padding":"%s"}`, padding(size)), jsonrpc.ID{})
		if t.codec.Stateless() {
			params, _ = mcp.ModernParams(params, build)
		}
		t.requests++
		method, wrapped := t.codec.Message(t.target, fmt.Sprintf("client-check-%d", t.requests), mcp.MethodToolsCall, params)
		q = r.watch.ask(method)
		return jsonrpc.AppendRequest(nil, q.id, method, wrapped), q, func(row string) mark {
			if got := (asking{t, q}).reply(); !got.refused() {
				return failed(row, got.show(), "it is no answer to a call of a tool that there is not")
			}
			return passed(row, "")
		}
	}
	if !r.sheet.is(rowUnknown, tally.Pass) {
		return nil, nil, nil
	}
	q = r.watch.ask(unknownRequest)
	params := fmt.Appendf(nil, `{"padding":"%s"}`, padding(size))
	return jsonrpc.AppendRequest(nil, q.id, unknownRequest, params), q, func(row string) mark { return judgeUnknown(row, outer(*q.reply)) }
}

// taken wants a request of that size to be answered that is written in a way of its own.
func (r *run) taken(row string, size int, write func(frame []byte)) {
	frame, q, judge := r.probeFrame(size)
	if frame == nil {
		r.sheet.put(skipped(row, "there is nothing that the client answers"))
		return
	}
	write(frame)
	if !r.answered(row, q) {
		r.sheet.put(r.unanswered(row, fmt.Sprintf("a request of %d bytes", len(frame))))
		return
	}
	m := judge(row)
	if m.status == tally.Pass {
		m.came = fmt.Sprintf("%d bytes", len(frame))
	}
	r.sheet.put(m)
}

func (r *run) sendLarge() { r.taken(rowLarge, r.cfg.large, r.send) }

// sendFragments writes a message in three frames with a ping between them, cut in the middle of what it may be cut in.
func (r *run) sendFragments() {
	r.taken(rowFragments, 200, func(frame []byte) {
		s, third := r.sock, len(frame)/3
		_ = s.raw(r.cfg.Patience, wire.TextFrame, false, frame[:third])
		_ = s.raw(r.cfg.Patience, wire.PingFrame, true, []byte("client-check"))
		_ = s.raw(r.cfg.Patience, wire.Continuation, false, frame[third:2*third])
		_ = s.raw(r.cfg.Patience, wire.Continuation, true, frame[2*third:])
	})
}
