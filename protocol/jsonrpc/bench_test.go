package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
)

func benchFrames() map[string][]byte {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 25)
	return map[string][]byte{
		"request":      []byte(`{"jsonrpc":"2.0","id":17,"method":"session/prompt","params":{"sessionId":"sess_00000000-0000-0000-0000-000000000000","prompt":[{"type":"text","text":"hello"}]}}`),
		"notification": []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}}}`),
		"response1KiB": []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`),
		"response4MiB": []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("iVBORw0K", 512<<10) + `"}]}}`),
	}
}

// BenchmarkScan counts time and allocations a frame: one for the id and one for the
// method, where there is one.
func BenchmarkScan(b *testing.B) {
	for name, frame := range benchFrames() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if _, fault := Scan(frame); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}

// BenchmarkStandardLibrary is the same work done by decoding into raw messages.
func BenchmarkStandardLibrary(b *testing.B) {
	type envelope struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	for name, frame := range benchFrames() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				var e envelope
				if err := json.Unmarshal(frame, &e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendResult(b *testing.B) {
	frame := benchFrames()["response1KiB"]
	f, _ := Scan(frame)
	dst := make([]byte, 0, 2*len(frame))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendResult(dst[:0], f.ID, f.Result)
	}
}

func BenchmarkSet(b *testing.B) {
	params := []byte(`{"sessionId":"sess_00000000-0000-0000-0000-000000000000","prompt":[{"type":"text","text":"hello"}],"_meta":{"a":1}}`)
	id := []byte(`"agent-session"`)
	b.ReportAllocs()
	for b.Loop() {
		o, err := ParseObject(params)
		if err != nil {
			b.Fatal(err)
		}
		if out := o.Set("sessionId", id); len(out) == 0 {
			b.Fatal("empty")
		}
	}
}

func TestScanAllocatesForIDAndMethodOnly(t *testing.T) {
	for name, frame := range benchFrames() {
		limit := 2.0
		if name == "notification" || strings.HasPrefix(name, "response") {
			limit = 1
		}
		if n := testing.AllocsPerRun(10, func() { Scan(frame) }); n > limit {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
