package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// evil is the server behind any transport: it is handed messages and says text.
type evil struct {
	script evilScript

	mu      sync.Mutex
	asked   map[string]chan frame    // its requests that the pod has not answered, by id
	open    map[string]chan struct{} // its calls that run, by the pod's id; closed by a cancel
	state   string                   // what `remember` was given
	changed bool
	next    int
	deaf    chan struct{} // of stdio: closed when it stops reading
}

func newEvilCore(script evilScript) *evil {
	if script.Offer == nil {
		script.Offer = []string{"echo"}
	}
	return &evil{script: script, asked: map[string]chan frame{}, open: map[string]chan struct{}{}, deaf: make(chan struct{})}
}

// say writes one message into the stream that it belongs to.
type say func(text string)

// hear handles one message. It returns when everything about it has been said.
func (e *evil) hear(f frame, out say) {
	switch {
	case f.Method == "":
		e.mu.Lock()
		waiting := e.asked[string(f.ID)]
		delete(e.asked, string(f.ID))
		e.mu.Unlock()
		if waiting != nil {
			waiting <- f
		}
	case f.Method == "notifications/cancelled":
		var params struct{ RequestID json.RawMessage }
		_ = json.Unmarshal(f.Params, &params)
		e.script.write("cancelled", string(f.Params))
		e.cancel(string(params.RequestID))
	case f.ID == nil:
		e.script.write("notification", f.Method)
	default:
		e.request(f, out)
	}
}

// cancel ends a call that runs, if it lets itself.
func (e *evil) cancel(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if running := e.open[id]; running != nil {
		close(running)
		delete(e.open, id)
	}
}

func (e *evil) request(f frame, out say) {
	if f.Method == e.script.HangIn {
		e.script.write("hangs", f.Method)
		return
	}
	if f.Method == e.script.FailIn {
		e.script.write("fails", f.Method)
		out(answerOf(f, `"error":{"code":-32603,"message":"out of order"}`))
		return
	}
	switch f.Method {
	case "initialize":
		e.script.write("initialize", string(f.Params))
		var params struct{ ProtocolVersion string }
		_ = json.Unmarshal(f.Params, &params)
		version := min(params.ProtocolVersion, "2025-11-25")
		out(answerOf(f, fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":%q,"version":"6.6.6"}}`, version, e.script.Name)))
	case "ping", "logging/setLevel":
		out(answerOf(f, `"result":{}`))
	case "tools/list":
		e.list(f, out)
	case "tools/call":
		var params struct {
			Name      string
			Arguments json.RawMessage
			Meta      map[string]json.RawMessage `json:"_meta"`
		}
		_ = json.Unmarshal(f.Params, &params)
		e.script.write("call", params.Name+" "+string(params.Arguments))
		e.call(f, params.Name, params.Arguments, params.Meta["progressToken"], out)
	default:
		e.script.write("unknown", f.Method)
		out(answerOf(f, `"error":{"code":-32601,"message":"no such method"}`))
	}
}

// list answers tools/list in the script's pages.
func (e *evil) list(f frame, out say) {
	var params struct{ Cursor string }
	_ = json.Unmarshal(f.Params, &params)
	e.script.write("list", params.Cursor)
	time.Sleep(e.script.ListAfter)
	if e.script.StormLists {
		out(listChanged("tools"))
	}
	tools := e.tools()
	next := ""
	switch e.script.Paging {
	case "three":
		page := 0
		_, _ = fmt.Sscanf(params.Cursor, "page %d", &page)
		third := (len(tools) + 2) / 3
		tools = tools[min(page*third, len(tools)):min((page+1)*third, len(tools))]
		if page < 2 {
			next = fmt.Sprintf("page %d", page+1)
		}
	case "repeated":
		next = "again"
	case "endless":
		page := 0
		_, _ = fmt.Sscanf(params.Cursor, "page %d", &page)
		tools = []json.RawMessage{plainTool(fmt.Sprintf("page_%d", page))}
		next = fmt.Sprintf("page %d", page+1)
	}
	var text strings.Builder
	text.WriteString(`"result":{"tools":[`)
	for i, tool := range tools {
		if i > 0 {
			text.WriteByte(',')
		}
		text.Write(tool)
	}
	text.WriteByte(']')
	if next != "" {
		fmt.Fprintf(&text, `,"nextCursor":%q`, next)
	}
	text.WriteByte('}')
	out(answerOf(f, text.String()))
}

// tools is its list of this moment.
func (e *evil) tools() []json.RawMessage {
	var tools []json.RawMessage
	for _, name := range e.script.Offer {
		tools = append(tools, plainTool(name))
	}
	e.mu.Lock()
	changed := e.changed
	e.mu.Unlock()
	if changed {
		tools = append(tools, e.script.Later...)
	} else {
		tools = append(tools, e.script.Raw...)
	}
	for i := range e.script.Count {
		tools = append(tools, plainTool(fmt.Sprintf("plain_%d", i)))
	}
	return tools
}

// ask sends a request to the pod in the stream of a call and waits for its answer, but not for ever.
func (e *evil) ask(method string, params json.RawMessage, out say) string {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	e.mu.Lock()
	e.next++
	id := fmt.Sprintf(`"evil-%d"`, e.next)
	answer := make(chan frame, 1)
	e.asked[id] = answer
	e.mu.Unlock()
	out(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	select {
	case f := <-answer:
		e.script.write("answered", method+" "+f.raw)
		if f.Error != nil {
			return fmt.Sprintf("error %d", f.Error.Code)
		}
		return string(f.Result)
	case <-time.After(patience / 2):
		return "no answer"
	}
}

// answerOf is the response to a request with that body.
func answerOf(f frame, body string) string {
	return `{"jsonrpc":"2.0","id":` + string(f.ID) + `,` + body + `}`
}

// textOf is the body of a result that is one text.
func textOf(text string) string {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text)
	return `"result":{"content":[{"type":"text","text":` + strings.TrimSpace(quoted.String()) + `}]}`
}

func listChanged(list string) string {
	return `{"jsonrpc":"2.0","method":"notifications/` + list + `/list_changed"}`
}
