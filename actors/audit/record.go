package audit

import (
	"encoding/hex"
	"log/slog"
	"strconv"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/capability"
)

// message is what every record is found by, in the log as in the file.
const message = "mcp.audit"

// longestName bounds what is written of a name that a peer chose.
const longestName = 128

// record renders an entry. The order of the fields is part of what readers of a text log rely on.
func record(e capability.Entry) slog.Record {
	r := slog.NewRecord(e.Time, slog.LevelInfo, message, 0)
	r.AddAttrs(
		slog.String("event", string(e.Event)),
		slog.Uint64("call", e.Call),
		slog.String("provider", orDash(e.Provider)),
		slog.String("tool", orDash(e.Tool)),
		slog.String("session", orDash(e.Session)),
		slog.String("args_sha256", hex.EncodeToString(e.ArgsSHA[:])),
	)
	if e.Server != "" {
		r.AddAttrs(slog.String("server", shown(e.Server)))
	}
	if e.Event != capability.EventCall {
		r.AddAttrs(
			slog.String("outcome", e.Outcome),
			slog.Bool("is_error", e.IsError),
			slog.Int64("duration_ms", e.Duration.Milliseconds()),
		)
	}
	if e.Event == capability.EventRefused && e.Filtered {
		r.AddAttrs(slog.Bool("filtered", true))
	}
	if e.Event == capability.EventExit {
		r.AddAttrs(slog.Int("bytes", e.Bytes))
	}
	return r
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return shown(s)
}

// shown is s on one line, in ASCII, cut: as strconv.Quote writes it, without the quotes.
func shown(s string) string {
	if len(s) > longestName {
		end := longestName
		for end > longestName-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "..."
	}
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}
