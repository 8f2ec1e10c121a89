package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A LineTooLong says that a line was longer than its reader allows, or not paid
// for. The reader has skipped it to its end and goes on with the next one.
type LineTooLong struct {
	Skipped int64 // bytes up to the newline
	Max     int   // the limit
	Cause   error // what Charge said, when it was Charge that refused
	// Head and Tail are both ends of a line that Charge refused when all of it was
	// at hand, up to 1 KiB each: so that somebody can tell which answer it was.
	Head, Tail []byte
}

func (e *LineTooLong) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("a line of %d bytes was skipped: %v", e.Skipped, e.Cause)
	}
	return fmt.Sprintf("a line of %d bytes was skipped: more than %d", e.Skipped, e.Max)
}

func (e *LineTooLong) Unwrap() error { return e.Cause }

// A LineReader reads newline-delimited messages with bounded memory. It frames on
// bytes, so a character that is split between two reads is not harmed.
type LineReader struct {
	// Charge, when set before the first Next, is called before memory for a line is
	// taken, with the bytes that it takes more; the sum of a line's calls is the
	// capacity of the slice that Next returns. It may wait. On an error the line is
	// skipped, and the memory that was charged for it is free when Next returns.
	Charge func(more int) error
	// NoResync, when set before the first Next, has a line of more than the limit end the reading: what comes behind it is not looked
	// for. It is for streams that are closed then.
	NoResync bool

	r   *bufio.Reader
	max int
}

// readerBytes is what a reader holds beside the line: one pipe buffer of Linux.
const readerBytes = 64 << 10

// NewLineReader reads lines of at most max bytes, the line's end not counted.
func NewLineReader(r io.Reader, max int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, readerBytes), max: max}
}

// Next returns the next line that is not empty, without its newline and a carriage
// return before it. The line is the caller's own. The last line of a stream needs
// no newline. Errors: *LineTooLong, after which the reader is at the next line;
// io.EOF at the end; otherwise what the stream said, after the line that it cut off.
func (l *LineReader) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if len(line) > 0 {
			return line, nil
		}
	}
}

func (l *LineReader) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := l.r.ReadSlice('\n')
		part := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !part && len(line)+len(piece) == 0 {
			return nil, err
		}
		piece = bytes.TrimSuffix(piece, []byte{'\n'})
		// One byte more may be the carriage return, which is no part of the line.
		if len(line)+len(piece) > l.max+1 {
			return nil, l.skip(len(line)+len(piece), part, nil)
		}
		if line, err = l.grow(line, len(piece), part); err != nil {
			e := l.skip(len(line)+len(piece), part, err)
			if !part && len(line) == 0 {
				e.Head, e.Tail = ends1K(piece)
			}
			return nil, e
		}
		line = append(line, piece...)
		if part {
			continue
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(line) > l.max {
			return nil, &LineTooLong{Skipped: int64(len(line)), Max: l.max}
		}
		return line, nil
	}
}

// ends1K copies both ends of a line.
func ends1K(line []byte) (head, tail []byte) {
	const most = 1 << 10
	return bytes.Clone(line[:min(len(line), most)]), bytes.Clone(line[max(0, len(line)-most):])
}

// grow makes room for n bytes more: exactly that for a line's last piece, else twice
// what there was, so that a long line is copied few times.
func (l *LineReader) grow(line []byte, n int, part bool) ([]byte, error) {
	need := len(line) + n
	if need <= cap(line) {
		return line, nil
	}
	if part {
		need = min(max(need, 2*cap(line)), l.max+1)
	}
	if l.Charge != nil {
		if err := l.Charge(need - cap(line)); err != nil {
			return line, err
		}
	}
	return append(make([]byte, 0, need), line...), nil
}

// skip reads on to the end of the line, of which seen bytes were read already, and
// keeps none of it. The end of the stream ends the line too; Next tells it after.
func (l *LineReader) skip(seen int, part bool, cause error) *LineTooLong {
	e := &LineTooLong{Skipped: int64(seen), Max: l.max, Cause: cause}
	for part && (!l.NoResync || e.Skipped <= int64(l.max)) {
		piece, err := l.r.ReadSlice('\n')
		part = errors.Is(err, bufio.ErrBufferFull)
		e.Skipped += int64(len(bytes.TrimSuffix(piece, []byte{'\n'})))
	}
	return e
}
