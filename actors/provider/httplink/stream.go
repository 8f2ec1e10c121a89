package httplink

import (
	"context"
	"io"
	"sync"

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
type lossError struct{ cause error }

func (e *lossError) Error() string { return e.cause.Error() }
func (e *lossError) Unwrap() error { return e.cause }

// next reads one event and gives its name; its data is in r.data. The error is a *lossError for an event that does not fit: at once
// when atOnce, else at its end, so that the next can be read; any other is the end of the stream.
func (r *reader) next(ctx context.Context, atOnce bool) (name string, err error) {
	var lost error
	r.data.drop()
	for {
		for len(r.rest) > 0 {
			n, ended := r.feed(r.rest, func(b []byte) {
				if lost == nil {
					if lost = r.data.add(ctx, b); lost != nil {
						r.data.drop()
					}
				}
			})
			r.rest = r.rest[n:]
			if lost != nil && (atOnce || ended) {
				r.Name()
				return "", &lossError{lost}
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
