package facade

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// writeChunk is how much is written under one deadline, so that a slow client that keeps reading is never cut off, and
// one that reads nothing always is.
const writeChunk = 64 << 10

// pacedWriter writes to a client, moving the write deadline on with each chunk.
type pacedWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func newPacedWriter(w http.ResponseWriter, timeout time.Duration) *pacedWriter {
	return &pacedWriter{w: w, control: http.NewResponseController(w), timeout: timeout}
}

// arm gives the next write, and the flush that net/http does after the handler, their time.
func (p *pacedWriter) arm() { _ = p.control.SetWriteDeadline(time.Now().Add(p.timeout)) }

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	written := 0
	for {
		part := b[written:min(len(b), written+writeChunk)]
		p.arm()
		n, err := p.w.Write(part)
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// flush sends what net/http still buffers.
func (p *pacedWriter) flush() error {
	p.arm()
	if err := p.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

const (
	envelopeOpen   = `{"jsonrpc":"2.0","id":`
	envelopeResult = `,"result":`
	envelopeError  = `,"error":`
	// resultComplete is what a result of the stateless versions must say; most providers speak an older one.
	resultComplete = `"resultType":"complete"`
)

// answer is one JSON-RPC response as three pieces: what stands before the payload, the payload as it came, and what
// stands behind it. The payload, which may have megabytes, is never copied.
type answer struct {
	head, payload, tail []byte
	// quoted: the payload is text that is written as the inside of a JSON string.
	quoted bool
}

// resultAnswer frames a result object. For a stateless request it says that the result is complete, where the provider's
// object does not say so itself.
func resultAnswer(id jsonrpc.ID, result []byte, stateless bool) answer {
	head := append(id.Append([]byte(envelopeOpen)), envelopeResult...)
	if open := bytes.IndexByte(result, '{'); stateless && open >= 0 && !says(result, "resultType") {
		rest := bytes.TrimLeft(result[open+1:], " \t\r\n")
		head = append(append(head, '{'), resultComplete...)
		if len(rest) > 0 && rest[0] != '}' {
			head = append(head, ',')
		}
		return answer{head: head, payload: rest, tail: []byte("}")}
	}
	return answer{head: head, payload: result, tail: []byte("}")}
}

// textAnswer frames a text as a result with one text block.
func textAnswer(id jsonrpc.ID, text []byte, stateless bool) answer {
	head := append(id.Append([]byte(envelopeOpen)), envelopeResult...)
	head = append(head, '{')
	if stateless {
		head = append(append(head, resultComplete...), ',')
	}
	head = append(head, `"content":[{"type":"text","text":"`...)
	return answer{head: head, payload: text, tail: []byte(`"}]}}`), quoted: true}
}

// errorAnswer frames an error object.
func errorAnswer(id jsonrpc.ID, object []byte) answer {
	return answer{head: append(id.Append([]byte(envelopeOpen)), envelopeError...), payload: object, tail: []byte("}")}
}

// isFinal reports whether a client of the stateless versions takes a provider's result for the end of the call. Another one, such as
// input_required, it would take for a question of the facade: from a server that nobody names, to a user whom nobody may ask.
func isFinal(result []byte) bool {
	const member = "resultType"
	if !bytes.Contains(result, []byte(member)) && !bytes.Contains(result, []byte(`\u00`)) { // a letter of the name may be escaped
		return true
	}
	view, err := jsonrpc.ParseObject(result)
	if err != nil || view.Unique(member) != nil {
		return false
	}
	said, given := view.Get(member)
	text, _ := jsonrpc.String(said)
	return !given || text == "complete"
}

// says reports whether the object has a member of that name. The text is searched first: parsing is only for the few
// that might have it.
func says(object []byte, name string) bool {
	if !bytes.Contains(object, []byte(name)) && !bytes.Contains(object, []byte(`\u00`)) {
		return false
	}
	view, err := jsonrpc.ParseObject(object)
	return err == nil && view.Has(name)
}

func (a answer) size() int {
	n := len(a.payload)
	if a.quoted {
		n = quotedSize(a.payload)
	}
	return len(a.head) + n + len(a.tail)
}

// writeTo writes the pieces one after the other.
func (a answer) writeTo(w io.Writer) error {
	if _, err := w.Write(a.head); err != nil {
		return err
	}
	var err error
	if a.quoted {
		err = writeQuoted(w, a.payload)
	} else {
		_, err = w.Write(a.payload)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(a.tail)
	return err
}

// send writes the answer as the whole body of the response. Its error means that the client is gone.
func (a answer) send(p *pacedWriter, status int) error {
	h := p.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(a.size()))
	p.arm()
	p.w.WriteHeader(status)
	if err := a.writeTo(p); err != nil {
		return err
	}
	return p.flush()
}
