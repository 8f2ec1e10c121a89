package httplink

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// defaultResultBytes is the limit of a message where the options say none: the default of limits.result_bytes.
const defaultResultBytes = 8 << 20

func (l *httpLink) limit() int64 {
	if l.options.ResultBytes > 0 {
		return l.options.ResultBytes
	}
	return defaultResultBytes
}

// deliver hands one message of the server on, with its lease. about is the exchange on whose answer's stream it came, nil for none. It
// says whether about is answered now. What is no message, and an answer that nobody waits for, is counted and dropped.
func (l *httpLink) deliver(ctx context.Context, frame []byte, lease *kernel.Lease, about *exchange) (answered bool) {
	frame, lease, err := l.repaired(ctx, frame, lease)
	if err != nil {
		l.to.Refused(scopeOfLoss(err))
		return false
	}
	f, fault := jsonrpc.Scan(frame)
	if fault != nil {
		lease.Release()
		l.to.Refused("junk_message")
		return false
	}
	var id jsonrpc.ID
	if about != nil {
		id = about.id
	}
	if f.Kind != jsonrpc.Response {
		if f.Kind == jsonrpc.Request && l.where().modern {
			lease.Release()
			l.to.Refused("request_without_era") // there are none in the era without a handshake
			return false
		}
		l.to.Message(frame, f, id, lease)
		return false
	}
	l.mu.Lock()
	ex := l.pending[f.ID.Key()]
	ours := ex != nil && l.takeLocked(ex)
	l.mu.Unlock()
	if !ours {
		lease.Release()
		l.to.Refused("late_answer")
		return false
	}
	l.to.Message(frame, f, id, lease)
	ex.body.release()
	if ex != about {
		ex.cancel(errAnsweredElsewhere)
	}
	return ex == about
}

// errAnsweredElsewhere ends the wait of an exchange whose answer came in another stream.
var errAnsweredElsewhere = errors.New("the answer came in another stream")

// passesBy sees to a message that could not be kept: a request of the server is answered with an error, the request that it answers has
// failed. It says whether about's answer may still come.
func (l *httpLink) passesBy(loss *lossError, about *exchange) bool {
	kind, id, _ := loss.edge.Envelope()
	if !loss.whole {
		kind = jsonrpc.Invalid
	}
	switch kind {
	case jsonrpc.Response:
		l.mu.Lock()
		ex := l.pending[id.Key()]
		l.mu.Unlock()
		if ex != nil && ex == about {
			return false
		}
		if ex != nil {
			l.fail(ex, loss.cause)
		}
	case jsonrpc.Request:
		refusal := &jsonrpc.Error{Code: jsonrpc.Internal, Message: "the message is too long for this client"}
		if l.Send(link.Message{Head: jsonrpc.AppendError(nil, id, refusal)}) != nil {
			l.to.Refused("reply")
		}
	case jsonrpc.Invalid:
		if about != nil {
			return false
		}
	case jsonrpc.Notification:
	}
	l.to.Refused(scopeOfLoss(loss.cause))
	return true
}

// repaired replaces what is no UTF-8, and pays for what that makes longer.
func (l *httpLink) repaired(ctx context.Context, frame []byte, lease *kernel.Lease) ([]byte, *kernel.Lease, error) {
	if utf8.Valid(frame) {
		return frame, lease, nil
	}
	defer lease.Release()
	more, err := acquire(ctx, l.to.Account(), 3*int64(len(frame)))
	if err != nil {
		return nil, nil, err
	}
	frame, n := jsonrpc.ValidUTF8(frame)
	more.Shrink(int64(cap(frame)))
	for range min(n, 1) {
		l.to.Refused("not_utf8")
	}
	if int64(len(frame)) > l.limit() {
		more.Release()
		return nil, nil, &link.TooLargeError{Size: int64(len(frame)), Limit: l.limit()}
	}
	return frame, more, nil
}

// scopeOfLoss is under what a message that was not handed on is counted.
func scopeOfLoss(err error) string {
	if full, ok := errors.AsType[*kernel.Overloaded](err); ok {
		return full.Scope
	}
	if _, ok := errors.AsType[*link.TooLargeError](err); ok {
		return "long_message"
	}
	return "cut_message"
}

// reading is the error of an answer that was not read to its end.
func reading(ctx context.Context, err error) error {
	if _, large := errors.AsType[*link.TooLargeError](err); large {
		return err
	}
	if _, full := errors.AsType[*kernel.Overloaded](err); full {
		return err
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return &CutError{err}
}
