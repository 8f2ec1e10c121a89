package connection

import (
	"context"
	"log/slog"
	"slices"

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
	envelope := f.parts[0]
	if f.parts[1] != nil { // what is carried is not looked at
		envelope = slices.Concat(envelope, []byte("null"), f.parts[2])
	}
	t.frame("out", envelope, int(f.size()))
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
