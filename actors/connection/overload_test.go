package connection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// fill takes what an account has left, but so many bytes.
func fill(t *testing.T, a *kernel.Account, but int64) *kernel.Lease {
	t.Helper()
	lease, err := a.Acquire(a.Limit() - a.Used() - but)
	must(t, err)
	t.Cleanup(lease.Release)
	return lease
}

// Every refusal for a limit names it, how much of it is in use, and when to try again where that can help.
func TestEveryRefusalNamesItsLimit(t *testing.T) {
	prompt := func(s *testSession, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":{"sessionId":"%s","prompt":[{"type":"text","text":"%s"}]}}`, s.id, text)
	}
	const another = `{"jsonrpc":"2.0","id":"x","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`
	for _, test := range []struct {
		scope string
		cfg   Config
		// send brings about the refusal of a request with the id "x".
		send  func(p *testPod, c *peer, s *testSession)
		limit int64
		never bool // trying again does not help
	}{
		{"request_bytes", Config{}, func(_ *testPod, c *peer, s *testSession) { c.send(prompt(s, strings.Repeat("x", 1<<20))) }, 1 << 20, true},
		{"servers_per_session", Config{ServersPerSession: 1}, func(_ *testPod, c *peer, _ *testSession) {
			c.send(strings.Replace(another, "[]", `[{"type":"acp","name":"a","id":"1"},{"type":"acp","name":"b","id":"2"}]`, 1))
		}, 1, true},
		{"prompts_per_connection", Config{PromptsPerConnection: 1}, func(p *testPod, c *peer, s *testSession) {
			p.prompt(c, s, 1, "first")
			c.send(prompt(s, "second"))
		}, 1, false},
		{"sessions_per_connection", Config{SessionsPerConnection: 1}, func(_ *testPod, c *peer, _ *testSession) { c.send(another) }, 1, false},
		{"session_bytes", Config{}, func(p *testPod, c *peer, s *testSession) {
			fill(p.t, s.ref.Account(), 100)
			c.send(prompt(s, strings.Repeat("x", 10_000)))
		}, 1 << 20, false},
		{"connection_bytes", Config{}, func(p *testPod, c *peer, s *testSession) {
			fill(p.t, s.client.(*client).account, answerReserve-100) // the frame is let in, and its answer has no place
			c.send(prompt(s, "small"))
		}, 48 << 20, false},
		{"pod_bytes", Config{}, func(p *testPod, c *peer, s *testSession) {
			fill(p.t, p.kernel.Account(), answerReserve-100)
			c.send(prompt(s, "small"))
		}, 64 << 20, false},
	} {
		t.Run(test.scope, func(t *testing.T) {
			p := startPodIn(t, test.cfg, kernel.Options{Limit: 64 << 20})
			c := p.hello()
			s := p.openIn(c, 1, kernel.Spec{Scope: "session_bytes", Limit: 1 << 20})
			kerneltest.Eventually(t, "the connection is quiet", func() bool {
				frames, _ := s.client.(*client).out.queued()
				return frames == 0 && p.conns()[0].Doing == nil && p.conns()[0].Queue.N == 0 && s.client.(*client).account.Used() == connectionReserve // also what the writer had in hand
			})
			test.send(p, c, s)
			r := c.refusedWith("x", -32000)
			data := r.Error.Data
			if data["scope"] != test.scope || data["limit"] != float64(test.limit) || data["used"] == nil || data["used"] == 0.0 {
				t.Errorf("data is %v", data)
			}
			if retry, told := data["retry_after_ms"].(float64); told == test.never || told && retry <= 0 {
				t.Errorf("data is %v", data)
			}
			_ = c.conn.Close()
		})
	}
}

// An answer is never refused: whichever account is full, to the last byte, each open request gets an error at least, once.
func TestAnErrorAlwaysFits(t *testing.T) {
	const open = 16
	for _, full := range []string{"connection_bytes", "session_bytes", "pod_bytes", "all"} {
		t.Run(full, func(t *testing.T) {
			p := startPodIn(t, Config{}, kernel.Options{Limit: 64 << 20})
			c := p.hello()
			s := p.openIn(c, 1, kernel.Spec{Scope: "session_bytes", Limit: 4 << 20})
			asked := make([]session.Prompt, open)
			for i := range asked {
				asked[i] = p.prompt(c, s, i, "hi")
			}
			result := []byte(`{"x":"` + strings.Repeat("y", 100_000) + `"}`)
			leases := make([]*kernel.Lease, open)
			for i := range leases {
				var err error
				leases[i], err = s.ref.Account().Acquire(int64(len(result)))
				must(t, err)
			}
			kerneltest.Eventually(t, "the connection is quiet", func() bool { return p.conns()[0].Doing == nil && p.conns()[0].Queue.N == 0 })
			var taken []*kernel.Lease
			for _, account := range []*kernel.Account{s.client.(*client).account, s.ref.Account(), p.kernel.Account()} {
				if account.Scope() == full || full == "all" {
					taken = append(taken, fill(t, account, 0))
				}
			}
			for i, m := range asked {
				s.client.Respond(s.id, m.Req, result, leases[i], nil)
			}
			seen := map[any]bool{}
			for range asked {
				r := c.answer()
				if seen[r.ID] || r.ID == nil || r.Error == nil && r.Result == nil {
					t.Fatalf("got %+v", r)
				}
				seen[r.ID] = true
				if refused := r.Error != nil && r.Error.Code == -32000 && r.Error.Data["scope"] == "connection_bytes"; refused != (full == "connection_bytes" || full == "all") {
					t.Errorf("with %s full: %+v", full, r.Error)
				}
			}
			for _, lease := range taken {
				lease.Release()
			}
			c.ping()
			_ = c.conn.Close()
		})
	}
}
