package stdio

import (
	"context"
	"log/slog"
)

// warned is a logger that has every record at warn: what a server writes to its stderr is for whoever looks after it.
func warned(log *slog.Logger) *slog.Logger { return slog.New(atWarn{log.Handler()}) }

type atWarn struct{ slog.Handler }

func (h atWarn) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelWarn)
}

func (h atWarn) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelWarn
	return h.Handler.Handle(ctx, r)
}

func (h atWarn) WithAttrs(attrs []slog.Attr) slog.Handler { return atWarn{h.Handler.WithAttrs(attrs)} }
func (h atWarn) WithGroup(name string) slog.Handler       { return atWarn{h.Handler.WithGroup(name)} }
