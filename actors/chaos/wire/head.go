package wire

import (
	"encoding/binary"
	"errors"
)

// The opcodes of RFC 6455. Any other, up to 15, can be sent all the same.
const (
	Continuation byte = 0x0
	TextFrame    byte = 0x1
	BinaryFrame  byte = 0x2
	CloseFrame   byte = 0x8
	PingFrame    byte = 0x9
	PongFrame    byte = 0xA
)

// maxHead is the longest that the head of a frame can be: two bytes, eight of length, four of mask.
const maxHead = 14

// Head is the head of one frame, as it is on the wire. Nothing in it has to make sense.
type Head struct {
	Fin    bool
	RSV    byte // three bits; none is negotiated
	Opcode byte // four bits
	Masked bool
	Key    [4]byte
	Length uint64 // of the payload, in bytes
	Wide   byte   // 0 writes the length as short as it goes; 2 or 8 writes it in so many bytes although fewer would do
}

// Append writes the head behind dst.
func (h Head) Append(dst []byte) []byte {
	first := h.RSV&7<<4 | h.Opcode&15
	if h.Fin {
		first |= 0x80
	}
	var mask byte
	if h.Masked {
		mask = 0x80
	}
	switch {
	case h.Length < 126 && h.Wide == 0:
		dst = append(dst, first, mask|byte(h.Length))
	case h.Length < 1<<16 && h.Wide != 8:
		dst = binary.BigEndian.AppendUint16(append(dst, first, mask|126), uint16(h.Length))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, first, mask|127), h.Length)
	}
	if h.Masked {
		dst = append(dst, h.Key[:]...)
	}
	return dst
}

// Header is the head of a client's frame with a mask of zeros, so that a payload may follow as it is, whole, in pieces, or never.
func Header(opcode byte, fin bool, length int64) []byte {
	return Head{Fin: fin, Opcode: opcode, Masked: true, Length: uint64(length)}.Append(make([]byte, 0, maxHead))
}

// errShort says that the head goes on beyond the bytes at hand.
var errShort = errors.New("the head of the frame is not whole yet")

// parseHead reads the head at the beginning of b and says how many bytes it took.
func parseHead(b []byte) (h Head, n int, err error) {
	if len(b) < 2 {
		return h, 0, errShort
	}
	h.Fin, h.RSV, h.Opcode = b[0]&0x80 != 0, b[0]>>4&7, b[0]&15
	h.Masked, h.Length, n = b[1]&0x80 != 0, uint64(b[1]&0x7f), 2
	switch h.Length {
	case 126:
		if len(b) < 4 {
			return h, 0, errShort
		}
		h.Length, n = uint64(binary.BigEndian.Uint16(b[2:])), 4
		if h.Length < 126 {
			h.Wide = 2
		}
	case 127:
		if len(b) < 10 {
			return h, 0, errShort
		}
		h.Length, n = binary.BigEndian.Uint64(b[2:]), 10
		if h.Length < 1<<16 {
			h.Wide = 8
		}
	}
	if h.Masked {
		if len(b) < n+4 {
			return h, 0, errShort
		}
		copy(h.Key[:], b[n:])
		n += 4
	}
	return h, n, nil
}

// mask applies the key to a payload of which at bytes were masked before. Applied twice it is undone.
func mask(key [4]byte, at int, payload []byte) {
	var turned [8]byte
	for i := range turned {
		turned[i] = key[(at+i)&3]
	}
	word := binary.LittleEndian.Uint64(turned[:])
	for len(payload) >= 8 {
		binary.LittleEndian.PutUint64(payload, binary.LittleEndian.Uint64(payload)^word)
		payload = payload[8:]
	}
	for i := range payload {
		payload[i] ^= turned[i]
	}
}
