package prompter

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// answerBound is how long the pod may take for one answer: every timeout of the config that Prepare writes, one after the other, on a
// machine that is loaded.
const answerBound = 120 * time.Second

// World is what all sessions of a run have in common.
type World struct {
	Book    *invariant.Book
	Calls   *ledger.Calls
	Traffic *peer.Traffic
	Open    func(ctx context.Context, name string) (*wire.Socket, error)
}

// Session is one session of one client, across its sockets. Its methods are for one goroutine.
type Session struct {
	w      World
	number int
	secret string
	Server *server.Server
	Facade Facade // told by a pod that runs no agent

	sockets int
	peer    *peer.Peer
	former  []*peer.Peer

	mu    sync.Mutex
	id    string // "" = none is open
	turns map[string]*heard
	ears  map[string]*agent.Splitter // by kind of update
	told  []string                   // ends that _acpod/turn_ended told, in the words of Outcome
	news  chan struct{}              // 1: something was told
	hold  bool
	alive int      // keep-alives
	early []string // names of the updates of agent.Early that came
}

// heard is what has come of a turn.
type heard struct {
	book *agent.Book
	over bool
}

// NewSession makes a session that is not open. number tells it from the others of the run; its server is declared at each opening.
func NewSession(w World, number int) *Session {
	generations := []server.Generation{server.GenA, server.GenB, server.GenC, server.Gen0}
	return &Session{
		w: w, number: number, secret: fmt.Sprintf("prompter-secret-%08d", number), turns: map[string]*heard{}, news: make(chan struct{}, 1),
		Server: &server.Server{Session: number, ID: fmt.Sprintf("prompter-%d", number), Generation: generations[number%len(generations)], Calls: w.Calls, Book: w.Book},
	}
}

// Peer is the present socket; nil before the first.
func (s *Session) Peer() *peer.Peer { return s.peer }

// ID is the session's, "" while none is open.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

func (s *Session) setID(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

// Place is the session's name in the pod's tree.
func (s *Session) Place() string { return placeOf(s.ID()) }

func placeOf(id string) string {
	if id == "" {
		return "sessions"
	}
	return acp.TreeName(id)
}

// Connect opens a socket and initializes it.
func (s *Session) Connect(ctx context.Context) error {
	s.sockets++
	name := fmt.Sprintf("prompter-%d.%d", s.number, s.sockets)
	socket, err := s.w.Open(ctx, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ears = map[string]*agent.Splitter{}
	s.mu.Unlock()
	if s.peer != nil {
		s.former = append(s.former, s.peer)
	}
	s.peer = peer.New(socket, peer.Options{Name: name, Book: s.w.Book, Serve: s.serve, Traffic: s.w.Traffic})
	_, err = s.call(ctx, acp.MethodInitialize, `{"protocolVersion":1,"clientInfo":{"name":"prompter","version":"1"},"clientCapabilities":{},"_meta":{"`+acp.MetaClient+`":`+quote(s.secret)+`}}`)
	return err
}

func quote(text string) string { return string(jsonrpc.AppendString(nil, text)) }

func (s *Session) call(ctx context.Context, method, params string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerBound+time.Second)
	defer cancel()
	reply, err := s.peer.Call(ctx, method, []byte(params), answerBound)
	if err != nil {
		s.peer.Requests.Check(time.Now())
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if reply.Error != nil {
		return nil, reply.Error
	}
	return reply.Result, nil
}

// Open is session/new; it may fail as the agent's plan has it, with a *jsonrpc.Error.
func (s *Session) Open(ctx context.Context) error {
	result, err := s.call(ctx, acp.MethodSessionNew, `{"cwd":"/","mcpServers":[`+string(s.Server.Declaration())+`]}`)
	if err != nil {
		return err
	}
	var opened struct {
		ID   string `json:"sessionId"`
		Meta struct {
			Facade Facade `json:"acpod.dev/facade"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &opened); err != nil || opened.ID == "" {
		return fmt.Errorf("session/new gave no session: %.200q", result)
	}
	s.Facade = opened.Meta.Facade
	s.setID(opened.ID)
	return nil
}

// Facade is where the tools of a session are, for who is told.
type Facade struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Account is what a resume tells.
type Account struct {
	State  string `json:"state"`
	Agent  string `json:"agent"`
	Missed int64  `json:"missed_updates"`
	Last   *struct {
		StopReason string         `json:"stopReason"`
		Error      *errorOfAnswer `json:"error"`
	} `json:"last_turn"`
}

type errorOfAnswer struct {
	Code int `json:"code"`
	Data struct {
		Reason string `json:"reason"`
	} `json:"data"`
}

// Resume is session/resume.
func (s *Session) Resume(ctx context.Context) (Account, error) {
	result, err := s.call(ctx, acp.MethodSessionResume, `{"sessionId":`+quote(s.ID())+`,"cwd":"/","mcpServers":[`+string(s.Server.Declaration())+`]}`)
	if err != nil {
		return Account{}, err
	}
	var answer struct {
		Meta struct {
			Session Account `json:"acpod.dev/session"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return Account{}, fmt.Errorf("session/resume: %w in %.200q", err, result)
	}
	return answer.Meta.Session, nil
}

// Prompt sends a turn; its answer comes into the channel.
func (s *Session) Prompt(t *Turn) <-chan peer.Reply {
	_, size := t.Chunks()
	s.mu.Lock()
	s.turns[t.Key] = &heard{book: &agent.Book{Key: t.Key, Size: size}}
	s.hold = t.Hold
	s.told = nil
	s.mu.Unlock()
	for _, number := range t.Calls {
		s.w.Calls.Begin(ledger.Call{Number: number, Session: s.number, Sum: ledger.Sum(fmt.Appendf(nil, `{"n":%d}`, number)), Place: s.Place()})
	}
	return s.peer.Ask(acp.MethodSessionPrompt, []byte(`{"sessionId":`+quote(s.ID())+`,"prompt":[{"type":"text","text":`+quote(t.Script.String())+`}]}`), answerBound)
}

// Cancel is session/cancel.
func (s *Session) Cancel() {
	s.peer.Notify(acp.MethodSessionCancel, []byte(`{"sessionId":`+quote(s.ID())+`}`))
}

// Close is session/close.
func (s *Session) Close(ctx context.Context) error {
	_, err := s.call(ctx, acp.MethodSessionClose, `{"sessionId":`+quote(s.ID())+`}`)
	s.setID("")
	return err
}

// HangUp ends the socket and waits for its goroutines, and those of the sockets before.
func (s *Session) HangUp() {
	for _, p := range append(s.former, s.peer) {
		if p != nil {
			p.Reset()
			p.Wait()
		}
	}
	s.former, s.peer = nil, nil
}

// Heard takes a turn's book; nothing more may come of it. gaps: it may have holes, because its client was away.
func (s *Session) Heard(key string, gaps bool) *agent.Book {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.turns[key]
	h.over = true
	if gaps {
		h.book.Gaps = true
	}
	return h.book
}

// Gaps allows holes in what comes of a turn from now on.
func (s *Session) Gaps(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[key].book.Gaps = true
}

// Count is how many chunks of a turn have come.
func (s *Session) Count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[key].book.Count
}

// Alive is how many keep-alives have come.
func (s *Session) Alive() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

// Early are the updates that came of those that the agent wrote before its session was known, see agent.Early.
func (s *Session) Early() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.early)
}

// Told waits for the end of a turn that no answer tells.
func (s *Session) Told(ctx context.Context) (end string, err error) {
	for {
		s.mu.Lock()
		if len(s.told) > 0 {
			end, s.told = s.told[0], s.told[1:]
			s.mu.Unlock()
			return end, nil
		}
		s.mu.Unlock()
		select {
		case <-s.news:
		case <-s.peer.Gone():
			return "", peer.ErrGone
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// Wait waits for a prompt's answer and gives its end in one word.
func (s *Session) Wait(ctx context.Context, answer <-chan peer.Reply) (string, error) {
	select {
	case reply := <-answer:
		return Outcome(reply), nil
	case <-s.peer.Gone():
		select {
		case reply := <-answer:
			return Outcome(reply), nil
		default:
			return "", peer.ErrGone
		}
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Outcome is how a prompt was answered, in one word: its stop reason, the reason of the pod's own error, or "error CODE".
func Outcome(reply peer.Reply) string {
	if reply.Error == nil {
		var result struct {
			StopReason string `json:"stopReason"`
		}
		if err := json.Unmarshal(reply.Result, &result); err != nil {
			return "unreadable"
		}
		return result.StopReason
	}
	return wordOf(reply.Error.Code, reply.Error.Reason())
}

func wordOf(code int, reason string) string {
	if code == jsonrpc.Internal && reason == string(jsonrpc.ReasonInternal) {
		return LineTooLong // the only one of a prompt that has this reason
	}
	if code == jsonrpc.Internal && reason != "" {
		return reason
	}
	return fmt.Sprintf("error %d", code)
}

// End is how the last turn ended, by a resume.
func (a Account) End() string {
	switch {
	case a.Last == nil:
		return ""
	case a.Last.Error != nil:
		return wordOf(a.Last.Error.Code, a.Last.Error.Data.Reason)
	}
	return a.Last.StopReason
}
