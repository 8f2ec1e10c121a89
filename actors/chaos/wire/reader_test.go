package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// serverFrame is a frame as a server sends it.
func serverFrame(opcode byte, fin bool, payload string) []byte {
	return append(Head{Fin: fin, Opcode: opcode, Length: uint64(len(payload))}.Append(nil), payload...)
}

func TestWhatNoServerMaySendIsAViolation(t *testing.T) {
	long := strings.Repeat("x", 126)
	head := func(h Head, payload string) []byte {
		h.Length = uint64(len(payload))
		return append(h.Append(nil), payload...)
	}
	for name, wire := range map[string][]byte{
		"a masked frame":            head(Head{Fin: true, Opcode: TextFrame, Masked: true, Key: [4]byte{1, 2, 3, 4}}, "a"),
		"reserved bits":             head(Head{Fin: true, Opcode: TextFrame, RSV: 4}, "a"),
		"opcode 3":                  serverFrame(3, true, "a"),
		"opcode 11":                 serverFrame(11, true, "a"),
		"in 2 bytes":                head(Head{Fin: true, Opcode: TextFrame, Wide: 2}, "a"),
		"in 8 bytes":                head(Head{Fin: true, Opcode: TextFrame, Wide: 8}, long),
		"a control frame":           serverFrame(PingFrame, false, "a"),
		"over 125 bytes":            serverFrame(PongFrame, true, long),
		"half a code":               serverFrame(CloseFrame, true, "a"),
		"reason that is not UTF-8":  serverFrame(CloseFrame, true, "\x03\xe8\xff"),
		"a continuation":            serverFrame(Continuation, true, "a"),
		"within another":            slices.Concat(serverFrame(TextFrame, false, "a"), serverFrame(TextFrame, true, "b")),
		"message that is not UTF-8": slices.Concat(serverFrame(TextFrame, false, "\xe2\x82"), serverFrame(Continuation, true, "a")),
	} {
		_, err := readAll(bytes.NewReader(wire), 1<<10)
		if violation, ok := errors.AsType[*Violation](err); !ok || !strings.Contains(violation.What, name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWhatAServerMaySendIsRead(t *testing.T) {
	wire := slices.Concat(
		serverFrame(TextFrame, false, "\xe2"), serverFrame(PingFrame, true, "p"), serverFrame(Continuation, false, ""), serverFrame(Continuation, true, "\x82\xac"),
		serverFrame(BinaryFrame, true, "\xff"), serverFrame(TextFrame, true, ""), serverFrame(CloseFrame, true, "\x03\xf4later"))
	for name, from := range map[string]io.Reader{
		"whole": bytes.NewReader(wire), "by bytes": iotest.OneByteReader(bytes.NewReader(wire)), "data with its error": iotest.DataErrReader(bytes.NewReader(wire))} {
		events, err := readAll(from, 1<<10)
		if want := []string{"ping p", "1 €", "2 \xff", "1 "}; !slices.Equal(events, want) {
			t.Errorf("%s: read %q", name, events)
		}
		if closed, ok := errors.AsType[*Closed](err); !ok || closed.Code != 1012 || closed.Reason != "later" {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

func TestALengthIsOnlyAClaim(t *testing.T) {
	wire := append(Head{Fin: true, Opcode: BinaryFrame, Length: 1 << 40}.Append(nil), "a"...)
	f := frames{from: bytes.NewReader(wire), limit: math.MaxUint64, seen: func(int) {}}
	if _, err := f.frame(); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
	if cap(f.payload) > step {
		t.Errorf("a claim took %d bytes", cap(f.payload))
	}
	if _, err := readAll(bytes.NewReader(serverFrame(BinaryFrame, true, "abc")), 2); err == nil || !strings.Contains(err.Error(), "over the 2") {
		t.Errorf("a frame over the limit: %v", err)
	}
	fragments := append(serverFrame(BinaryFrame, false, "ab"), serverFrame(Continuation, true, "c")...)
	if _, err := readAll(bytes.NewReader(fragments), 2); err == nil || !strings.Contains(err.Error(), "over the 2") {
		t.Errorf("a message over the limit: %v", err)
	}
}

func TestAHeadIsWrittenAsItIsSaid(t *testing.T) {
	for _, h := range []Head{
		{}, {Fin: true, Opcode: 15, RSV: 7, Length: 125}, {Length: 126}, {Length: 1 << 16}, {Length: math.MaxUint64, Masked: true, Key: [4]byte{1, 2, 3, 4}},
		{Length: 5, Wide: 2}, {Length: 5, Wide: 8}, {Length: 1 << 10, Wide: 8, Masked: true},
	} {
		b := h.Append(nil)
		got, n, err := parseHead(b)
		if err != nil || n != len(b) || got != h {
			t.Errorf("%+v was read as %+v, %v", h, got, err)
		}
		for i := range b {
			if _, _, err := parseHead(b[:i]); err != errShort {
				t.Errorf("%d bytes of %+v: %v", i, h, err)
			}
		}
	}
}

// readAll reads to the end: each message as its opcode and text, each ping.
func readAll(from io.Reader, limit uint64) (events []string, err error) {
	f := frames{from: from, limit: limit, seen: func(int) {}}
	for {
		opcode, message, err := f.data(func(opcode byte, p []byte) error {
			if opcode == PingFrame {
				events = append(events, "ping "+string(p))
			}
			return nil
		})
		if err != nil {
			return events, err
		}
		events = append(events, fmt.Sprint(opcode, " ", string(message)))
	}
}

// FuzzFrames holds that how the bytes are cut makes no difference, that nothing panics, and that no claim of a length is believed.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(serverFrame(TextFrame, true, "hello"))
	f.Add(append(serverFrame(TextFrame, false, "a"), serverFrame(Continuation, true, "b")...))
	f.Add(serverFrame(CloseFrame, true, "\x03\xe8bye"))
	f.Add(serverFrame(TextFrame, true, strings.Repeat("x", 70000)))
	f.Add(Head{Fin: true, Opcode: BinaryFrame, Length: math.MaxUint64}.Append(nil))
	f.Add(Head{Fin: true, Opcode: BinaryFrame, Length: 1 << 30}.Append(nil))
	f.Fuzz(func(t *testing.T, wire []byte) {
		whole, wholeErr := readAll(bytes.NewReader(wire), 1<<30)
		for _, from := range []io.Reader{iotest.OneByteReader(bytes.NewReader(wire)), iotest.HalfReader(bytes.NewReader(wire))} {
			cut, cutErr := readAll(from, 1<<30)
			if !slices.Equal(whole, cut) || wholeErr.Error() != cutErr.Error() {
				t.Errorf("whole %q, %v; in pieces %q, %v", whole, wholeErr, cut, cutErr)
			}
		}
		total := 0
		for _, event := range whole {
			total += len(event)
		}
		if total > 8*len(wire) {
			t.Errorf("%d bytes of messages came out of %d", total, len(wire))
		}
	})
}

// FuzzMask holds that masking in pieces is masking at once, and that twice is not at all.
func FuzzMask(f *testing.F) {
	f.Add([]byte("some text of a frame"), uint32(0x01020304), 3)
	f.Add([]byte{}, uint32(0), 0)
	f.Fuzz(func(t *testing.T, text []byte, k uint32, cut int) {
		key := [4]byte{byte(k >> 24), byte(k >> 16), byte(k >> 8), byte(k)}
		cut = min(max(cut, 0), len(text))
		whole, pieces := bytes.Clone(text), bytes.Clone(text)
		mask(key, 0, whole)
		mask(key, 0, pieces[:cut])
		mask(key, cut, pieces[cut:])
		if !bytes.Equal(whole, pieces) {
			t.Errorf("%x in pieces is %x", whole, pieces)
		}
		for i, b := range text {
			if whole[i] != b^key[i%4] {
				t.Fatalf("byte %d is masked to %x", i, whole[i])
			}
		}
	})
}
