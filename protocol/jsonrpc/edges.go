package jsonrpc

import (
	"bytes"
	"io"
)

// edgeBytes is what is kept of the beginning and of the end of a long line. The envelope's id, method and version
// stand there: before the long member or behind it.
const edgeBytes = 1 << 10

// Edges remembers both ends of the long lines that pass through it, so that when the line reader behind it has to
// skip one, somebody still knows which request it answered. It counts the lines as the reader does.
type Edges struct {
	r     io.Reader
	above int // lines of fewer bytes are not remembered

	line int64 // the ordinal of the line that is passing, empty ones not counted
	n    int   // its bytes so far
	head []byte
	tail []byte
	kept map[int64]Edge // by ordinal; the reader is at most its buffer behind
}

type Edge struct{ Head, Tail []byte }

// NewEdges remembers lines of at least above bytes of what is read from it.
func NewEdges(r io.Reader, above int) *Edges {
	return &Edges{r: r, above: above, kept: map[int64]Edge{}}
}

// Read passes on.
func (e *Edges) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	for b := p[:n]; len(b) > 0; {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			e.pass(b)
			break
		}
		e.pass(b[:end])
		e.end()
		b = b[end+1:]
	}
	if err != nil {
		e.end()
	}
	return n, err
}

func (e *Edges) pass(b []byte) {
	if len(e.head) < edgeBytes {
		e.head = append(e.head, b[:min(len(b), edgeBytes-len(e.head))]...)
	}
	e.tail = append(e.tail, b[max(0, len(b)-edgeBytes):]...)
	if over := len(e.tail) - edgeBytes; over > 0 {
		e.tail = e.tail[:copy(e.tail, e.tail[over:])]
	}
	e.n += len(b)
}

func (e *Edges) end() {
	empty := e.n == 0 || e.n == 1 && e.head[0] == '\r'
	if !empty {
		if e.n >= e.above {
			e.kept[e.line] = Edge{Head: bytes.Clone(e.head), Tail: bytes.Clone(e.tail)}
		}
		e.line++
	}
	e.n, e.head, e.tail = 0, e.head[:0], e.tail[:0]
}

// Take returns and forgets what is kept of a line.
func (e *Edges) Take(ordinal int64) Edge {
	kept := e.kept[ordinal]
	delete(e.kept, ordinal)
	return kept
}

// Envelope tells what the line was as far as its edges show: a response or a request with that id, or a notification of that
// method, for which no answer is owed.
func (g Edge) Envelope() (kind Kind, id ID, method string) {
	members := headMembers(g.Head)
	for name, value := range tailMembers(g.Tail) {
		if _, seen := members[name]; !seen {
			members[name] = value
		}
	}
	method, called := String(members["method"])
	id, ok := ParseID(members["id"])
	switch {
	case !ok:
		return Notification, ID{}, method
	case called || members["method"] != nil:
		return Request, id, method
	default:
		return Response, id, ""
	}
}

// headMembers finds the scalar members at the beginning of an object, up to the first that is none.
func headMembers(b []byte) map[string][]byte {
	members := map[string][]byte{}
	b = bytes.TrimLeft(b, " \t\r")
	if len(b) == 0 || b[0] != '{' {
		return members
	}
	for b = b[1:]; ; {
		name, rest, ok := scalar(b)
		if !ok {
			return members
		}
		rest = bytes.TrimLeft(rest, " \t")
		if len(rest) == 0 || rest[0] != ':' {
			return members
		}
		value, rest, ok := scalar(rest[1:])
		if !ok {
			return members
		}
		if rest = bytes.TrimLeft(rest, " \t"); len(rest) == 0 || rest[0] != ',' {
			return members
		}
		if s, ok := String(name); ok {
			members[s] = value
		}
		b = rest[1:]
	}
}

// scalar cuts a string, number or literal off the beginning.
func scalar(b []byte) (value, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " \t")
	if len(b) == 0 {
		return nil, nil, false
	}
	end := 0
	if b[0] == '"' {
		for end = 1; end < len(b) && b[end] != '"'; end++ {
			if b[end] == '\\' {
				end++
			}
		}
		end++
	} else {
		for end < len(b) && bytes.IndexByte([]byte("+-.0123456789abcdefghijklmnopqrstuvwxyzE"), b[end]) >= 0 {
			end++
		}
	}
	if end == 0 || end > len(b) || !Valid(b[:end]) {
		return nil, nil, false
	}
	return b[:end], b[end:], true
}

// tailMembers finds the scalar members at the end of an object, behind the long one: from right to left, as long as
// what stands from a comma to the closing bracket are members.
func tailMembers(b []byte) map[string][]byte {
	b = bytes.TrimRight(b, " \t\r")
	members := map[string][]byte{}
	for at := len(b) - 1; at >= 0; at-- {
		if b[at] != ',' {
			continue
		}
		rest := bytes.TrimLeft(b[at+1:], " \t")
		if !bytes.HasPrefix(rest, []byte(`"`)) {
			continue
		}
		o, err := ParseObject(append([]byte("{"), rest...))
		if err != nil {
			break
		}
		for name, value := range o.Members() {
			members[name] = value
		}
	}
	return members
}
