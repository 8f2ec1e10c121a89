package httplink

import (
	"context"
	"io"
	"sync"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// chunks are what streams are read by. Each is paid for by the exchange that uses it.
var chunks = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// reader reads the events of one stream. It belongs to one goroutine.
type reader struct {
	events
	body  io.Reader
	chunk *[8 << 10]byte
	rest  []byte // of the chunk, not fed yet
	data  buffer
}

func newReader(body io.Reader, account *kernel.Account, limit int64) *reader {
	return &reader{body: body, chunk: chunks.Get().(*[8 << 10]byte), data: buffer{account: account, limit: limit}}
}

func (r *reader) close() {
	r.data.drop()
	chunks.Put(r.chunk)
	r.chunk, r.rest = nil, nil
}

// lossError is the error of one event whose data could not be kept. The stream goes on.
type lossError struct {
	cause error
	edge  jsonrpc.Edge // of the data: which message it was
	whole bool         // its end was seen
}

func (e *lossError) Error() string { return e.cause.Error() }
func (e *lossError) Unwrap() error { return e.cause }

// edgeBytes is what is kept of the beginning and of the end of data that does not fit.
const edgeBytes = 1 << 10

// pass lets data go by that is not kept.
func (e *lossError) pass(b []byte) {
	if len(e.edge.Head) < edgeBytes {
		e.edge.Head = append(e.edge.Head, b[:min(len(b), edgeBytes-len(e.edge.Head))]...)
	}
	e.edge.Tail = append(e.edge.Tail, b[max(0, len(b)-edgeBytes):]...)
	if over := len(e.edge.Tail) - edgeBytes; over > 0 {
		e.edge.Tail = e.edge.Tail[:copy(e.edge.Tail, e.edge.Tail[over:])]
	}
}

// next reads one event and gives its name; its data is in r.data. The error is a *lossError for an event that does not fit: at its end, or
// when patience bytes more have gone by (negative: however many); any other is the end of the stream.
func (r *reader) next(ctx context.Context, patience int64) (name string, err error) {
	var lost *lossError
	var skipped int64
	keep := func(b []byte) {
		if lost == nil {
			err := r.data.add(ctx, b)
			if err == nil {
				return
			}
			lost = &lossError{cause: err}
			lost.pass(r.data.b)
			r.data.drop()
		}
		lost.pass(b)
		skipped += int64(len(b))
	}
	r.data.drop()
	for {
		for len(r.rest) > 0 {
			n, ended := r.feed(r.rest, keep)
			r.rest = r.rest[n:]
			if lost != nil && (ended || patience >= 0 && skipped > patience) {
				lost.whole = ended
				r.Name()
				return "", lost
			}
			if ended {
				return r.Name(), nil
			}
		}
		n, err := r.body.Read(r.chunk[:])
		r.rest = r.chunk[:n]
		if n == 0 && err != nil {
			return "", err
		}
	}
}

// isMessage: an event without data gives its id only, and other names than message mean nothing here.
func (l *httpLink) isMessage(name string, data []byte) bool {
	if name != "" && name != "message" {
		l.to.Refused("unknown_event")
		return false
	}
	return len(data) > 0
}

// from makes a stream that is taken up again know what the one before said.
func (r *reader) from(m mark) {
	r.ID, r.LostID, r.badID, r.Retry = m.id, m.lost, m.lost, m.retry
	r.newID.reset()
	r.newID.add([]byte(m.id), maxIDBytes)
}

func (r *reader) mark() mark { return mark{r.ID, r.LostID, r.Retry} }
