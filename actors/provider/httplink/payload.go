package httplink

import (
	"errors"
	"io"
	"sync"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
)

// payload is the body of one POST and the lease that pays for it. Both go when it was written, and no later than when nobody will
// read it any more. All methods are safe from any goroutine.
type payload struct {
	mu      sync.Mutex
	parts   [3][]byte
	size    int64
	held    *kernel.Lease
	readers int
	given   bool // up: gone once no reader is left
	left    bool // a reader came to the end: the whole message left us
}

func newPayload(m link.Message) *payload {
	return &payload{parts: [3][]byte{m.Head, m.Body, m.Tail}, size: int64(len(m.Head) + len(m.Body) + len(m.Tail)), held: m.Held}
}

var errPayloadGone = errors.New("the message was written and is gone")

// open is a reader of the whole from its beginning. The HTTP transport closes it, and opens another when nothing of the first was written.
func (p *payload) open() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed() {
		return nil, errPayloadGone
	}
	p.readers++
	p.left = false
	return &payloadReader{of: p, parts: p.parts}, nil
}

// release gives it up as soon as nobody reads it. A second time does nothing.
func (p *payload) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = true
	p.free()
}

// wasLeft reports whether the whole message was handed to a connection.
func (p *payload) wasLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// freed: a reader that has come to the end holds nothing any more, though the transport may close it later.
func (p *payload) freed() bool { return p.given && (p.readers == 0 || p.left) }

func (p *payload) free() {
	if p.freed() {
		p.parts = [3][]byte{}
		p.held.Release()
	}
}

type payloadReader struct {
	of     *payload
	parts  [3][]byte
	closed bool
}

func (r *payloadReader) Read(b []byte) (n int, err error) {
	for i := range r.parts {
		m := copy(b[n:], r.parts[i])
		r.parts[i] = r.parts[i][m:]
		n += m
	}
	if len(r.parts[2]) > 0 || len(r.parts[1]) > 0 || len(r.parts[0]) > 0 {
		return n, nil
	}
	r.parts = [3][]byte{}
	r.of.mu.Lock()
	r.of.left = true
	r.of.free()
	r.of.mu.Unlock()
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *payloadReader) Close() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if !r.closed {
		r.closed, r.parts = true, [3][]byte{}
		r.of.readers--
		r.of.free()
	}
	return nil
}
