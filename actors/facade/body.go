package facade

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

var (
	errTooLarge = errors.New("facade: the body is over the limit")
	errCutShort = errors.New("facade: the body did not arrive whole")
)

// readBody reads the body of a request, paid before a byte of it is read: by Content-Length, or for a body without one
// by the limit, which shrinks to what came. Errors: errTooLarge, errCutShort, *kernel.Overloaded of the account. The
// caller releases the lease when nothing refers to the bytes any more.
func readBody(w http.ResponseWriter, r *http.Request, account *kernel.Account, limit int64) ([]byte, *kernel.Lease, error) {
	size := r.ContentLength
	if size > limit {
		return nil, nil, errTooLarge
	}
	if size < 0 {
		size = limit
	}
	// One byte more than the limit tells a body that is too long from one that is exactly as long as it may be.
	lease, err := account.Acquire(size + 1)
	if err != nil {
		return nil, nil, err
	}
	body, err := readAtMost(r.Body, size, r.ContentLength >= 0)
	switch {
	case err == nil && int64(len(body)) > limit:
		err = errTooLarge
	case err == nil && r.ContentLength >= 0 && int64(len(body)) != r.ContentLength:
		err = errCutShort
	}
	if err != nil {
		lease.Release()
		return nil, nil, err
	}
	// The server's read deadline has to go at once: net/http keeps reading the connection to see whether the client leaves,
	// and a deadline that fires there would look like that. Where the body did not come whole it stays, and ends the
	// connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if r.ContentLength < 0 {
		// The buffer grew by doubling; what it holds is charged, not what it was charged for.
		lease.Shrink(int64(cap(body)))
	}
	return body, lease, nil
}

// readAtMost reads up to size+1 bytes. The buffer grows with what arrives: to the whole of a known size once something
// has, by doubling otherwise.
func readAtMost(body io.Reader, size int64, known bool) ([]byte, error) {
	const first = 4 << 10
	buffer := make([]byte, 0, min(size+1, first))
	for {
		if int64(len(buffer)) > size {
			return buffer, nil
		}
		if len(buffer) == cap(buffer) {
			larger := size + 1
			if !known {
				larger = min(int64(2*cap(buffer)), larger)
			}
			buffer = append(make([]byte, 0, larger), buffer...)
		}
		n, err := body.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return nil, errors.Join(errCutShort, err)
		}
	}
}
