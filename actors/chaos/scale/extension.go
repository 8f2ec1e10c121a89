package scale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// What every extension declares: one server with one tool, whose schema is like those of browser tools, so that the check of
// arguments is part of a call.
const (
	serverName = "scale"
	toolName   = serverName + ".type"
	tool       = `{"name":"` + toolName + `","description":"Types text into a field.","inputSchema":{"type":"object",` +
		`"properties":{"call":{"type":"integer"},"selector":{"type":"string","maxLength":256},"text":{"type":"string"}},` +
		`"required":["call","selector","text"],"additionalProperties":false}}`
)

// The ids of an extension's own requests.
var (
	idInitialize = jsonrpc.IntID(1)
	idNew        = jsonrpc.IntID(2)
	idClose      = jsonrpc.IntID(3)
)

// answerLimit is how long an extension waits for an answer of the pod. It is long because ten thousand of them ask at once.
const answerLimit = 2 * time.Minute

// extension is one client of the pod, with one session.
type extension struct {
	number int
	socket *wire.Socket
	filler string

	session    string
	url, token string // of the facade
	server     string // the last state of its server that it was told
	ready      chan struct{}
	closed     chan struct{} // session/close was answered
	ended      chan struct{} // its goroutine
	err        error         // why that ended, after ended
	served     atomic.Int64  // calls
}

// connect opens a socket and a session and returns when its server is ready.
func connect(ctx context.Context, number int, d wire.Dial, filler string) (*extension, error) {
	socket, err := wire.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	e := &extension{number: number, socket: socket, filler: filler,
		ready: make(chan struct{}), closed: make(chan struct{}), ended: make(chan struct{})}
	go e.read()
	params := `{"protocolVersion":` + strconv.Itoa(acp.ProtocolVersion) + `,"clientCapabilities":{}}`
	err = socket.Text(jsonrpc.AppendRequest(nil, idInitialize, acp.MethodInitialize, []byte(params)))
	if err == nil {
		params = fmt.Sprintf(`{"cwd":"/","mcpServers":[{"type":"acp","name":%q,"id":"server of %d"}]}`, serverName, number)
		err = socket.Text(jsonrpc.AppendRequest(nil, idNew, acp.MethodSessionNew, []byte(params)))
	}
	if err == nil {
		err = e.await(ctx, e.ready, "a session with a server that is ready")
	}
	if err != nil {
		e.socket.Reset()
		<-e.ended
		return nil, fmt.Errorf("extension %d: %w", number, err)
	}
	return e, nil
}

// await waits for one of the channels of the extension.
func (e *extension) await(ctx context.Context, what <-chan struct{}, name string) error {
	late := time.NewTimer(answerLimit)
	defer late.Stop()
	select {
	case <-what:
		return nil
	case <-e.ended:
		return fmt.Errorf("no %s: %w", name, e.err)
	case <-late.C:
		return fmt.Errorf("no %s within %v", name, answerLimit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave closes the session and then the socket, as a client does that is not in a hurry.
func (e *extension) leave(ctx context.Context) error {
	err := e.socket.Text(jsonrpc.AppendRequest(nil, idClose, acp.MethodSessionClose, fmt.Appendf(nil, `{"sessionId":%q}`, e.session)))
	if err == nil {
		err = e.await(ctx, e.closed, "answer to session/close")
	}
	if err == nil {
		err = e.socket.Close(1000, "")
	}
	e.socket.Reset()
	<-e.ended
	if err != nil {
		return fmt.Errorf("extension %d: %w", e.number, err)
	}
	return nil
}

// abandon ends the socket at once.
func (e *extension) abandon() { e.socket.Reset(); <-e.ended }

// read is the extension's one goroutine.
func (e *extension) read() {
	defer close(e.ended)
	for {
		text, err := e.socket.Read()
		if err == nil {
			err = e.take(text)
		}
		if err != nil {
			e.err = err
			e.socket.Reset()
			return
		}
	}
}

// take handles one frame of the pod.
func (e *extension) take(text []byte) error {
	f, fault := jsonrpc.Scan(text)
	if fault != nil {
		return fmt.Errorf("the pod sent %.200q: %s", text, fault.Message)
	}
	switch f.Kind {
	case jsonrpc.Response:
		return e.answered(f)
	case jsonrpc.Request:
		return e.socket.Text(e.answer(f))
	}
	if f.Method == acp.MethodServers {
		return e.told(f.Params)
	}
	return nil // keep-alives, and what a session without an agent may be told
}

// answered takes the answer to a request of the extension.
func (e *extension) answered(f jsonrpc.Frame) error {
	if f.Error != nil {
		return fmt.Errorf("request %s was refused: %.300q", f.ID, f.Error)
	}
	switch f.ID.Key() {
	case idInitialize.Key():
		return nil
	case idClose.Key():
		close(e.closed)
		return nil
	case idNew.Key():
		return e.opened(f.Result)
	}
	return fmt.Errorf("an answer to nothing, with the id %s", f.ID)
}

// opened reads the result of session/new.
func (e *extension) opened(result []byte) (err error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return err
	}
	if e.session, err = o.Text("sessionId"); err != nil {
		return err
	}
	meta, err := member(o, "_meta")
	if err != nil {
		return err
	}
	facade, err := member(meta, acp.MetaFacade)
	if err != nil {
		return err
	}
	if e.url, err = facade.Text("url"); err != nil {
		return err
	}
	if e.token, err = facade.Text("token"); err != nil {
		return err
	}
	e.url, e.token, e.session = strings.Clone(e.url), strings.Clone(e.token), strings.Clone(e.session)
	servers, err := member(meta, acp.MetaServers)
	if err != nil {
		return err
	}
	return e.told(servers.Raw())
}

// told reads in which state the extension's server is.
func (e *extension) told(params []byte) error {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return err
	}
	raw, _ := o.Get("servers")
	switch {
	case strings.Contains(string(raw), `"state":"ready"`):
		if e.server != "ready" && e.token != "" { // the notification may be there before the answer
			close(e.ready)
			e.server = "ready"
		}
	case strings.Contains(string(raw), `"state":"connecting"`):
	default:
		if e.server != "ready" {
			return fmt.Errorf("the server is not connected: %.300q", raw)
		}
	}
	return nil
}

// answer is the answer to a request of the pod.
func (e *extension) answer(f jsonrpc.Frame) []byte {
	switch f.Method {
	case acp.MethodMCPConnect:
		return jsonrpc.AppendResult(nil, f.ID, fmt.Appendf(nil, `{"connectionId":"connection of %d"}`, e.number))
	case acp.MethodMCPDisconnect:
		return jsonrpc.AppendResult(nil, f.ID, []byte(`{}`))
	case acp.MethodMCPMessage:
		in, err := acp.ParseInbound(f.Method, f.Params)
		if err != nil {
			return jsonrpc.AppendError(nil, f.ID, &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: err.Error()})
		}
		switch in.Method {
		case mcp.MethodInitialize:
			return jsonrpc.AppendResult(nil, f.ID, []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scale","version":"1"}}`))
		case mcp.MethodToolsList:
			return jsonrpc.AppendResult(nil, f.ID, []byte(`{"tools":[`+tool+`]}`))
		case mcp.MethodToolsCall:
			return e.serve(f.ID, in.Params)
		}
	}
	return jsonrpc.AppendError(nil, f.ID, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "unknown: " + f.Method})
}

// serve answers one call, signed with the numbers of the extension and of the call.
func (e *extension) serve(id jsonrpc.ID, params []byte) []byte {
	arguments, err := argumentsOf(params)
	if err != nil {
		return jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: err.Error()})
	}
	e.served.Add(1)
	number, _ := arguments.Get("call")
	dst := make([]byte, 0, len(e.filler)+160)
	dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id.Raw())
	dst = append(dst, signed(e.number, number, e.filler)...)
	return append(dst, `"}]}}`...)
}

func argumentsOf(params []byte) (jsonrpc.Object, error) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return o, err
	}
	if name, err := o.Text("name"); err != nil || name != toolName {
		return o, fmt.Errorf("there is no tool %.64q", name)
	}
	return member(o, "arguments")
}

// minPayload holds the signature of a result.
const minPayload = 64

// signed is the text of a result: who served which call, and filler up to the length of the filler given.
func signed(extension int, call []byte, filler string) string {
	sign := fmt.Sprintf("extension %d served call %s ", extension, call)
	return sign + filler[min(len(sign), len(filler)):]
}

func member(o jsonrpc.Object, name string) (jsonrpc.Object, error) {
	raw, has := o.Get(name)
	if !has {
		return jsonrpc.Object{}, errors.New("there is no " + name + " in " + strconv.QuoteToASCII(string(o.Raw()[:min(200, len(o.Raw()))])))
	}
	return jsonrpc.ParseObject(raw)
}
