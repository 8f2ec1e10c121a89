package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestALongLineIsSkippedAndTheNextOneFound(t *testing.T) {
	const max = 200 << 10 // more than the reader's own buffer
	long := strings.Repeat("x", 3*max)
	exact := strings.Repeat("y", max)
	stream := "first\n" + long + "\nsecond\r\n" + exact + "\r\n" + exact + "z\r\nlast"
	l := NewLineReader(iotest.HalfReader(strings.NewReader(stream)), max)
	expect := func(want string) {
		t.Helper()
		line, err := l.Next()
		if err != nil || string(line) != want {
			t.Fatalf("%d bytes, %v", len(line), err)
		}
	}
	tooLong := func(skipped int64) {
		t.Helper()
		_, err := l.Next()
		var e *LineTooLong
		if !errors.As(err, &e) || e.Skipped != skipped || e.Max != max {
			t.Fatalf("got %v, want %d bytes skipped", err, skipped)
		}
	}
	expect("first")
	tooLong(int64(len(long)))
	expect("second")
	expect(exact)
	tooLong(max + 2) // the z and the carriage return
	expect("last")
	if _, err := l.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v", err)
	}
}

func TestAnEndlessLineHoldsNoMemory(t *testing.T) {
	endless := io.LimitReader(zeros{}, 8<<20)
	l := NewLineReader(endless, 1<<10)
	var charged int
	l.Charge = func(more int) error { charged += more; return nil }
	_, err := l.Next()
	var e *LineTooLong
	if !errors.As(err, &e) || e.Skipped != 8<<20 {
		t.Fatalf("got %v", err)
	}
	if charged != 0 {
		t.Errorf("%d bytes were taken for a line that is skipped", charged)
	}
	if _, err := l.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("behind it: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestACharacterSplitBetweenReadsIsWhole(t *testing.T) {
	const text = "{\"a\":\"日本語🙂\"}"
	l := NewLineReader(iotest.OneByteReader(strings.NewReader(text+"\n")), 100)
	if line, err := l.Next(); err != nil || string(line) != text {
		t.Errorf("%q, %v", line, err)
	}
}

func TestLinesBelongToTheCaller(t *testing.T) {
	l := NewLineReader(strings.NewReader("aaaa\nbbbb\n"), 100)
	first, _ := l.Next()
	second, _ := l.Next()
	if string(first) != "aaaa" || string(second) != "bbbb" {
		t.Errorf("%q, %q", first, second)
	}
	_ = append(first, "overwritten"...)
	if string(second) != "bbbb" {
		t.Error("the lines share memory")
	}
}

func TestEveryLineIsChargedForWhatItHolds(t *testing.T) {
	lines := []string{"a", strings.Repeat("b", 100<<10), strings.Repeat("c", 900<<10), "d"}
	l := NewLineReader(strings.NewReader(strings.Join(lines, "\n")), 1<<20)
	charged := 0
	l.Charge = func(more int) error {
		if more <= 0 {
			t.Errorf("charged %d", more)
		}
		charged += more
		return nil
	}
	for _, want := range lines {
		charged = 0
		line, err := l.Next()
		if err != nil || string(line) != want {
			t.Fatalf("%d bytes, %v", len(line), err)
		}
		if charged != cap(line) {
			t.Errorf("a line that holds %d bytes was charged %d", cap(line), charged)
		}
	}
}

func TestALineThatNobodyPaysForIsSkipped(t *testing.T) {
	broke := errors.New("no bytes left")
	big := strings.Repeat("b", 300<<10)
	l := NewLineReader(strings.NewReader("a\n"+big+"\nc\n"), 1<<20)
	l.Charge = func(more int) error {
		if more > 1000 {
			return broke
		}
		return nil
	}
	if line, err := l.Next(); err != nil || string(line) != "a" {
		t.Fatalf("%q, %v", line, err)
	}
	_, err := l.Next()
	var e *LineTooLong
	if !errors.As(err, &e) || !errors.Is(err, broke) || e.Skipped != int64(len(big)) {
		t.Fatalf("got %v", err)
	}
	if want := "a line of 307200 bytes was skipped: no bytes left"; e.Error() != want {
		t.Errorf("told as %q", e.Error())
	}
	if e.Head != nil {
		t.Errorf("%d bytes of a line that came in pieces are kept", len(e.Head))
	}
	if line, err := l.Next(); err != nil || string(line) != "c" {
		t.Fatalf("%q, %v", line, err)
	}
}

func TestALineAtHandThatNobodyPaysForShowsItsEnds(t *testing.T) {
	broke := errors.New("no bytes left")
	long := "head" + strings.Repeat("b", 10_000) + "tail"
	l := NewLineReader(strings.NewReader("short\n"+long+"\n"), 1<<20)
	l.Charge = func(int) error { return broke }
	for _, line := range []string{"short", long} {
		_, err := l.Next()
		var e *LineTooLong
		if !errors.As(err, &e) || string(e.Head) != line[:min(len(line), 1024)] || string(e.Tail) != line[max(0, len(line)-1024):] {
			t.Fatalf("got %v with %.20q and %.20q", err, e.Head, e.Tail)
		}
	}
}

func TestABrokenStreamGivesItsLastWordsFirst(t *testing.T) {
	broken := errors.New("pipe burst")
	l := NewLineReader(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(broken)), 100)
	var got bytes.Buffer
	for {
		line, err := l.Next()
		if err != nil {
			if !errors.Is(err, broken) {
				t.Fatalf("got %v", err)
			}
			break
		}
		got.Write(line)
		got.WriteByte('|')
	}
	if got.String() != "a|half|" {
		t.Errorf("got %q", got.String())
	}
}
