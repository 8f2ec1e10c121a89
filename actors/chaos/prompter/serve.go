package prompter

import (
	"encoding/json/v2"
	"strings"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// serve gets what the pod sends on one socket, in order.
func (s *Session) serve(p *peer.Peer, f jsonrpc.Frame) {
	_, tunnelled := server.Target(f)
	switch {
	case tunnelled:
		s.Server.Serve(p, f)
	case server.IsCancel(f.Method):
		s.withdrawn(p, f.Params)
	case f.Method == acp.MethodSessionUpdate:
		s.update(p, f.Params)
	case f.Method == acp.MethodPermission:
		s.asked(p, f)
	case f.Method == acp.MethodKeepalive:
		s.mu.Lock()
		s.alive++
		s.mu.Unlock()
	case f.Method == acp.MethodTurnEnded:
		s.ended(f.Params)
	case f.Kind == jsonrpc.Request:
		p.Respond(f.ID, nil, jsonrpc.UnknownMethod(f.Method))
	}
}

// withdrawn is a request of the pod's that it takes back: of a call, or a question that is held.
func (s *Session) withdrawn(p *peer.Peer, params []byte) {
	if s.Server.Cancel(p, params, false) {
		return
	}
	if o, err := jsonrpc.ParseObject(params); err == nil {
		raw, _ := o.Get("requestId")
		p.Asked.Reply(string(raw)) // it needs no answer any more
	}
}

// update reads one session/update. Only of its own session may a socket hear, and only text of its turns.
func (s *Session) update(p *peer.Peer, params []byte) {
	o, err := jsonrpc.ParseObject(params)
	session, bad := o.Text("sessionId")
	id := s.ID() // the answer that tells it may still be on its way to who opens the session
	if err != nil || bad != nil || session != id && id != "" {
		s.w.Book.Break(invariant.OwnClient, []string{p.Name(), placeOf(id)}, "%s: an update of another session came to the client of %s", p.Name(), placeOf(id))
		return
	}
	var body struct {
		Update struct {
			Kind    string `json:"sessionUpdate"`
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
			Commands []struct {
				Name string `json:"name"`
			} `json:"availableCommands"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &body) != nil {
		return // rubbish of the agent, passed on to the byte
	}
	switch u := body.Update; {
	case u.Kind == acp.UpdateAgentMessage || u.Kind == acp.UpdateAgentThought:
		s.text(p, u.Kind, u.Content.Text)
	case len(u.Commands) == 1 && strings.HasPrefix(u.Commands[0].Name, "early-"):
		s.mu.Lock()
		s.early = append(s.early, u.Commands[0].Name)
		s.mu.Unlock()
	}
}

func (s *Session) text(p *peer.Peer, kind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ear := s.ears[kind]
	if ear == nil {
		ear = &agent.Splitter{}
		s.ears[kind] = ear
	}
	for piece := range ear.Pieces(text) {
		h := s.turns[agent.KeyOf(piece)]
		switch {
		case h == nil:
			s.w.Book.Break(invariant.OwnClient, []string{p.Name(), placeOf(s.id)}, "%s: text of no turn of its own: %.120q", p.Name(), piece)
		case h.over && strings.Contains(piece[:min(len(piece), 80)], " ~ "): // a flood may go on after the answer; the book is its judge's now
		case h.over:
			s.w.Book.Break(invariant.LastChunk, []string{p.Name(), placeOf(s.id)}, "%s: text of turn %s after its end: %.120q", p.Name(), h.book.Key, piece)
		default:
			h.book.Piece(piece)
		}
	}
}

// asked answers a question, or leaves it open until the pod takes it back.
func (s *Session) asked(p *peer.Peer, f jsonrpc.Frame) {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if !hold {
		p.Respond(f.ID, []byte(`{"outcome":{"outcome":"selected","optionId":"allow"}}`), nil)
	}
}

func (s *Session) ended(params []byte) {
	var told struct {
		StopReason string         `json:"stopReason"`
		Error      *errorOfAnswer `json:"error"`
	}
	if json.Unmarshal(params, &told) != nil {
		return
	}
	end := told.StopReason
	if told.Error != nil {
		end = wordOf(told.Error.Code, told.Error.Data.Reason)
	}
	s.mu.Lock()
	s.told = append(s.told, end)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}
