package server

import (
	"strconv"
	"time"

	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// signOfLife is how often a call that lingers tells of progress: well within the patience that a pod under test has.
const signOfLife = 500 * time.Millisecond

// linger keeps a call that is never answered alive by its progress, so that the deadline of the pod does not end it: only that its
// caller takes it back does, and when that does not come down here, it is held for ever. A call that its caller could not take back is
// let go.
func (s *Server) linger(r request, params []byte, number int) {
	token, ok := mcp.ProgressToken(params)
	o, err := jsonrpc.ParseObject(r.f.Params)
	if !ok || err != nil {
		return
	}
	raw, _ := o.Get("connectionId")
	connection, _ := jsonrpc.String(raw)
	s.progress(r.p, key(r.p, r.f.ID), connection, token, number, 1)
}

func (s *Server) progress(p *peer.Peer, held, connection string, token jsonrpc.ID, number, count int) {
	s.mu.Lock()
	_, waits := s.held[held]
	if waits && !s.Calls.Doomed(number) {
		delete(s.held, held)
		waits = false
	}
	s.mu.Unlock()
	if !waits || !p.Living() {
		return
	}
	message := jsonrpc.AppendString([]byte(`{"connectionId":`), connection)
	message = append(message, `,"method":"notifications/progress","params":{"progressToken":`...)
	message = append(token.Append(message), `,"progress":`...)
	message = append(strconv.AppendInt(message, int64(count), 10), `}}`...)
	p.Notify(acp.MethodMCPMessage, message)
	time.AfterFunc(signOfLife, func() { s.progress(p, held, connection, token, number, count+1) })
}
