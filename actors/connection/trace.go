package connection

import (
	"context"
	"log/slog"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// tracer logs frames at debug level when Config.Trace is set: direction, kind, method and size, and nothing of what they
// carry. A nil tracer logs nothing.
type tracer struct{ log *slog.Logger }

func newTracer(on bool, log *slog.Logger) *tracer {
	if !on || !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return &tracer{log}
}

func (t *tracer) in(data []byte) { t.frame("in", data, len(data)) }
func (t *tracer) out(f *outFrame) {
	if t == nil {
		return
	}
	if f.parts[1] != nil { // an answer in parts
		t.log.Debug("acp frame", "dir", "out", "kind", jsonrpc.Response.String(), "bytes", f.size())
		return
	}
	t.frame("out", f.parts[0], int(f.size()))
}

func (t *tracer) frame(direction string, data []byte, size int) {
	if t == nil {
		return
	}
	frame, _ := jsonrpc.Scan(data)
	attrs := []any{"dir", direction, "kind", frame.Kind.String(), "bytes", size}
	if frame.HasMethod {
		attrs = append(attrs, "method", jsonrpc.Show(frame.Method))
	}
	t.log.Debug("acp frame", attrs...)
}
