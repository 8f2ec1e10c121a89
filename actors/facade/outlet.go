package facade

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// outlet is where one message is answered: the response of its HTTP request, or the lines of whoever brought it. It is used by
// one goroutine at a time. An error means that the client is gone.
type outlet interface {
	// answer writes the one answer; status is what HTTP says with it.
	answer(a answer, status int) error
	// event writes a message that comes before the answer.
	event(a answer) error
	// taken says that a message which is owed no answer was accepted.
	taken()
	// full says which account had no room for the message.
	full(id jsonrpc.ID, err error)
}

// httpOutlet is a response. It becomes a stream of events with the first of them; then the answer is the last.
type httpOutlet struct {
	front *front
	paced *pacedWriter

	streaming bool
	err       error // of the stream; nothing more is written then
}

func (o *httpOutlet) answer(a answer, status int) error {
	switch {
	case o.err != nil:
		return o.err
	case o.streaming:
		return sendEvent(o.paced, a)
	}
	return a.send(o.paced, status)
}

func (o *httpOutlet) event(a answer) error {
	if !o.streaming {
		o.streaming = true
		o.err = startStream(o.paced)
	}
	if o.err == nil {
		o.err = sendEvent(o.paced, a)
	}
	return o.err
}

func (o *httpOutlet) taken() {
	o.paced.arm()
	o.paced.w.WriteHeader(http.StatusAccepted)
}

func (o *httpOutlet) full(_ jsonrpc.ID, err error) { o.front.full(o.paced.w, err) }

// lineOutlet writes each message as a line.
type lineOutlet struct {
	front *front
	line  func(write func(io.Writer) error) error
	err   error
}

func (o *lineOutlet) answer(a answer, _ int) error {
	if o.err == nil {
		o.err = o.line(func(w io.Writer) error { return a.writeTo(oneLine{w}) })
	}
	return o.err
}

func (o *lineOutlet) event(a answer) error { return o.answer(a, http.StatusOK) }

func (o *lineOutlet) taken() {}

func (o *lineOutlet) full(id jsonrpc.ID, err error) {
	o.front.count("overloaded")
	if !id.IsZero() { // a notification is dropped
		_ = o.answer(errorAnswer(id, overloadedError(err).AppendObject(nil)), http.StatusServiceUnavailable)
	}
}

// overloadedError says which account had no room, as far as it is known.
func overloadedError(err error) *jsonrpc.Error {
	full, ok := errors.AsType[*kernel.Overloaded](err)
	if !ok {
		return jsonrpc.Draining(time.Second) // the account of somebody who is going
	}
	return jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: full.Scope, Limit: full.Limit, Used: full.Used, Size: full.Size, RetryAfter: full.RetryAfter})
}

// oneLine takes out the line breaks that a message may have between its tokens; inside of a string there are none.
type oneLine struct{ w io.Writer }

// Write implements io.Writer.
func (o oneLine) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		rest := b[written:]
		end := lineBreak(rest)
		if end != 0 {
			n, err := o.w.Write(rest[:end])
			written += n
			if err != nil {
				return written, err
			}
			continue
		}
		if _, err := o.w.Write([]byte(" ")); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}
