package conform

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A tool call of a session is made by its agent, which a client cannot be; but the demo agent does what a prompt says, and a
// pod without agents gives the session's token to its client. Both are behind one pair of methods of a session: call and search.

// facadeAccess is what a pod without agents gives to a client on loopback.
type facadeAccess struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// toolOutcome is what the caller of a tool was given.
type toolOutcome struct {
	done    bool
	text    string // of the first block, or what the agent streamed
	isError bool
	refusal string // pods without an agent only: the word in _meta
	stop    string // pods with an agent only: how the turn ended
	raw     []byte // pods without an agent only: the HTTP body
}

func (o *toolOutcome) show() string {
	word := "the result "
	if o.isError {
		word = "the error "
	}
	if o.stop != "" && o.stop != "end_turn" {
		return "the turn's end " + jsonrpc.Show(o.stop)
	}
	if o.refusal != "" {
		return "the refusal " + jsonrpc.Show(o.refusal)
	}
	return word + jsonrpc.Show(o.text)
}

// call calls a capability and does not wait for its end.
func (s *session) call(name, arguments string) *toolOutcome {
	return s.use("/call "+name+" "+arguments, "execute_capability", fmt.Sprintf(`{"name":%s,"arguments":%s}`, literal(name), arguments))
}

// search gives the names of the capabilities that the session's caller finds.
func (s *session) search() []string {
	o := s.wait(s.use("/search", "search_capabilities", `{"limit":100}`), "the search")
	if o.isError {
		s.p.a.fail(o.show(), "search_capabilities failed")
	}
	if o.raw == nil {
		if o.text == "nothing found" {
			return nil
		}
		return strings.Split(o.text, "\n")
	}
	answer, ok := decode[struct {
		Capabilities []struct {
			Name string `json:"name"`
		} `json:"capabilities"`
	}]([]byte(o.text))
	if !ok {
		s.p.a.fail(o.show(), "search_capabilities gave no JSON")
	}
	var names []string
	for _, one := range answer.Capabilities {
		names = append(names, one.Name)
	}
	return names
}

// result calls a capability and waits for its end.
func (s *session) result(name, arguments string) *toolOutcome {
	return s.wait(s.call(name, arguments), "the result of "+name)
}

func (s *session) wait(o *toolOutcome, what string) *toolOutcome {
	s.p.await(what, func() bool { return o.done })
	return o
}

func (s *session) use(line, tool, arguments string) *toolOutcome {
	o := &toolOutcome{}
	if s.p.a.survey.agent == agentNone {
		s.post(o, tool, arguments)
		return o
	}
	from, id := len(s.p.seen), s.prompt(line)
	s.p.whenAnswered(id, func(m message) {
		text := strings.TrimSuffix(s.text(from, m.nth), "\n")
		o.done, o.stop = true, stop(m)
		if m.Error != nil {
			o.stop = m.show()
		}
		o.text, o.isError = strings.CutPrefix(text, "error: ")
	})
	return o
}

// whenAnswered runs f in the row's goroutine when the request is answered, instead of keeping the answer.
func (p *peer) whenAnswered(id string, f func(message)) { p.hooks[id] = f }

// post calls a tool of the facade over HTTP, beside the row.
func (s *session) post(o *toolOutcome, tool, arguments string) {
	a := s.p.a
	if s.facade.Token == "" {
		a.fail(s.opened.show(), "the session was given no token for the facade")
	}
	s.p.next++
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, s.p.next, tool, arguments)
	ctx, cancel := context.WithTimeout(a.ctx, 2*a.cfg.Patience)
	s.beside++
	done := s.p.done
	go func() {
		defer cancel()
		raw, err := post(ctx, s.facade, body)
		done <- func() {
			s.beside--
			o.take(raw, err)
		}
	}()
}

// post is one POST of a JSON-RPC message to the facade, and the message that came back.
func post(ctx context.Context, to facadeAccess, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	request.Header.Set("Authorization", "Bearer "+to.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the facade answered %s", response.Status)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		at := bytes.LastIndex(raw, []byte("data: "))
		raw = bytes.TrimSpace(raw[max(0, at):])
		raw = bytes.TrimPrefix(raw, []byte("data: "))
	}
	return raw, err
}

// take reads the answer of the facade.
func (o *toolOutcome) take(raw []byte, err error) {
	o.done, o.raw = true, raw
	answer, ok := decode[struct {
		Result *struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
			Meta    struct {
				Refusal string `json:"acpod.dev/refusal"`
			} `json:"_meta"`
		} `json:"result"`
		Error jsontext.Value `json:"error"`
	}](raw)
	switch {
	case err != nil:
		o.isError, o.text = true, err.Error()
	case !ok || answer.Result == nil:
		o.isError, o.text = true, string(raw)
	default:
		o.isError, o.refusal = answer.Result.IsError, answer.Result.Meta.Refusal
		if len(answer.Result.Content) > 0 {
			o.text = answer.Result.Content[0].Text
		}
	}
}
