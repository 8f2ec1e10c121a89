package facade

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// insider is one connection of somebody whom another actor has identified.
type insider struct {
	t     *testing.T
	w     *world
	at    *Inside
	who   capability.Caller
	lines chan string
}

func newInsider(t *testing.T, change func(*Config), behave func(*kernel.Ctx, capability.Call, *kernel.Question)) (*insider, *session) {
	at := &Inside{}
	w := newWorld(t, func(c *Config) {
		c.Inside = at
		if change != nil {
			change(c)
		}
	})
	s := w.session("alice", capability.Ready, behave)
	who, _ := w.tokens.Resolve(sha256.Sum256([]byte(s.token)))
	kerneltest.Eventually(t, "the facade serves", func() bool { return at.front.Load() != nil })
	return &insider{t: t, w: w, at: at, who: who, lines: make(chan string, 64)}, s
}

func (i *insider) line(write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	i.lines <- b.String()
	return nil
}

// send serves one message on a goroutine of its own; what it returns is closed when it has been served.
func (i *insider) send(ctx context.Context, peer, text string) (served chan struct{}) {
	served = make(chan struct{})
	begun := make(chan struct{}, 8)
	go func() {
		defer close(served)
		i.at.Serve(ctx, Message{Caller: i.who, Peer: peer, Text: []byte(text), Line: i.line, Begun: func() { begun <- struct{}{} }})
	}()
	select {
	case <-begun:
	case <-time.After(time.Minute):
		i.t.Fatalf("%s never begins", text)
	}
	return served
}

func (i *insider) next() string {
	i.t.Helper()
	select {
	case line := <-i.lines:
		if strings.ContainsAny(line, "\r\n") {
			i.t.Fatalf("a message has a line break: %q", line)
		}
		return line
	case <-time.After(time.Minute):
		i.t.Fatal("no line came")
		return ""
	}
}

func TestAMessageInALineIsAnsweredAsOneByHTTP(t *testing.T) {
	i, s := newInsider(t, nil, echo)
	for name, text := range map[string]string{
		"a handshake": hello(`{}`), "a ping": `{"jsonrpc":"2.0","id":"p","method":"ping"}`, "a list": `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`,
		"a search": searchBody("4", `{"query":"page"}`), "a call": executeBody("5", "katashiro.write", `{"n":5}`),
		"an unknown method": `{"jsonrpc":"2.0","id":6,"method":"nope"}`, "a refusal": executeBody("7", "nobody.has_it", `{}`),
		"another version": `{"jsonrpc":"1.0","id":8,"method":"ping"}`, "a batch": `[{"jsonrpc":"2.0","id":9,"method":"ping"}]`,
	} {
		<-i.send(t.Context(), "", text)
		if got, want := i.next(), i.w.do(request{body: text, header: bearer(s.token)}).body; got != want {
			t.Errorf("%s:\n%s\n%s", name, got, want)
		}
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	<-i.send(t.Context(), "", `{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{`+meta+`}}`)
	if got := i.next(); !strings.Contains(got, `"ttlMs"`) {
		t.Errorf("the stateless version needs no headers in a line: %s", got)
	}
	<-i.send(t.Context(), "", `{"jsonrpc":"2.0","id":11,"method":"server/discover","params":{`+meta+`}}`)
	if got := i.next(); !strings.Contains(got, `"result"`) {
		t.Errorf("%s", got)
	}
	for _, silent := range []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"method":"x"}`} {
		<-i.send(t.Context(), "", silent)
	}
	if len(i.lines) != 0 {
		t.Errorf("something was answered that is owed no answer: %s", i.next())
	}
}

func TestWhatACallSaysComesInLinesBeforeItsAnswer(t *testing.T) {
	i, _ := newInsider(t, nil, func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		call.Progress([]byte("{\"progressToken\":1,\n\"progress\":0.5}"))
		q.Answer(capability.Result{Raw: []byte("{\"content\":[]\r\n}")}, nil)
	})
	body := strings.Replace(executeBody("5", "katashiro.read", "{}"), `"params":{`, `"params":{"_meta":{"progressToken":"mine"},`, 1)
	<-i.send(t.Context(), "", body)
	if got := i.next(); !strings.Contains(got, `"progressToken":"mine"`) || !strings.Contains(got, `"progress":0.5`) {
		t.Errorf("progress: %s", got)
	}
	if got := i.next(); got != `{"jsonrpc":"2.0","id":5,"result":{"content":[]  }}` {
		t.Errorf("%s", got)
	}
}

func TestAQuestionIsPutInALineAndAnsweredByOne(t *testing.T) {
	i, _ := newInsider(t, nil, asks(form))
	<-i.send(t.Context(), "", hello(`{"elicitation":{}}`))
	i.next()
	call := i.send(t.Context(), "", executeBody("5", "katashiro.read", "{}"))
	frame, bad := jsonrpc.Scan([]byte(i.next()))
	if bad != nil || frame.Method != "elicitation/create" {
		t.Fatalf("%+v %v", frame, bad)
	}
	<-i.send(t.Context(), "", `{"jsonrpc":"2.0","id":`+string(frame.ID.Raw())+`,"result":{"action":"decline"}}`)
	<-call
	if got := i.next(); !strings.Contains(got, `"structuredContent":{"action":"decline"}`) {
		t.Errorf("%s", got)
	}
}

func TestACancellationEndsTheCallOfItsOwnConnectionAlone(t *testing.T) {
	i, s := newInsider(t, nil, nil)
	one, other := i.send(t.Context(), "1:", executeBody("5", "katashiro.read", "{}")), i.send(t.Context(), "2:", executeBody("5", "katashiro.read", "{\"a\":1}"))
	<-i.send(t.Context(), "1:", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	<-one
	if got := i.next(); !strings.Contains(got, "cancelled") {
		t.Errorf("%s", got)
	}
	select {
	case <-other:
		t.Error("the call of another connection ended as well")
	default:
	}
	if err := s.desk.Signal(capability.EndCalls{Reason: capability.EndToken, Token: i.who.Token}); err != nil {
		t.Fatal(err)
	}
	<-other
	if got := i.next(); !strings.Contains(got, "cancelled") {
		t.Errorf("the end of the token ends its calls: %s", got)
	}
}

func TestACancellationOfARepeatThatBringsAnAnswerEndsItsCall(t *testing.T) {
	answered := make(chan struct{})
	i, _ := newInsider(t, nil, func(_ *kernel.Ctx, call capability.Call, _ *kernel.Question) {
		call.Elicit(capability.Elicitation{Provider: "mail", Params: []byte(form), Answer: func([]byte, *jsonrpc.Error) { close(answered) }})
	})
	const can = `{"elicitation":{}}`
	<-i.send(t.Context(), "1:", modernExecute(7, can, "", ""))
	_, rest, _ := strings.Cut(i.next(), `"requestState":"`)
	state, _, _ := strings.Cut(rest, `"`)
	repeat := i.send(t.Context(), "1:", modernExecute(8, can, "", `,"requestState":"`+state+`","inputResponses":{"answer":{"action":"accept"}}`))
	<-i.send(t.Context(), "1:", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
	<-answered
	select {
	case <-repeat:
	case <-time.After(10 * time.Second):
		t.Fatal("the call goes on")
	}
	if got := i.next(); !strings.Contains(got, `"id":8`) || !strings.Contains(got, "cancelled") {
		t.Errorf("%s", got)
	}
}

func TestAFacadeThatStopsAnswersWhatCameInLines(t *testing.T) {
	i, _ := newInsider(t, nil, nil)
	call := i.send(t.Context(), "", executeBody("5", "katashiro.read", "{}"))
	i.w.ref.Stop(kernel.ErrShutdown)
	<-call
	if got := i.next(); !strings.Contains(got, "the pod is stopping") {
		t.Errorf("%s", got)
	}
	<-i.w.ref.Done()
	<-i.send(t.Context(), "", `{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	if got := i.next(); !strings.Contains(got, `"scope":"draining"`) || !strings.Contains(got, `"id":6`) {
		t.Errorf("%s", got)
	}
}
