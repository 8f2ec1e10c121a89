package agent

import (
	"io"
	"strconv"
	"sync"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// output is standard output. Lines of several goroutines do not mix.
type output struct {
	mu    sync.Mutex
	w     io.Writer
	asked map[string]chan answer // by id of a request of ours
	last  int
}

// answer is what a request of ours came to.
type answer struct {
	result []byte
	failed []byte
}

// raw writes bytes as they are. An error means that nobody reads any more, which the end of stdin tells as well.
func (o *output) raw(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.w.Write(b)
}

func (o *output) line(b []byte) { o.raw(append(b, '\n')) }

func (o *output) result(id jsonrpc.ID, result string) {
	o.line(jsonrpc.AppendResult(nil, id, []byte(result)))
}

func (o *output) failure(id jsonrpc.ID, e *jsonrpc.Error) { o.line(jsonrpc.AppendError(nil, id, e)) }

// update is a session/update; body is the object behind "update".
func (o *output) update(session, body string) { o.line(updateLine(session, body)) }

func updateLine(session, body string) []byte {
	params := append(jsonrpc.AppendString([]byte(`{"sessionId":`), session), `,"update":`...)
	params = append(append(params, body...), '}')
	return jsonrpc.AppendNotification(nil, acp.MethodSessionUpdate, params)
}

func textBody(kind, text string) string {
	return `{"sessionUpdate":"` + kind + `","content":{"type":"text","text":` + quote(text) + `}}`
}

func quote(text string) string { return string(jsonrpc.AppendString(nil, text)) }

// request sends one of ours; what comes of it is read from the channel. forget it when it is not waited for any more.
func (o *output) request(method, params string, pad int) (jsonrpc.ID, <-chan answer) {
	o.mu.Lock()
	o.last++
	id := jsonrpc.StringID("chaos-" + strconv.Itoa(o.last))
	came := make(chan answer, 1)
	o.asked[id.Key()] = came
	o.mu.Unlock()
	line := jsonrpc.AppendRequest(nil, id, method, []byte(params))
	if pad > len(line) {
		line = padded(line, pad)
	}
	o.line(line)
	return id, came
}

// answered tells whether the response was to a request of ours that was open.
func (o *output) answered(frame jsonrpc.Frame) bool {
	o.mu.Lock()
	came, open := o.asked[frame.ID.Key()]
	delete(o.asked, frame.ID.Key())
	o.mu.Unlock()
	if open {
		came <- answer{result: frame.Result, failed: frame.Error}
	}
	return open
}

// padded makes a line that many bytes long by white space before its last bracket: it stays the same message.
func padded(line []byte, size int) []byte {
	if size <= len(line) {
		return line
	}
	out := make([]byte, 0, size)
	out = append(out, line[:len(line)-1]...)
	for len(out) < size-1 {
		out = append(out, ' ')
	}
	return append(out, line[len(line)-1])
}
