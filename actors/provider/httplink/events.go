package httplink

import (
	"bytes"
	"time"
)

// Bounds of what is kept of an event beside its data.
const (
	maxFieldName = 5  // of those that have a meaning: "event", "retry"
	maxEventName = 16 // of those that have a meaning: "endpoint", "message"
	maxRetry     = 10 // digits
)

// events takes a stream of server-sent events apart (WHATWG HTML, 9.2). It is a machine that can be stopped at any byte: feed is given
// the bytes in any pieces. It keeps little itself; data goes to whoever holds it. The zero value is at the beginning of a stream.
type events struct {
	state   eventState
	bom     int  // bytes of a byte order mark seen at the beginning; -1 = past it
	afterCR bool // a line feed that comes next belongs to the line that has ended
	field   small
	value   small    // of id, event, retry
	into    lineKind // what the value goes to
	lines   int      // data lines of this event so far
	name    small    // of this event
	newID   small    // the last id that was said
	badID   bool     // it was too long to be kept

	// What the stream has said. ID is as of the last event that ended; an event that was cut does not count.
	ID     string
	LostID bool          // the last id was too long, or holds what no header can: nothing can be resumed from it
	Retry  time.Duration // 0 = it said none
}

type eventState uint8

const (
	atLineStart eventState = iota
	inField
	afterColon
	inValue
)

type lineKind uint8

const (
	ignored lineKind = iota
	dataLine
	eventLine
	idLine
	retryLine
)

// small is a text of which only the beginning is kept.
type small struct {
	b    []byte
	over bool
}

func (s *small) add(b []byte, max int) {
	if room := max - len(s.b); len(b) > room {
		b, s.over = b[:room], true
	}
	s.b = append(s.b, b...)
}

func (s *small) reset() { s.b, s.over = s.b[:0], false }

// feed takes bytes of the stream until an event has ended, and says how many; data is given the event's, in pieces that alias b.
func (e *events) feed(b []byte, data func([]byte)) (n int, ended bool) {
	for n < len(b) {
		if e.bom >= 0 {
			if b[n] == "\ufeff"[e.bom] {
				n++
				if e.bom++; e.bom == 3 {
					e.bom = -1
				}
				continue
			}
			// What only began like a mark is the beginning of a field that nobody knows.
			begun := e.bom
			e.bom = -1
			if begun > 0 {
				e.state = inField
				e.field.add([]byte("\ufeff"[:begun]), maxFieldName)
			}
		}
		if e.afterCR {
			e.afterCR = false
			if b[n] == '\n' {
				n++
				continue
			}
		}
		n += e.step(b[n:], data)
		if e.state == atLineStart && e.lines < 0 {
			e.lines = 0
			return n, true
		}
	}
	return n, false
}

// step takes what is of one kind. An event that ended is told by lines = -1.
func (e *events) step(b []byte, data func([]byte)) int {
	switch e.state {
	case atLineStart:
		if isLineEnd(b[0]) {
			e.afterCR = b[0] == '\r'
			e.end()
			return 1
		}
		e.state = inField
		e.field.reset()
		return 0
	case inField:
		i := bytes.IndexAny(b, ":\r\n")
		if i < 0 {
			e.field.add(b, maxFieldName)
			return len(b)
		}
		e.field.add(b[:i], maxFieldName)
		e.begin(data)
		if b[i] == ':' {
			e.state = afterColon
			return i + 1
		}
		e.lineEnds(b[i])
		return i + 1
	case afterColon:
		e.state = inValue
		if b[0] == ' ' {
			return 1
		}
		return 0
	}
	i := lineEnd(b)
	rest := b
	if i >= 0 {
		rest = b[:i]
	}
	switch e.into {
	case dataLine:
		if len(rest) > 0 {
			data(rest)
		}
	case eventLine, idLine, retryLine:
		e.value.add(rest, maxIDBytes)
	}
	if i < 0 {
		return len(b)
	}
	e.lineEnds(b[i])
	return i + 1
}

// begin is told the name of a line's field.
func (e *events) begin(data func([]byte)) {
	e.value.reset()
	e.into = ignored
	if e.field.over {
		return
	}
	switch string(e.field.b) {
	case "data":
		e.into = dataLine
		if e.lines++; e.lines > 1 {
			data([]byte{'\n'})
		}
	case "event":
		e.into = eventLine
	case "id":
		e.into = idLine
	case "retry":
		e.into = retryLine
	}
}

func (e *events) lineEnds(with byte) {
	e.afterCR = with == '\r'
	e.state = atLineStart
	switch v := e.value.b; e.into {
	case eventLine:
		e.name.reset()
		e.name.add(v, maxEventName)
	case idLine:
		if bytes.IndexByte(v, 0) < 0 {
			e.newID.reset()
			e.newID.add(v, maxIDBytes)
			e.badID = e.value.over || !isFieldValue(string(v))
		}
	case retryLine:
		if ms, ok := digits(v); ok && !e.value.over {
			e.Retry = ms
		}
	}
}

// end ends an event. One without a data line is none, but its id counts.
func (e *events) end() {
	e.LostID = e.badID
	if e.ID != string(e.newID.b) {
		e.ID = string(e.newID.b)
	}
	if e.lines == 0 {
		e.name.reset()
		return
	}
	e.lines = -1
}

// Name is that of the event that has just ended; it forgets it.
func (e *events) Name() string {
	s := string(e.name.b)
	if e.name.over {
		s += "…"
	}
	e.name.reset()
	return s
}

func digits(b []byte) (time.Duration, bool) {
	if len(b) == 0 || len(b) > maxRetry {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return time.Duration(n) * time.Millisecond, true
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }

// lineEnd is where the first line of b ends, -1 when not in b. Data has few carriage returns, so one look for each of the two is the
// fastest.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if r := bytes.IndexByte(b, '\r'); r >= 0 {
		return r
	}
	return n
}
