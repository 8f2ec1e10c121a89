package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lxzan/gws"
)

// An extension written for these tests, on a raw WebSocket and with nothing of the pod's code: it speaks ACP as a client
// and serves MCP tools back through the same socket, in any of the four wire generations.

// frame is one JSON-RPC message as it stood on the wire.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
	raw    string
}

type rpcError struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data"`
}

// extension is one connection and what it has seen.
type extension struct {
	t    testing.TB
	conn *gws.Conn

	mu      sync.Mutex
	changed *sync.Cond
	frames  []frame // received, in order
	toServe []frame // what the pod asks that waits for serveAll
	answers map[string]frame
	asked   map[string]string // by id: the session that a resume or load of ours is about, which its answer does not name
	next    int
	closed  *gws.CloseError
	gone    bool

	servers map[string]*mcpServer // by declared id
	stamps  map[string]time.Time
	other   func(f frame) (result any, failure *rpcError, answer bool)
}

// dialling is how an extension comes in.
type dialling struct {
	url       string // default: the pod's /acp
	header    http.Header
	protocols []string
}

// dial opens a socket to the pod; it fails the test when it is refused.
func dial(t testing.TB, p *pod, how ...dialling) *extension {
	t.Helper()
	e, response, err := tryDial(t, p, how...)
	if err != nil {
		t.Fatalf("dial: %v (%v)", err, response)
	}
	return e
}

func tryDial(t testing.TB, p *pod, how ...dialling) (*extension, *http.Response, error) {
	t.Helper()
	d := dialling{}
	if len(how) > 0 {
		d = how[0]
	}
	if d.url == "" {
		d.url = "ws://" + p.Public + "/acp"
	}
	header := d.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if len(d.protocols) > 0 {
		header.Set("Sec-WebSocket-Protocol", strings.Join(d.protocols, ", "))
	}
	e := &extension{t: t, answers: map[string]frame{}, asked: map[string]string{}, servers: map[string]*mcpServer{}}
	e.changed = sync.NewCond(&e.mu)
	conn, response, err := gws.NewClient(listener{e}, &gws.ClientOption{
		Addr: d.url, RequestHeader: header, HandshakeTimeout: patience, ReadMaxPayloadSize: 32 << 20, WriteMaxPayloadSize: 32 << 20,
	})
	if err != nil {
		return nil, response, err
	}
	e.conn = conn
	go conn.ReadLoop()
	go e.serveAll()
	t.Cleanup(e.hangUp)
	return e, response, nil
}

// hangUp closes the socket as a browser does that goes away, and waits until it is closed.
func (e *extension) hangUp() {
	_ = e.conn.NetConn().Close()
	e.await("the end of the connection", func() bool { return e.gone })
}

// listener feeds an extension from gws.
type listener struct{ e *extension }

func (l listener) OnOpen(*gws.Conn)             {}
func (l listener) OnPing(c *gws.Conn, p []byte) { _ = c.WritePong(p) }
func (l listener) OnPong(*gws.Conn, []byte)     {}
func (l listener) OnClose(_ *gws.Conn, err error) {
	e := l.e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
	if closed, ok := err.(*gws.CloseError); ok {
		e.closed = closed
	}
	e.changed.Broadcast()
}

func (l listener) OnMessage(_ *gws.Conn, message *gws.Message) {
	e := l.e
	text := string(message.Bytes())
	_ = message.Close()
	f := frame{raw: text}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		e.t.Errorf("the pod sent a frame that is not JSON: %v in %.300s", err, text)
		return
	}
	if wrong := f.misfit(); wrong != "" {
		e.t.Errorf("the pod sent a frame that its schema does not allow: %s in %.300s", wrong, text)
	}
	e.mu.Lock()
	e.frames = append(e.frames, f)
	if f.Method == "" {
		if _, twice := e.answers[string(f.ID)]; twice && string(f.ID) != "null" {
			e.t.Errorf("two answers to request %s: %.300s", f.ID, text)
		}
		e.answers[string(f.ID)] = f
	}
	e.changed.Broadcast()
	e.mu.Unlock()
	if f.Method != "" {
		e.mu.Lock()
		e.toServe = append(e.toServe, f)
		e.changed.Broadcast()
		e.mu.Unlock()
	}
}

// serveAll serves what the pod asks, in its order, beside the reading: a server that takes its time holds up no answer and no pong.
func (e *extension) serveAll() {
	for {
		e.mu.Lock()
		for len(e.toServe) == 0 && !e.gone {
			e.changed.Wait()
		}
		if len(e.toServe) == 0 {
			e.mu.Unlock()
			return
		}
		f := e.toServe[0]
		e.toServe = e.toServe[1:]
		e.mu.Unlock()
		e.serve(f)
	}
}

// await waits for a condition on what has been received; the extension is locked while it is asked.
func (e *extension) await(what string, holds func() bool) {
	e.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		e.mu.Lock()
		late = true
		e.changed.Broadcast()
		e.mu.Unlock()
	})
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !holds() {
		if late {
			e.t.Fatalf("%s did not come; the last frames:\n%s", what, e.lastFrames(12))
		}
		e.changed.Wait()
	}
}

func (e *extension) lastFrames(n int) string {
	var lines []string
	for _, f := range e.frames[max(0, len(e.frames)-n):] {
		lines = append(lines, fmt.Sprintf("%.300s", f.raw))
	}
	return strings.Join(lines, "\n")
}

func (e *extension) write(text string) {
	e.t.Helper()
	if err := e.conn.WriteMessage(gws.OpcodeText, []byte(text)); err != nil {
		e.t.Logf("write: %v", err) // a socket that the pod has closed is seen by what does not come
	}
}

// send writes a request with the next id and does not wait.
func (e *extension) send(method string, params any) string {
	e.t.Helper()
	e.mu.Lock()
	e.next++
	id := fmt.Sprint(e.next)
	if about, ok := params.(object); ok && (method == "session/resume" || method == "session/load") {
		e.asked[id], _ = about["sessionId"].(string)
	}
	e.mu.Unlock()
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, encode(e.t, params)))
	return id
}

func (e *extension) notify(method string, params any) {
	e.t.Helper()
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, encode(e.t, params)))
}

// answer waits for the response to a request.
func (e *extension) answer(id string) frame {
	e.t.Helper()
	var f frame
	e.await("the answer to request "+id, func() bool {
		found, ok := e.answers[id]
		f = found
		if !ok && e.gone {
			e.t.Fatalf("the socket closed (%v) before the answer to request %s", e.closed, id)
		}
		return ok
	})
	return f
}

// call sends a request and wants a result.
func (e *extension) call(method string, params any) json.RawMessage {
	e.t.Helper()
	f := e.answer(e.send(method, params))
	if f.Error != nil {
		e.t.Fatalf("%s: %+v", method, *f.Error)
	}
	return f.Result
}

// refused sends a request and wants an error of that code.
func (e *extension) refused(code int, method string, params any) *rpcError {
	e.t.Helper()
	f := e.answer(e.send(method, params))
	if f.Error == nil || f.Error.Code != code {
		e.t.Fatalf("%s was answered %.300s, not with error %d", method, f.raw, code)
	}
	return f.Error
}

func encode(t testing.TB, value any) string {
	t.Helper()
	if text, ok := value.(string); ok { // parameters written by hand
		return text
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

type object = map[string]any

// hello initializes the connection; meta becomes the request's _meta.
func (e *extension) hello(meta ...object) json.RawMessage {
	e.t.Helper()
	params := object{"protocolVersion": 1, "clientInfo": object{"name": "test", "version": "1"}, "clientCapabilities": object{}}
	if len(meta) > 0 {
		params["_meta"] = meta[0]
	}
	return e.call("initialize", params)
}

// open initializes, declares the servers, opens a session and waits until each server is ready.
func (e *extension) open(servers ...*mcpServer) string {
	e.t.Helper()
	e.hello()
	return e.openMore(servers...)
}

func (e *extension) openMore(servers ...*mcpServer) string {
	e.t.Helper()
	session := e.newSession(servers...)
	for _, server := range servers {
		e.ready(session, server.name)
	}
	return session
}

// newSession opens a session with these servers and does not wait for them.
func (e *extension) newSession(servers ...*mcpServer) string {
	e.t.Helper()
	var opened struct{ SessionID string }
	result := e.call("session/new", object{"cwd": "/", "mcpServers": e.declare(servers...)})
	if err := json.Unmarshal(result, &opened); err != nil || !strings.HasPrefix(opened.SessionID, "sess_") {
		e.t.Fatalf("session/new: %v in %s", err, result)
	}
	return opened.SessionID
}

// declare enters servers into what this extension answers for and gives their declarations.
func (e *extension) declare(servers ...*mcpServer) []any {
	declared := []any{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, server := range servers {
		e.servers[server.id] = server
		declared = append(declared, server.declaration())
	}
	return declared
}

// serverState is one line of the contract's server report.
type serverState struct {
	Name, ID, State, Reason string
	Tools                   *struct{ Offered, Withheld int }
}

// serverStates gives the newest report about a session's servers, from session/new, resume or _acpod/servers; locked by the caller.
func (e *extension) serverStates(session string) []serverState {
	for _, f := range slices.Backward(e.frames) {
		var body struct {
			SessionID string `json:"sessionId"`
			Servers   []serverState
			Meta      map[string]json.RawMessage `json:"_meta"`
		}
		switch {
		case f.Method == "_acpod/servers":
			if json.Unmarshal(f.Params, &body) == nil && body.SessionID == session {
				return body.Servers
			}
		case f.Method == "" && f.Result != nil:
			if json.Unmarshal(f.Result, &body) == nil && (body.SessionID == session || e.asked[string(f.ID)] == session) && body.Meta["acpod.dev/servers"] != nil {
				_ = json.Unmarshal(body.Meta["acpod.dev/servers"], &body)
				return body.Servers
			}
		}
	}
	return nil
}

// ready waits until the pod has said that a server is ready.
func (e *extension) ready(session, name string) { e.t.Helper(); e.state(session, name, "ready") }

// state waits until the pod has said that a server is in that state.
func (e *extension) state(session, name, state string) serverState {
	e.t.Helper()
	var found serverState
	e.await(fmt.Sprintf("server %s %s", name, state), func() bool {
		for _, server := range e.serverStates(session) {
			if server.Name == name && server.State == state {
				found = server
				return true
			}
		}
		return false
	})
	return found
}

// prompt sends a line and gives what was streamed until the answer, and the answer.
func (e *extension) prompt(session, text string) (streamed string, answer frame) {
	e.t.Helper()
	e.mu.Lock()
	from := len(e.frames)
	e.mu.Unlock()
	id := e.sendPrompt(session, text)
	answer = e.answer(id)
	return e.streamed(session, from, id), answer
}

func (e *extension) sendPrompt(session, text string) string {
	e.t.Helper()
	return e.send("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}})
}

// streamed joins the agent's text for a session from a frame on until the answer of request id.
func (e *extension) streamed(session string, from int, id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var text strings.Builder
	for _, f := range e.frames[from:] {
		if f.Method == "" && string(f.ID) == id {
			break
		}
		text.WriteString(chunk(f, session))
	}
	return text.String()
}

func chunk(f frame, session string) string {
	var params struct {
		SessionID string
		Update    struct {
			SessionUpdate string
			Content       json.RawMessage
		}
	}
	if f.Method != "session/update" || json.Unmarshal(f.Params, &params) != nil || params.SessionID != session ||
		params.Update.SessionUpdate != "agent_message_chunk" {
		return ""
	}
	var content struct{ Text string }
	_ = json.Unmarshal(params.Update.Content, &content)
	return content.Text
}

// says wants a prompt to stream exactly that and to end its turn.
func (e *extension) says(session, text, want string) {
	e.t.Helper()
	streamed, answer := e.prompt(session, text)
	if streamed != want || stopReason(answer) != "end_turn" {
		e.t.Errorf("%q streamed %q and was answered %.300s; want %q", text, streamed, answer.raw, want)
	}
}

func stopReason(f frame) string {
	var result struct{ StopReason string }
	_ = json.Unmarshal(f.Result, &result)
	return result.StopReason
}

// count gives the frames received of a method, in order; inner looks at the flattened method of an mcp/message as well.
func (e *extension) received(method string) []frame {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []frame
	for _, f := range e.frames {
		if f.Method == method {
			found = append(found, f)
		}
	}
	return found
}

// closeCode waits for the pod to close the socket and gives the code.
func (e *extension) closeCode() uint16 {
	e.t.Helper()
	e.await("the pod's close", func() bool { return e.gone })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed == nil {
		return 0
	}
	return e.closed.Code
}
