package httplink

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// oracle reads a whole stream by the letter of the standard: the text is taken apart into lines, and each line is interpreted.
func oracle(text string) (list []string) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	lines = lines[:len(lines)-1] // what no line end closes is none
	var name, newID, id string
	var lost, badID bool
	var data []string
	var retry time.Duration
	for _, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			id, lost = newID, badID
			if data != nil {
				if len(name) > maxEventName {
					name = name[:maxEventName] + "…"
				}
				list = append(list, show(name, strings.Join(data, "\n"), id, lost, retry))
			}
			name, data = "", nil
		case field == "data":
			data = append(data, value)
		case field == "event":
			name = value
		case field == "id":
			if kept := value[:min(len(value), maxIDBytes)]; !strings.Contains(kept, "\x00") {
				newID, badID = kept, len(value) > maxIDBytes || !isFieldValue(kept)
			}
		case field == "retry":
			if n, err := strconv.ParseUint(value, 10, 64); err == nil && len(value) <= maxRetry && strings.Trim(value, "0123456789") == "" {
				retry = time.Duration(n) * time.Millisecond
			}
		}
	}
	return list
}

func show(name, data, id string, lost bool, retry time.Duration) string {
	return fmt.Sprintf("%q %q id %q lost %v retry %v", name, data, id, lost, retry)
}

// machine reads a stream that comes in these pieces.
func machine(pieces ...string) (list []string) {
	var e events
	var data []byte
	for _, p := range pieces {
		for b := []byte(p); len(b) > 0; {
			n, ended := e.feed(b, func(more []byte) { data = append(data, more...) })
			b = b[n:]
			if ended {
				list = append(list, show(e.Name(), string(data), e.ID, e.LostID, e.Retry))
				data = nil
			}
		}
	}
	return list
}

// streams are what real servers and standards write.
var streams = []string{
	"data: a\n\n",
	"data: a\r\n\r\ndata: b\r\rdata: c\n\n",
	"\ufeffdata: a\n\n\ufeffdata: b\n\n",
	"\xef\xbbdata: a\n\ndata: b\n\n",
	"data\n\ndata:\n\ndata: \n\ndata:  two\n\n",
	"data: a\ndata:\ndata: b\n\n",
	": keep-alive\n\n:\n\ndata: a\n: in it\ndata: b\n\n",
	"id: 1\nretry: 500\ndata: \n\nid: 2\ndata: x\n\ndata: y\n\nid\ndata: z\n\n",
	"id: a\x00b\ndata: x\n\nid: \x01\ndata: y\n\n",
	"id: only\n\ndata: later\n\n",
	"id: " + strings.Repeat("i", maxIDBytes+1) + "\ndata: x\n\nid: short\ndata: y\n\n",
	"event: endpoint\ndata: /messages?session=1\n\nevent: " + strings.Repeat("n", 40) + "\ndata: x\n\ndata: y\n\n",
	"event: gone\n\ndata: unnamed\n\n",
	"retry: 12x\nretry: -1\nretry: \nretry: 99999999999\nretry: 7\ndata: x\n\n",
	"datum: no\n data: no\nDATA: no\ndata : no\nfield without colon\ndata: yes\n\n",
	"data: grüße 世界 \U0001f600\n\n",
	"data: cut\n\ndata: never ended\n",
	"\n\n\r\r\n\r\ndata: x\n\n\n",
	"data: \r\ndata: \n\r\n",
	"",
}

func TestStreamsAreReadAlikeWhereverTheyAreSplit(t *testing.T) {
	for _, text := range streams {
		want := oracle(text)
		if got := machine(text); !slices.Equal(got, want) {
			t.Errorf("%q in one piece:\n got %v\nwant %v", text, got, want)
		}
		if got := machine(strings.Split(text, "")...); !slices.Equal(got, want) && text != "" {
			t.Errorf("%q by characters:\n got %v\nwant %v", text, got, want)
		}
		if len(text) > 200 {
			continue
		}
		for i := range len(text) {
			for j := i; j <= len(text); j++ {
				if got := machine(text[:i], text[i:j], text[j:]); !slices.Equal(got, want) {
					t.Fatalf("%q | %q | %q:\n got %v\nwant %v", text[:i], text[i:j], text[j:], got, want)
				}
			}
		}
	}
}

func FuzzStreams(f *testing.F) {
	for i, s := range streams {
		f.Add(s, uint16(i), uint16(3*i))
	}
	f.Fuzz(func(t *testing.T, text string, a, b uint16) {
		i, j := min(int(a), len(text)), min(int(b), len(text))
		i, j = min(i, j), max(i, j)
		want := oracle(text)
		if got := machine(text[:i], text[i:j], text[j:]); !slices.Equal(got, want) {
			t.Fatalf("%q | %q | %q:\n got %v\nwant %v", text[:i], text[i:j], text[j:], got, want)
		}
	})
}

func TestAnEventThatDoesNotFitIsSkippedAndTheNextIsRead(t *testing.T) {
	account := kernel.NewAccount("provider_bytes", 1<<20)
	text := "data: fits\n\ndata: " + strings.Repeat("x", 5000) + "\ndata: more of it\n\ndata: fits too\n\n"
	for name, body := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "end with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		r := newReader(body, account, 4000)
		var got []string
		for {
			_, err := r.next(t.Context(), -1)
			if _, lost := err.(*lossError); lost {
				got = append(got, "lost")
				continue
			}
			if err != nil {
				break
			}
			frame, lease := r.data.take()
			got = append(got, string(frame))
			lease.Release()
		}
		r.close()
		if want := []string{"fits", "lost", "fits too"}; !slices.Equal(got, want) {
			t.Errorf("%s: read %q, want %q", name, got, want)
		}
		if account.Used() != 0 {
			t.Errorf("%s: %d bytes are left", name, account.Used())
		}
	}
}

func BenchmarkOneLineOfFiveMegabytes(b *testing.B) {
	text := "data: " + strings.Repeat("x", 5<<20) + "\n\n"
	account := kernel.NewAccount("provider_bytes", 1<<30)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := newReader(strings.NewReader(text), account, 8<<20)
		if _, err := r.next(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		r.close()
	}
}
