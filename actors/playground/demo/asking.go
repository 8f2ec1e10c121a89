package demo

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// asked are the requests to the client that the SDK has no part in. Their ids are strings: the SDK's are numbers.
type asked struct {
	out *lines

	mu   sync.Mutex
	n    int
	open map[string]chan arrival // by id as it stands on the wire
	gone bool
}

// answer takes an answer that one of them waits for. True says that it was one.
func (a *asked) answer(message arrival) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := a.open[string(message.ID)]
	delete(a.open, string(message.ID))
	if waiting == nil {
		return false
	}
	waiting <- message
	return true
}

var errHungUp = errors.New("the client hung up")

// request waits for the client's answer; when ctx ends it is told by $/cancel_request and not waited for.
func (a *asked) request(ctx context.Context, method string, params jsontext.Value) (arrival, error) {
	answer := make(chan arrival, 1)
	a.mu.Lock()
	if a.gone {
		a.mu.Unlock()
		return arrival{}, errHungUp
	}
	a.n++
	id := fmt.Sprintf(`"demo-%d"`, a.n)
	if a.open == nil {
		a.open = map[string]chan arrival{}
	}
	a.open[id] = answer
	a.mu.Unlock()
	if err := a.out.frame(`{"jsonrpc":"2.0","id":`, id, `,"method":`, quoted(method), `,"params":`, string(params), `}`); err != nil {
		return arrival{}, err
	}
	select {
	case message, open := <-answer:
		if !open {
			return arrival{}, errHungUp
		}
		return message, nil
	case <-ctx.Done():
		_ = a.out.frame(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":`, id, `}}`)
		return arrival{}, ctx.Err()
	}
}

func (a *asked) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, waiting := range a.open {
		close(waiting)
	}
	a.open, a.gone = nil, true
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// withSession is the object with the agent's own session id in front of its members, unless it names one.
func (s script) withSession(text string) (jsontext.Value, error) {
	if text == "" {
		text = "{}"
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, fmt.Errorf("a JSON object is needed, not %s", text)
	}
	if _, named := members["sessionId"]; named {
		return jsontext.Value(text), nil
	}
	rest := strings.TrimSpace(strings.TrimSpace(text)[1:])
	if rest != "}" {
		rest = "," + rest
	}
	return jsontext.Value(`{"sessionId":` + quoted(string(s.session.id)) + rest), nil
}

func (s script) request(ctx context.Context, rest string) error {
	method, text, _ := strings.Cut(rest, " ")
	params, err := s.withSession(strings.TrimSpace(text))
	if err != nil {
		return s.stream(ctx, badLine("%v", err))
	}
	answer, err := s.agent.asked.request(ctx, method, params)
	switch {
	case err != nil:
		return err
	case answer.Error != nil:
		return s.stream(ctx, "refused: "+string(answer.Error)+"\n")
	}
	return s.stream(ctx, "result: "+string(answer.Result)+"\n")
}

func (s script) notify(ctx context.Context, rest string) error {
	method, text, _ := strings.Cut(rest, " ")
	params, err := s.withSession(strings.TrimSpace(text))
	if err != nil {
		return s.stream(ctx, badLine("%v", err))
	}
	return s.agent.out.frame(`{"jsonrpc":"2.0","method":`, quoted(method), `,"params":`, string(params), `}`)
}

func (s script) update(ctx context.Context, text string) error {
	if !jsontext.Value(text).IsValid() {
		return s.stream(ctx, badLine("an update is JSON, not %s", text))
	}
	return s.agent.out.frame(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`, quoted(string(s.session.id)), `,"update":`, text, `}}`)
}

func (s script) client() acp.ClientCapabilities {
	s.agent.mu.Lock()
	defer s.agent.mu.Unlock()
	return s.agent.client
}

func (s script) read(ctx context.Context, path string) error {
	if !s.client().Fs.ReadTextFile {
		return s.stream(ctx, badLine("the client offers no fs.readTextFile"))
	}
	answer, err := s.agent.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: s.session.id, Path: path})
	if err != nil {
		return s.stream(ctx, badLine("%v", err))
	}
	return s.stream(ctx, answer.Content)
}

func (s script) elicit(ctx context.Context, message string) error {
	if offered := s.client().Elicitation; offered == nil || offered.Form == nil {
		return s.stream(ctx, badLine("the client offers no elicitation.form"))
	}
	params, err := s.withSession(`{"mode":"form","message":` + quoted(message) +
		`,"requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}}`)
	if err != nil {
		return err
	}
	answer, err := s.agent.asked.request(ctx, "elicitation/create", params)
	switch {
	case err != nil:
		return err
	case answer.Error != nil:
		return s.stream(ctx, badLine("%s", answer.Error))
	}
	return s.stream(ctx, "elicited: "+string(answer.Result)+"\n")
}
