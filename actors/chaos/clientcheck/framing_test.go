package clientcheck

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/chaos/wire"
)

// frame is one of a client's, with a mask that changes every byte.
func frame(h wire.Head, payload string) []byte {
	h.Masked, h.Key, h.Length = true, [4]byte{1, 2, 3, 4}, uint64(len(payload))
	b := h.Append(nil)
	for k := range len(payload) {
		b = append(b, payload[k]^h.Key[k&3])
	}
	return b
}

func TestWhatNoClientMaySendEndsTheFraming(t *testing.T) {
	text := wire.Head{Fin: true, Opcode: wire.TextFrame}
	long := strings.Repeat("x", 126)
	for name, c := range map[string]struct {
		bytes []byte
		why   string
		large bool
	}{
		"no mask":                {wire.Head{Fin: true, Opcode: wire.TextFrame, Length: 1}.Append(nil), "not masked", false},
		"a reserved bit":         {frame(wire.Head{Fin: true, RSV: 4, Opcode: wire.TextFrame}, "a"), "reserved bit", false},
		"opcode 3":               {frame(wire.Head{Fin: true, Opcode: 3}, "a"), "opcode 3", false},
		"opcode 11":              {frame(wire.Head{Fin: true, Opcode: 11}, "a"), "opcode 11", false},
		"a long spelling":        {frame(wire.Head{Fin: true, Opcode: wire.TextFrame, Wide: 2}, "a"), "in 2 bytes", false},
		"a longer spelling":      {frame(wire.Head{Fin: true, Opcode: wire.TextFrame, Wide: 8}, long), "in 8 bytes", false},
		"a ping in fragments":    {frame(wire.Head{Opcode: wire.PingFrame}, "a"), "control frame", false},
		"a long pong":            {frame(wire.Head{Fin: true, Opcode: wire.PongFrame}, long), "control frame", false},
		"a continuation":         {frame(wire.Head{Fin: true, Opcode: wire.Continuation}, "a"), "out of its order", false},
		"one message in another": {slices.Concat(frame(wire.Head{Opcode: wire.TextFrame}, "a"), frame(text, "b")), "out of its order", false},
		"a length above 2^63":    {wire.Head{Fin: true, Opcode: wire.TextFrame, Masked: true, Length: 1 << 63}.Append(nil), "2^63", false},
		"too large":              {wire.Header(wire.TextFrame, true, 1025), "more than 1024", true},
		"too large together":     {slices.Concat(frame(wire.Head{Opcode: wire.TextFrame}, strings.Repeat("x", 1000)), frame(wire.Head{Fin: true}, long)), "more than 1024", true},
		"half a code":            {frame(wire.Head{Fin: true, Opcode: wire.CloseFrame}, "a"), "half a code", false},
		"code 1006":              {frame(wire.Head{Fin: true, Opcode: wire.CloseFrame}, "\x03\xee"), "1006", false},
		"a reason not in UTF-8":  {frame(wire.Head{Fin: true, Opcode: wire.CloseFrame}, "\x03\xe8\xff"), "UTF-8", false},
	} {
		for _, ahead := range [][]byte{nil, frame(text, "hello")} {
			f := framing{limit: 1024}
			sound, why, large := f.feed(slices.Concat(ahead, c.bytes))
			if !strings.Contains(why, c.why) || why == "" || large != c.large || sound < len(ahead) {
				t.Errorf("%s: %d bytes are sound, %q, large %v", name, sound, why, large)
			}
		}
	}
}

func TestWhatAClientMaySendPassesTheFraming(t *testing.T) {
	all := slices.Concat(
		frame(wire.Head{Opcode: wire.TextFrame}, strings.Repeat("x", 1000)), frame(wire.Head{Fin: true, Opcode: wire.PingFrame}, "p"),
		frame(wire.Head{}, ""), frame(wire.Head{Fin: true}, strings.Repeat("y", 24)), frame(wire.Head{Fin: true, Opcode: wire.BinaryFrame}, strings.Repeat("z", 1024)),
		frame(wire.Head{Fin: true, Opcode: wire.TextFrame}, ""), frame(wire.Head{Fin: true, Opcode: wire.CloseFrame}, "\x03\xf4bye"))
	f := framing{limit: 1024}
	if sound, why, _ := f.feed(all); sound != len(all) || why != "" || !f.closed || f.code != 1012 {
		t.Errorf("%d of %d, %q, closed %v with %d", sound, len(all), why, f.closed, f.code)
	}
	f = framing{limit: 1024}
	if _, why, _ := f.feed(frame(wire.Head{Fin: true, Opcode: wire.CloseFrame}, "")); why != "" || f.code != 1005 {
		t.Errorf("a close without a code: %q, %d", why, f.code)
	}
}

// FuzzFraming holds that how the bytes are cut makes no difference, and that no claim of a length passes that is over the limit.
func FuzzFraming(f *testing.F) {
	f.Add([]byte{})
	f.Add(frame(wire.Head{Fin: true, Opcode: wire.TextFrame}, "hello"))
	f.Add(slices.Concat(frame(wire.Head{Opcode: wire.TextFrame}, "a"), frame(wire.Head{Fin: true, Opcode: wire.PingFrame}, "p"), frame(wire.Head{Fin: true}, "b")))
	f.Add(frame(wire.Head{Fin: true, Opcode: wire.CloseFrame}, "\x03\xe8bye"))
	f.Add(wire.Header(wire.TextFrame, true, 1<<62))
	f.Add(bytes.Repeat([]byte{0x81, 0xff}, 8))
	f.Fuzz(func(t *testing.T, all []byte) {
		whole := framing{limit: 1 << 10}
		sound, why, _ := whole.feed(all)
		pieces := framing{limit: 1 << 10}
		at, whyPieces := 0, ""
		for at < len(all) && whyPieces == "" {
			n, what, _ := pieces.feed(all[at : at+1])
			at, whyPieces = at+n, what
			if n == 0 && what == "" {
				t.Fatal("it takes nothing and says nothing")
			}
		}
		if why != whyPieces || whole.closed != pieces.closed || whole.code != pieces.code {
			t.Errorf("whole %q, in pieces %q", why, whyPieces)
		}
		if sound > len(all) || why == "" && (sound != len(all) || whole.sum > 1<<10 || whole.left > 1<<10) {
			t.Errorf("%d of %d bytes, %d left, %d in the message", sound, len(all), whole.left, whole.sum)
		}
	})
}
