package extension

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// ErrStranger says that nobody can make the calls of a pod's sessions.
var ErrStranger = errors.New(`the pod has an agent that is not the demo agent, and so nobody who makes tool calls when told to: it needs agent.driver = "none" or the demo agent`)

// Probe opens one session and tells whether its calls are made by the demo agent, which answers a greeting with it. Another agent is
// sent nothing but the greeting, and is ErrStranger. Where there is neither an agent nor a token, no calls are made: that is no error.
func (w *World) Probe(ctx context.Context) (prompted bool, err error) {
	socket, err := wire.Open(ctx, wire.Dial{URL: w.ACP, Key: w.Key, Timeout: Patience})
	if err != nil {
		return false, err
	}
	var turns atomic.Pointer[Turns]
	p := peer.New(socket, peer.Options{Name: "probe (conn " + socket.ConnectionID() + ")", Book: w.Book, Traffic: w.Traffic, Serve: func(_ *peer.Peer, f jsonrpc.Frame) {
		if t := turns.Load(); t != nil && f.Method == acp.MethodSessionUpdate {
			t.Hear(f.Params)
		}
	}})
	defer func() {
		p.Reset()
		p.Wait()
	}()
	if _, err := p.Call(ctx, acp.MethodInitialize, []byte(`{"protocolVersion":1,"clientCapabilities":{}}`), Patience); err != nil {
		return false, err
	}
	reply, err := p.Call(ctx, acp.MethodSessionNew, []byte(`{"cwd":"/","mcpServers":[]}`), 3*Patience)
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	if err != nil {
		return false, err
	}
	o, err := jsonrpc.ParseObject(reply.Result)
	if err != nil {
		return false, err
	}
	id, err := o.Text("sessionId")
	if err != nil {
		return false, err
	}
	w.Secret(id)
	_, token := facadeOf(reply.Result)
	if token != "" {
		w.Secret(token)
	} else {
		turns.Store(NewTurns(p, id, false))
		text, failed := turns.Load().Say(ctx, "Hello.")
		theirs, _ := errors.AsType[*jsonrpc.Error](failed)
		switch {
		case theirs != nil && theirs.Reason() == string(jsonrpc.ReasonNoAgent):
		case failed != nil:
			return false, failed
		case !strings.HasPrefix(text, "echo: Hello."):
			return false, ErrStranger
		default:
			prompted = true
		}
	}
	_, err = p.Call(ctx, acp.MethodSessionClose, append(jsonrpc.AppendString([]byte(`{"sessionId":`), id), '}'), Patience)
	return prompted, err
}
