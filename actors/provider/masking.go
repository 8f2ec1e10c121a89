package provider

import (
	"context"
	"log/slog"

	"github.com/acpod/acpod/actors/capability/redact"
)

// masking takes out of what a server's process writes to the log what looks like a credential; its own are taken out before.
type masking struct{ slog.Handler }

// Handle implements slog.Handler.
func (h masking) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "line" {
			a.Value = slog.StringValue(redact.Text(a.Value.String()))
		}
		out.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h masking) WithAttrs(attrs []slog.Attr) slog.Handler {
	return masking{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h masking) WithGroup(name string) slog.Handler { return masking{h.Handler.WithGroup(name)} }
