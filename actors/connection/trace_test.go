package connection

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// TestTheLogHoldsNoPayload neither with the trace nor without: sizes, kinds and methods, one record a line.
func TestTheLogHoldsNoPayload(t *testing.T) {
	for _, trace := range []bool{true, false} {
		var log kerneltest.Log
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		p := startPodIn(t, Config{Trace: trace, Keys: []Key{NewKey("", "the-key")}}, kernel.Options{Logger: logger})
		c := p.knock("Authorization: Bearer the-key\r\n")
		c.send(helloRequest)
		c.answer()
		s := p.open(c, 1)
		m := p.prompt(c, s, 7, "a secret prompt")
		must(t, s.client.Offer(s.id, []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"t":"a secret update"}}`), nil, nil))
		s.client.Respond(s.id, m.Req, []byte(`{"r":"a secret result"}`), nil, nil)
		c.message()
		c.message()
		c.send(`{"jsonrpc":"2.0","id":"a secret id","method":"evil\nmethod"}`)
		c.message()
		_ = c.conn.Close()
		p.rest()
		kerneltest.Eventually(t, "the end is logged", func() bool { return strings.Contains(log.String(), "connection ended") })
		text := log.String()
		for _, secret := range []string{"secret", s.id, "the-key", "\nmethod"} {
			if strings.Contains(text, secret) {
				t.Errorf("trace %v: %q is in the log", trace, secret)
			}
		}
		for _, line := range []string{"dir=in kind=request", "method=\"\\\"session/prompt\\\"\"", "dir=out kind=notification", "dir=out kind=response"} {
			if strings.Contains(text, line) != trace {
				t.Errorf("trace %v: %s is %v in the log:\n%s", trace, line, !trace, text)
			}
		}
		if strings.Count(text, `msg="connection ended"`) != 1 {
			t.Error("the end is not one record")
		}
	}
}
