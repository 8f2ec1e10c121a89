package clientcheck

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// What a client is held to, as a pod is configured by default.
const (
	frameBytes   = 8 << 20
	earlyBytes   = 64 << 10
	requestBytes = 1 << 20
	maxOpen      = 256      // requests of a client that are kept open here; a pod answers before there are as many
	heldBytes    = 64 << 20 // answers that are kept until they are judged, all together
)

// question is a request of the pod.
type question struct {
	id     jsonrpc.ID
	method string
	twice  string // the row that a second answer is about
	reply  *jsonrpc.Frame
	size   int // bytes that the reply holds
}

// watcher judges the messages of one connection as they come, whatever the run is about. It is pure.
type watcher struct {
	open     map[string]string   // the client's requests without an answer: key of the id → method
	asked    map[int64]*question // the pod's requests, answered ones too: a run asks few
	next     int64               // id of the pod's latest request
	targets  map[string]bool     // connection ids that the client gave, and server ids of generation C
	tokens   map[string]bool     // progress tokens that the pod gave
	silent   string              // the row about what was sent just now and must not be answered, "" for none
	greeted  bool                // initialize came
	answered bool                // and was answered
	frames   int
	answers  int
	requests int
	inbound  int
	held     int // bytes of the replies
	room     int // that they may have
}

func newWatcher() *watcher {
	return &watcher{open: map[string]string{}, asked: map[int64]*question{}, targets: map[string]bool{}, tokens: map[string]bool{}, room: heldBytes}
}

// ask enters a request of the pod and gives it an id.
func (w *watcher) ask(method string) *question {
	w.next++
	q := &question{id: jsonrpc.IntID(w.next), method: method, twice: rowAnswers}
	w.asked[w.next] = q
	return q
}

// take judges one message. ok says that f is one that can be acted upon.
func (w *watcher) take(binary bool, data []byte) (f jsonrpc.Frame, ok bool, marks []mark) {
	w.frames++
	shown := jsonrpc.Show(string(data[:min(len(data), 1<<10)]))
	if binary {
		return f, false, []mark{failed(rowText, fmt.Sprintf("a binary message of %d bytes", len(data)), "a pod drops binary messages")}
	}
	if !utf8.Valid(data) {
		marks = append(marks, failed(rowText, shown, "the text is not UTF-8"))
		data, _ = jsonrpc.ValidUTF8(data)
	}
	f, fault := jsonrpc.Scan(data)
	if one, bad := misfit(f, fault, data, shown); bad {
		return f, false, append(marks, one)
	}
	if f.Version != jsonrpc.Version { // of an answer, which a pod takes all the same
		marks = append(marks, failed(rowVersion, shown, "jsonrpc is %s", orAbsent(f.Version)))
	}
	if f.Variant != "" {
		marks = append(marks, failed(rowJSON, jsonrpc.Show(f.Variant), "a member that differs from one of the envelope in case alone"))
	}
	if f.Kind == jsonrpc.Response {
		if o, err := jsonrpc.ParseObject(data); err == nil && f.Error != nil && o.Has("result") {
			marks = append(marks, failed(rowShape, shown, "it has both a result and an error"))
		}
		return f, true, append(marks, w.response(f)...)
	}
	limit := requestBytes
	if !w.greeted {
		limit = earlyBytes
	}
	if len(data) > limit {
		marks = append(marks, failed(rowSizes, fmt.Sprintf("%s of %d bytes", show(f), len(data)), "a pod takes %d bytes here", limit))
	}
	if len(data) > requestBytes {
		return f, false, marks
	}
	marks = append(marks, w.first(f)...)
	marks = append(marks, w.call(f)...)
	return f, true, marks
}

// misfit says of a message that is no JSON-RPC which row is about it.
func misfit(f jsonrpc.Frame, fault *jsonrpc.Fault, data []byte, shown string) (mark, bool) {
	text := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case fault == nil && f.Version == jsonrpc.Version:
		return mark{}, false
	case fault != nil && fault.Code == jsonrpc.CodeParse:
		return failed(rowJSON, shown, "%s", fault.Message), true
	case len(text) > 0 && text[0] == '[':
		return failed(rowBatch, shown, "a batch is answered -32600"), true
	}
	o, err := jsonrpc.ParseObject(data)
	if err != nil {
		return failed(rowJSON, shown, "it is no object"), true
	}
	if raw, has := o.Get("id"); has {
		if _, sound := jsonrpc.ParseID(raw); !sound {
			return failed(rowIDs, "the id "+jsonrpc.Show(string(raw)), "an id is a string of at most %d bytes or an integer", jsonrpc.MaxIDBytes), true
		}
	}
	if f.Version != jsonrpc.Version && f.HasMethod {
		return failed(rowVersion, shown, "jsonrpc is %s", orAbsent(f.Version)), true
	}
	if f.Kind == jsonrpc.Response || fault == nil {
		return mark{}, false // an answer with an id that is none of ours
	}
	return failed(rowJSON, shown, "%s", fault.Message), true
}

func orAbsent(text string) string {
	if text == "" {
		return "missing"
	}
	return jsonrpc.Show(text)
}

// show names a message of the client.
func show(f jsonrpc.Frame) string {
	switch f.Kind {
	case jsonrpc.Request:
		return "the request " + jsonrpc.Show(f.Method)
	case jsonrpc.Notification:
		return "the notification " + jsonrpc.Show(f.Method)
	}
	if f.Error != nil {
		e := jsonrpc.ParseError(f.Error)
		return fmt.Sprintf("error %d %s", e.Code, jsonrpc.Show(e.Message))
	}
	return "result " + jsonrpc.Show(string(f.Result[:min(len(f.Result), 1<<10)]))
}

// response takes an answer to the pod.
func (w *watcher) response(f jsonrpc.Frame) (marks []mark) {
	w.answers++
	stray := func(row, why string, values ...any) []mark {
		if w.silent != "" {
			row = w.silent
		}
		return append(marks, failed(row, fmt.Sprintf("%s to id %.40s", show(f), f.ID.Raw()), why, values...))
	}
	n, isInt := f.ID.Int()
	switch q := w.asked[n]; {
	case f.ID.IsNull():
		return stray(rowAnswers, "an answer without an id answers nothing")
	case !isInt || q == nil:
		return stray(rowAnswers, "the pod asked nothing under that id")
	case q.reply != nil:
		marks = append(marks, failed(q.twice, fmt.Sprintf("a second answer to %s: %s", q.method, show(f)), "one request has one answer"))
	default:
		q.reply, q.size = &f, f.Size
		if w.held += f.Size; w.held > w.room {
			marks = append(marks, failed(rowSizes, fmt.Sprintf("answers of %d bytes at once", w.held), "a pod takes 48 MiB of a whole connection"))
			w.judged(q)
		}
		if one, bad := misshapen(f); bad {
			marks = append(marks, one)
		}
	}
	return marks
}

// judged lets the bytes of an answer go.
func (w *watcher) judged(q *question) {
	if q.reply != nil {
		w.held -= q.size
		q.reply, q.size = &jsonrpc.Frame{Kind: jsonrpc.Response, ID: q.reply.ID}, 0
	}
}

// misshapen says what is wrong with the outside of an answer.
func misshapen(f jsonrpc.Frame) (mark, bool) {
	if f.Error == nil {
		return mark{}, false
	}
	o, err := jsonrpc.ParseObject(f.Error)
	if err != nil {
		return failed(rowShape, "error "+jsonrpc.Show(string(f.Error)), "an error is an object with code and message"), true
	}
	code, _ := o.Get("code")
	message, _ := o.Get("message")
	_, codeOK := jsonrpc.Int(code)
	_, messageOK := jsonrpc.String(message)
	if !codeOK || !messageOK {
		return failed(rowShape, "error "+jsonrpc.Show(string(f.Error)), "an error has an integer code and a string message"), true
	}
	return mark{}, false
}

// first holds the beginning of a connection to its order.
func (w *watcher) first(f jsonrpc.Frame) []mark {
	initialize := f.Method == acp.MethodInitialize && f.Kind == jsonrpc.Request
	switch {
	case f.Method == acp.MethodCancelRequest && w.greeted: // it may take its initialize back
		return nil
	case !w.greeted && !initialize:
		return []mark{failed(rowFirst, show(f), "a pod answers -32002 to what comes before initialize")}
	case w.greeted && !w.answered:
		return []mark{failed(rowFirst, show(f), "it was sent before initialize was answered, and with it what the pod speaks and offers")}
	}
	w.greeted = true
	return nil
}

// call judges a request or notification of the client.
func (w *watcher) call(f jsonrpc.Frame) (marks []mark) {
	if f.Kind == jsonrpc.Request {
		w.requests++
		key := f.ID.Key()
		_, open := w.open[key]
		switch {
		case f.ID.IsNull():
			marks = append(marks, failed(rowIDs, "the id null of "+show(f), "an answer to it cannot be told from an error about a broken message"))
		case open:
			marks = append(marks, failed(rowReuse, fmt.Sprintf("%s with the id %.40s of %s", show(f), f.ID.Raw(), jsonrpc.Show(w.open[key])), "two answers under one id cannot be told apart"))
		case len(w.open) < maxOpen:
			w.open[key] = f.Method
		}
	}
	switch {
	case acp.IsInbound(f.Method):
		marks = append(marks, w.tunnelled(f)...)
	case f.Method == acp.MethodCancelRequest, f.Method == acp.MethodMCPCancel && f.Kind == jsonrpc.Notification:
	case foreign(f):
		marks = append(marks, failed(rowOwn, show(f), "only a pod or an agent sends it"))
	}
	return marks
}

// foreign tells what a client has no business with. Unknown methods are its own affair: a pod answers them -32601.
func foreign(f jsonrpc.Frame) bool {
	if acp.OfClient(f.Method) {
		return true
	}
	for _, prefix := range []string{"_acpod/", "_mcp/", "mcp/", "proxy/"} {
		if strings.HasPrefix(f.Method, prefix) {
			return true
		}
	}
	return false
}

// tunnelled judges what a client's server sends of its own accord.
func (w *watcher) tunnelled(f jsonrpc.Frame) []mark {
	w.inbound++
	in, err := acp.ParseInbound(f.Method, f.Params)
	switch {
	case err != nil:
		return []mark{failed(rowInbound, show(f), "%s", err)}
	case !w.targets[in.Target]:
		return []mark{failed(rowInbound, "target "+jsonrpc.Show(in.Target), "the client never gave it")}
	case in.Method == mcp.MethodProgress:
		token, sound := mcp.ParseProgress(in.Params)
		if !sound || !w.tokens[token.Key()] {
			return []mark{failed(rowInbound, "progress with the token "+jsonrpc.Show(string(token.Raw())), "no request had that token")}
		}
	}
	return []mark{passed(rowInbound, "%s", jsonrpc.Show(in.Method))}
}

// done notes that a request of the client was answered.
func (w *watcher) done(id jsonrpc.ID) { delete(w.open, id.Key()) }

// verdicts are the rows that are kept as long as nothing broke them, at the end of a connection.
func (w *watcher) verdicts() (marks []mark) {
	if w.frames == 0 {
		return nil
	}
	for _, row := range []string{rowFraming, rowText, rowJSON, rowBatch, rowVersion, rowIDs, rowReuse, rowAnswers, rowSizes, rowOwn, rowReads} {
		marks = append(marks, passed(row, "%d messages", w.frames))
	}
	if w.answers > 0 {
		marks = append(marks, passed(rowShape, "%d answers", w.answers))
	}
	if w.greeted && w.answered {
		marks = append(marks, passed(rowFirst, ""))
	}
	return marks
}
