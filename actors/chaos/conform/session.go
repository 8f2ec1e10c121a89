package conform

import (
	"encoding/json/jsontext"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// session is one agent session of a peer.
type session struct {
	p      *peer
	id     string
	opened message
	facade facadeAccess
	beside int // calls under way on other goroutines
	closed bool
}

// serverState is one line of the contract's report about servers.
type serverState struct {
	Name   string `json:"name"`
	ID     string `json:"id"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Tools  *struct {
		Offered  int `json:"offered"`
		Withheld int `json:"withheld"`
	} `json:"tools"`
}

type serversReport struct {
	SessionID string        `json:"sessionId"`
	Servers   []serverState `json:"servers"`
	Facade    struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"facade"`
}

// sessionResult is what session/new and session/resume answer, as far as it is looked at.
type sessionResult struct {
	SessionID string `json:"sessionId"`
	Meta      struct {
		Servers *serversReport `json:"acpod.dev/servers"`
		Facade  *facadeAccess  `json:"acpod.dev/facade"`
		Session *struct {
			State string         `json:"state"`
			Agent string         `json:"agent"`
			Last  jsontext.Value `json:"last_turn"`
		} `json:"acpod.dev/session"`
	} `json:"_meta"`
}

// open initializes nothing: it opens a session with these servers and does not wait for them.
func (p *peer) open(servers ...*server) *session {
	return p.openWith(object{"cwd": "/", "mcpServers": p.declare(servers...)})
}

func (p *peer) openWith(params any) *session {
	m := p.call("session/new", params)
	result, ok := decode[sessionResult](m.Result)
	if !ok || result.SessionID == "" {
		p.a.fail(m.show(), "session/new gave no sessionId")
	}
	s := &session{p: p, id: result.SessionID, opened: m}
	if result.Meta.Facade != nil {
		s.facade = *result.Meta.Facade
	}
	p.sessions = append(p.sessions, s)
	return s
}

// openReady opens a session and waits until the pod says that each server is ready.
func (p *peer) openReady(servers ...*server) *session {
	s := p.open(servers...)
	for _, one := range servers {
		s.ready(one.name)
	}
	return s
}

// declare makes the peer answer for servers and gives their declarations.
func (p *peer) declare(servers ...*server) []any {
	declared := []any{}
	for _, one := range servers {
		if !slices.Contains(p.servers, one) {
			p.servers = append(p.servers, one)
		}
		declared = append(declared, one.declaration())
	}
	return declared
}

// states is the newest report about this session's servers.
func (s *session) states() []serverState {
	for _, m := range slices.Backward(s.p.seen) {
		switch {
		case m.Method == "_acpod/servers":
			if report, ok := decode[serversReport](m.Params); ok && report.SessionID == s.id {
				return report.Servers
			}
		case m.Kind == jsonrpc.Response && m.nth == s.opened.nth:
			if result, ok := decode[sessionResult](m.Result); ok && result.Meta.Servers != nil {
				return result.Meta.Servers.Servers
			}
			return nil
		}
	}
	return nil
}

// state finds what is said of a server; of several of one name, the last.
func (s *session) state(name string) serverState {
	for _, one := range slices.Backward(s.states()) {
		if one.Name == name {
			return one
		}
	}
	return serverState{}
}

// ready waits until the pod says that a server is ready.
func (s *session) ready(name string) serverState {
	ended := func() bool { // there is no use in waiting longer
		state := s.state(name).State
		return state != "" && state != "connecting"
	}
	if !s.p.until(ended) || s.state(name).State != "ready" {
		if s.p.ended != nil {
			s.p.a.fail(s.p.how(), "the connection ended before server %q was ready", name)
		}
		one := s.state(name)
		s.p.a.fail("state "+jsonrpc.Show(one.State), "server %q did not get ready: %s%s", name, jsonrpc.Show(one.Reason), grantHint(one.State))
	}
	return s.state(name)
}

func grantHint(state string) string {
	if state == "refused" {
		return "; name the servers that this pod grants with --servers"
	}
	return ""
}

// expectState waits for a state of a server.
func (s *session) expectState(name, state string) serverState {
	s.p.until(func() bool { return s.state(name).State == state || s.state(name).State == "refused" })
	if one := s.state(name); one.State != state {
		s.p.a.fail("state "+jsonrpc.Show(one.State), "server %q is not said to be %s%s", name, state, grantHint(one.State))
	}
	return s.state(name)
}

// prompt sends one text block and gives the id of the request.
func (s *session) prompt(text string) string {
	return s.promptBlocks(object{"type": "text", "text": text})
}

func (s *session) promptBlocks(blocks ...any) string {
	if blocks == nil {
		blocks = []any{}
	}
	return s.p.send("session/prompt", object{"sessionId": s.id, "prompt": blocks})
}

func (s *session) cancel() { s.p.notify("session/cancel", object{"sessionId": s.id}) }

// close ends the session and wants it to be answered.
func (s *session) close() message {
	s.closed = true
	return s.p.call("session/close", object{"sessionId": s.id})
}

// closeSessions closes what a row has left open, without a judgement and without much patience.
func (p *peer) closeSessions() {
	var ids []string
	for _, s := range p.sessions {
		if !s.closed && p.ended == nil {
			s.closed = true
			ids = append(ids, p.send("session/close", object{"sessionId": s.id}))
		}
	}
	p.within(closePatience, func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return len(p.answered[id]) == 0 })
	})
}

// text is what the agent streamed in this session from frame from on up to the frame to.
func (s *session) text(from, to int) string {
	var b strings.Builder
	for _, m := range s.p.seen[from:to] {
		b.WriteString(s.chunk(m))
	}
	return b.String()
}

// chunk is the text of an agent_message_chunk of this session, else "".
func (s *session) chunk(m message) string {
	if m.Method != acp.MethodSessionUpdate {
		return ""
	}
	params, ok := decode[struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind    string         `json:"sessionUpdate"`
			Content jsontext.Value `json:"content"`
		} `json:"update"`
	}](m.Params)
	if !ok || params.SessionID != s.id || params.Update.Kind != "agent_message_chunk" {
		return ""
	}
	content, _ := decode[struct {
		Text string `json:"text"`
	}](params.Update.Content)
	return content.Text
}

// turn waits for the answer of a prompt and gives what was streamed before it, and what came after it all the same.
func (s *session) turn(id string, from int) (before string, answer message) {
	answer = s.p.answer(id)
	return s.text(from, answer.nth), answer
}

// stop is the stopReason of an answer, "" when there is none.
func stop(m message) string {
	result, _ := decode[struct {
		StopReason string `json:"stopReason"`
	}](m.Result)
	return result.StopReason
}

// says wants the demo agent to answer a line with that text and to end its turn after it.
func (s *session) says(line, want string) {
	from := len(s.p.seen)
	got, answer := s.turn(s.prompt(line), from)
	if stop(answer) != "end_turn" {
		s.p.a.fail(answer.show(), "the turn did not end with end_turn")
	}
	if got != want {
		s.p.a.fail("the text "+jsonrpc.Show(got), "%d bytes of text came before the end of the turn, %d were sent", len(got), len(want))
	}
}
