package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Violation is something that RFC 6455 forbids a server and this one did.
type Violation struct{ What string }

func (v *Violation) Error() string { return "the server breaks RFC 6455: " + v.What }

// Closed is the server's close frame. Code is 1005 when the frame had none.
type Closed struct {
	Code   int
	Reason string
}

func (c *Closed) Error() string {
	return fmt.Sprintf("the server closed with %d %.128q", c.Code, c.Reason)
}

// Frame is one frame that came.
type Frame struct {
	Head
	Payload []byte // the receiver's to keep
}

// small is how much is read at once when the head of a frame is awaited. Most frames of a session fit with their head.
const small = 512

// step is by how much the buffer of a payload may grow before those bytes are there: a length is only a claim.
const step = 1 << 20

// frames reads a server's frames. It can be interrupted by a deadline at any byte and goes on from there.
type frames struct {
	from  io.Reader
	limit uint64 // of one payload
	seen  func(n int)

	ahead      [small]byte // bytes read and not used yet: ahead[next:end]
	next, end  int
	begun      bool // a head was read and its payload is not whole
	head       Head
	payload    []byte
	leftovers  []byte // what came with the handshake's answer
	assembling bool
	message    []byte // what earlier fragments of this message held
	opcode     byte
}

// read reads once, into p.
func (f *frames) read(p []byte) (int, error) {
	if len(f.leftovers) > 0 {
		n := copy(p, f.leftovers)
		if f.leftovers = f.leftovers[n:]; len(f.leftovers) == 0 {
			f.leftovers = nil
		}
		return n, nil
	}
	n, err := f.from.Read(p)
	f.seen(n)
	if n > 0 {
		return n, nil // an error comes again with the next read
	}
	return 0, err
}

// frame gives the next frame, whatever it is.
func (f *frames) frame() (Frame, error) {
	for !f.begun {
		h, n, err := parseHead(f.ahead[f.next:f.end])
		if err == nil {
			f.next += n
			if h.Length > f.limit {
				return Frame{}, fmt.Errorf("a frame of %d bytes is over the %d that are read here", h.Length, f.limit)
			}
			f.begun, f.head, f.payload = true, h, make([]byte, 0, min(h.Length, step))
			break
		}
		f.end, f.next = copy(f.ahead[:], f.ahead[f.next:f.end]), 0
		got, err := f.read(f.ahead[f.end:])
		if err != nil {
			if errors.Is(err, io.EOF) && f.end > 0 {
				err = io.ErrUnexpectedEOF
			}
			return Frame{}, err
		}
		f.end += got
	}
	for have := uint64(len(f.payload)); have < f.head.Length; have = uint64(len(f.payload)) {
		missing := f.head.Length - have
		if f.next < f.end {
			n := int(min(missing, uint64(f.end-f.next)))
			f.payload = append(f.payload, f.ahead[f.next:f.next+n]...)
			f.next += n
			continue
		}
		if len(f.payload) == cap(f.payload) {
			grown := make([]byte, len(f.payload), min(f.head.Length, 4*have))
			copy(grown, f.payload)
			f.payload = grown
		}
		n, err := f.read(f.payload[have:cap(f.payload)])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return Frame{}, err
		}
		f.payload = f.payload[:have+uint64(n)]
	}
	whole := Frame{f.head, f.payload}
	f.begun, f.payload = false, nil
	if whole.Masked {
		mask(whole.Key, 0, whole.Payload)
	}
	return whole, judge(whole)
}

// judge says what a server must not do in one frame.
func judge(f Frame) error {
	control := f.Opcode >= 8
	switch {
	case f.Masked:
		return &Violation{"a masked frame"}
	case f.RSV != 0:
		return &Violation{fmt.Sprintf("reserved bits %03b", f.RSV)}
	case f.Opcode > PongFrame || f.Opcode > BinaryFrame && !control:
		return &Violation{fmt.Sprintf("opcode %d", f.Opcode)}
	case f.Wide != 0:
		return &Violation{fmt.Sprintf("a length of %d in %d bytes", f.Length, f.Wide)}
	case control && (!f.Fin || f.Length > 125):
		return &Violation{"a control frame in fragments or over 125 bytes"}
	case f.Opcode == CloseFrame && f.Length == 1:
		return &Violation{"a close frame with half a code"}
	}
	return nil
}

// control is what message hands every control frame to, except a close.
type control func(opcode byte, payload []byte) error

// data gives the next whole data message, and its opcode. Pings and pongs on the way go to the function given.
func (f *frames) data(took control) (byte, []byte, error) {
	for {
		frame, err := f.frame()
		if err != nil {
			return 0, nil, err
		}
		switch frame.Opcode {
		case CloseFrame:
			return 0, nil, closed(frame.Payload)
		case PingFrame, PongFrame:
			if err := took(frame.Opcode, frame.Payload); err != nil {
				return 0, nil, err
			}
			continue
		case Continuation:
			if !f.assembling {
				return 0, nil, &Violation{"a continuation of nothing"}
			}
		default:
			if f.assembling {
				return 0, nil, &Violation{"a new message within another"}
			}
			f.assembling, f.opcode = true, frame.Opcode
		}
		if uint64(len(f.message)+len(frame.Payload)) > f.limit {
			return 0, nil, fmt.Errorf("a message is over the %d bytes that are read here", f.limit)
		}
		if f.message == nil {
			f.message = frame.Payload
		} else {
			f.message = append(f.message, frame.Payload...)
		}
		if !frame.Fin {
			continue
		}
		message := f.message
		f.assembling, f.message = false, nil
		if f.opcode == TextFrame && !utf8.Valid(message) {
			return 0, nil, &Violation{"a text message that is not UTF-8"}
		}
		return f.opcode, message, nil
	}
}

// closed reads the payload of a close frame.
func closed(payload []byte) error {
	if len(payload) < 2 {
		return &Closed{Code: 1005}
	}
	if !utf8.Valid(payload[2:]) {
		return &Violation{"a close reason that is not UTF-8"}
	}
	return &Closed{Code: int(binary.BigEndian.Uint16(payload)), Reason: string(payload[2:])}
}
