package extension

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// hostileTexts attack whoever shows them: a page, a terminal, a log, a reader.
var hostileTexts = []string{
	"<script>alert(1)</script><img src=x onerror=alert(2)>",
	"one line\ntime=2026-01-01T00:00:00Z level=ERROR msg=\"a forged record\"\nthree",
	"\r\n{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"ERROR\",\"msg\":\"a forged record\"}\r\n",
	"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J",
	"\u202egnp.exe\u202c \u2066isolated\u2069 \u200f",
	"nul \x00 bell \x07 back \x08 vertical \x0b delete \x7f",
	"c1 \u0085 \u009b31m separators \u2028 \u2029 \ufeff",
	"'; DROP TABLE sessions; -- ${jndi:ldap://x} %n%s {{7*7}} `id` $(id)",
	"\\u0000\\n\\x1b already escaped",
}

func hostileText(r *rand.Rand) string { return hostileTexts[r.IntN(len(hostileTexts))] }

// hostile sends hostile text where the socket's life takes some.
func (e *Extension) hostile(ctx context.Context, r *rand.Rand) {
	text := hostileText(r)
	switch r.IntN(4) {
	case 0:
		e.w.Faults.Injected("hostiletext", "method")
		_, _ = e.peer.Call(ctx, text, []byte(`{}`), Patience)
	case 1:
		e.w.Faults.Injected("hostiletext", "cwd")
		params := append(jsonrpc.AppendString([]byte(`{"mcpServers":[],"cwd":`), "/"+text), '}')
		_, _ = e.peer.Call(ctx, acp.MethodSessionNew, params, Patience)
	case 2:
		e.w.Faults.Injected("hostiletext", "session")
		params := append(jsonrpc.AppendString([]byte(`{"sessionId":`), text), '}')
		_, _ = e.peer.Call(ctx, acp.MethodSessionClose, params, Patience)
	default:
		e.w.Faults.Injected("hostiletext", "close")
		reason := fmt.Sprintf("%.100s", text)
		e.peer.Do(func(s *wire.Socket) error { return s.Close(4000, reason) })
	}
}
