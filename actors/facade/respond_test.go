package facade

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// sunk is a ResponseWriter that keeps nothing.
type sunk struct {
	header http.Header
	n      int64
}

func (s *sunk) Header() http.Header         { return s.header }
func (s *sunk) WriteHeader(int)             {}
func (s *sunk) Write(b []byte) (int, error) { s.n += int64(len(b)); return len(b), nil }

func TestALargeResultIsNotCopied(t *testing.T) {
	image := []byte(`{"content":[{"type":"image","data":"` + strings.Repeat("QUJD", 1<<20) + `"}]}`)
	text := bytes.Repeat([]byte(`{"name":"a","description":"b"},`), 100_000)
	for name, a := range map[string]answer{
		"a result": resultAnswer(jsonrpc.IntID(1), image, false), "a stateless result": resultAnswer(jsonrpc.IntID(1), image, true), "a search": textAnswer(jsonrpc.IntID(1), text, true),
	} {
		w := &sunk{header: http.Header{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := a.send(newPacedWriter(w, time.Minute), 200)
		runtime.ReadMemStats(&after)
		if err != nil || fmt.Sprint(w.n) != w.header.Get("Content-Length") || w.n < 3<<20 {
			t.Fatalf("%s: %v, %d bytes of %s", name, err, w.n, w.header.Get("Content-Length"))
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 256<<10 {
			t.Errorf("%s: %d bytes were allocated to write %d", name, got, w.n)
		}
	}
}

func TestAStatelessResultSaysThatItIsComplete(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                                    `{"resultType":"complete"}`,
		`{ }`:                                   `{"resultType":"complete"}`,
		` {"content":[]} `:                      `{"resultType":"complete","content":[]} `,
		`{"a":"resultType"}`:                    `{"resultType":"complete","a":"resultType"}`,
		`{"x":{"resultType":1}}`:                `{"resultType":"complete","x":{"resultType":1}}`,
		`{"resultType":"input_required","a":1}`: `{"resultType":"input_required","a":1}`,
		`{"a":1,"result\u0054ype":"complete"}`:  `{"a":1,"result\u0054ype":"complete"}`,
	} {
		var b bytes.Buffer
		if err := resultAnswer(jsonrpc.StringID("i"), []byte(raw), true).writeTo(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != `{"jsonrpc":"2.0","id":"i","result":`+want+`}` {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

func FuzzQuotedTextIsTheTextAgain(f *testing.F) {
	for _, s := range []string{"", `{"a":"b\n"}`, "\x00\x1f\x7f", "é\u2028", strings.Repeat(`"\`, 3000), strings.Repeat("x", 9000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		var b bytes.Buffer
		b.WriteByte('"')
		if err := writeQuoted(&b, []byte(s)); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('"')
		if b.Len() != quotedSize([]byte(s))+2 {
			t.Fatalf("%d bytes were announced, %d written", quotedSize([]byte(s)), b.Len()-2)
		}
		var back string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != s {
			t.Fatalf("%v: %q became %q", err, s, back)
		}
	})
}

func FuzzAStreamEventHoldsOneMessage(f *testing.F) {
	for _, s := range []string{`{}`, "{\n\"a\":1\r\n}", "{\r\"a\":[\n\n]}", `{"a":"\n"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !jsontext.Value(s).IsValid() {
			return
		}
		var b bytes.Buffer
		lines := &dataLines{w: &b}
		if _, err := io.WriteString(lines, s); err != nil {
			t.Fatal(err)
		}
		var joined strings.Builder
		for i, line := range strings.Split("data: "+b.String(), "\n") {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || strings.ContainsAny(data, "\r") {
				t.Fatalf("line %d of %q is no data line", i, b.String())
			}
			if i > 0 {
				joined.WriteByte('\n')
			}
			joined.WriteString(data)
		}
		a, b2 := jsontext.Value(s), jsontext.Value(joined.String())
		if a.Compact() != nil || b2.Compact() != nil || string(a) != string(b2) {
			t.Fatalf("%q became %q", s, joined.String())
		}
	})
}

// One call through the facade and a desk, on a loopback connection, against a source that answers at once.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{1 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			w := newWorld(b, nil)
			result := []byte(`{"content":[{"type":"image","data":"` + strings.Repeat("A", size) + `","mimeType":"image/png"}]}`)
			var s *session
			s = w.session("alice", capability.Ready, func(_ *kernel.Ctx, _ capability.Call, q *kernel.Question) {
				lease, err := s.desk.Account().Acquire(int64(len(result)))
				if err != nil {
					b.Error(err)
				}
				q.Answer(capability.Result{Raw: result}, lease)
			})
			body := executeBody("1", "katashiro.read", "{}")
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequest(http.MethodPost, w.baseURL+endpoint, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer "+s.token)
				resp, err := w.client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if err != nil || n < int64(size) {
					b.Fatalf("%d bytes, %v", n, err)
				}
			}
		})
	}
}
