package clientcheck

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// framing follows the frames of a client byte by byte, before gws sees them: it says what RFC 6455 forbids a client, keeps the code of
// its close frame, and lets no length through from which gws would allocate too much. It is pure.
type framing struct {
	limit uint64 // bytes of one message, fragments together

	head      [14]byte
	have      int    // bytes of head
	inPayload bool   // the head was judged
	left      uint64 // bytes of payload that did not come yet
	at        int    // bytes of payload that came
	inMessage bool   // a message in fragments is open
	sum       uint64 // its bytes so far
	control   []byte // payload of the control frame under way
	closed    bool   // a close frame came
	code      int    // of it; 1005 when it had none
}

// feed takes bytes as they come and says how many of them belong to sound frames. why is "" as long as all do; large says that a
// message is over the limit.
func (f *framing) feed(b []byte) (sound int, why string, large bool) {
	for i := 0; i < len(b); {
		if !f.inPayload {
			f.head[f.have] = b[i]
			f.have++
			i++
			if f.have < f.size() {
				continue
			}
			if why, large = f.judge(); why != "" {
				return max(0, i-f.have), why, large
			}
			f.inPayload = true
		}
		n := int(min(f.left, uint64(len(b)-i)))
		f.take(b[i : i+n])
		f.left -= uint64(n)
		i += n
		if f.left == 0 {
			if why = f.end(); why != "" {
				return i, why, false
			}
		}
	}
	return len(b), "", false
}

// size is how long the head is that begins with the bytes that came, 2 when that is not known yet.
func (f *framing) size() int {
	if f.have < 2 {
		return 2
	}
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

func (f *framing) opcode() byte { return f.head[0] & 15 }

// judge looks at a head that is whole.
func (f *framing) judge() (why string, large bool) {
	n, spelled := uint64(f.head[1]&0x7f), 0
	switch n {
	case 126:
		n, spelled = uint64(binary.BigEndian.Uint16(f.head[2:])), 2
	case 127:
		n, spelled = binary.BigEndian.Uint64(f.head[2:]), 8
	}
	final, op := f.head[0]&0x80 != 0, f.opcode()
	switch {
	case f.head[0]&0x70 != 0:
		return "a reserved bit is set, and no extension was agreed on", false
	case f.head[1]&0x80 == 0:
		return "the frame is not masked", false
	case op > 10 || op > 2 && op < 8:
		return fmt.Sprintf("opcode %d is reserved", op), false
	case n > math.MaxInt64:
		return "a length above 2^63", false
	case spelled == 2 && n < 126, spelled == 8 && n < 1<<16:
		return fmt.Sprintf("a length of %d in %d bytes", n, spelled), false
	case op >= 8 && (!final || n > 125):
		return "a control frame in fragments or over 125 bytes", false
	case op < 8 && (op == 0) != f.inMessage:
		return "a fragment out of its order", false
	}
	if op < 8 {
		if n > f.limit-f.sum {
			return fmt.Sprintf("a message of more than %d bytes", f.limit), true
		}
		f.sum += n
		f.inMessage = !final
	} else {
		f.control = make([]byte, 0, n)
	}
	f.left, f.at = n, 0
	return "", false
}

// take notes payload of a control frame; that of a message is gws's to unmask.
func (f *framing) take(b []byte) {
	if f.opcode() >= 8 {
		key := f.head[f.size()-4 : f.size()]
		for k, c := range b {
			f.control = append(f.control, c^key[(f.at+k)&3])
		}
	}
	f.at += len(b)
}

// end notes that a frame is whole.
func (f *framing) end() (why string) {
	op := f.opcode()
	f.have, f.at, f.inPayload = 0, 0, false
	if op < 8 && !f.inMessage {
		f.sum = 0
	}
	if op != 8 {
		return ""
	}
	f.closed = true
	switch len(f.control) {
	case 0:
		f.code = 1005
		return ""
	case 1:
		return "a close frame with half a code"
	}
	f.code = int(binary.BigEndian.Uint16(f.control))
	switch {
	case !sendable(f.code):
		return fmt.Sprintf("a close frame with the code %d, which must not be sent", f.code)
	case !utf8.Valid(f.control[2:]):
		return "a close frame whose reason is not UTF-8"
	}
	return ""
}

// sendable tells the close codes that may stand in a frame.
func sendable(code int) bool {
	switch {
	case code == 1004, code == 1005, code == 1006, code >= 1015 && code < 3000:
		return false
	}
	return code >= 1000 && code < 5000
}
