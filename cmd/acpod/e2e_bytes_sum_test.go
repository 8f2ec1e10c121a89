//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// sampled watches a figure while f runs, and gives the most that it was.
func sampled(figure func() int64, f func()) (most int64) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			most = max(most, figure())
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	f()
	close(done)
	watch.Wait()
	return most
}

// 32 prompts at their limit, on one socket, and 32 results at theirs, which nobody reads: they stay under the documented sum,
// where there is room for all, and where there is not. Then whoever waits is told all the same, and the socket that brings more
// than there is room for is closed with 1013 and the account's name.
func TestPromptsAndResultsAtTheirLimitsStayUnderTheSum(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		config string
		all    bool // there is room for all
		sleep  string
		most   int64 // resident
	}{
		{"by default", baseConfig, true, "1h", 1000 << 20},
		{"in a small pod", with(baseConfig, "limits.pod_bytes", `"128MiB"`, "limits.connections", "100", "limits.sessions", "100"), false, "10s", 400 << 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			const n, mib = 32, 1 << 20
			p := startPlain(t, with(row.config, "agent.max_sessions", fmt.Sprint(n), "agent.session_ttl", `"500ms"`, "limits.result_bytes", `"8MiB"`))
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			server.run = func(string, json.RawMessage) (any, *rpcError, bool) {
				return sizedResult(8*mib - len(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":}`, e.pending()))), nil, false
			}
			e.hello()
			var sessions []string
			var agents []agentClient
			for range n {
				session := e.openMore(server)
				sessions, agents = append(sessions, session), append(agents, p.callerOf(session))
			}
			answered, refused := 0, 0
			peak := sampled(func() int64 { return p.tree().Pod.BytesUsed }, func() {
				var prompts []string
				for i, session := range sessions {
					head := fmt.Sprintf(`{"jsonrpc":"2.0","id":"prompt %d","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"/sleep %s\n`, i, session, row.sleep)
					e.write(padded(head, `"}]}}`, mib))
					prompts = append(prompts, fmt.Sprintf(`"prompt %d"`, i))
				}
				var calls []*calling
				for _, agent := range agents {
					calls = append(calls, agent.callSlowly(p, "katashiro.click"))
				}
				for _, call := range calls {
					call.first()
				}
				for _, call := range calls {
					status, body := call.read()
					switch {
					case status == http.StatusOK && len(body) > 8*mib-256:
						answered++
					case status == http.StatusServiceUnavailable, strings.Contains(string(body), `"acpod.dev/refusal":"outcome_unknown"`),
						strings.Contains(string(body), `"acpod.dev/refusal":"overloaded"`), strings.Contains(string(body), `"acpod.dev/refusal":"detached"`):
						refused++
					default:
						t.Fatalf("%d %.300s", status, body)
					}
				}
				for _, session := range sessions {
					e.notify("session/cancel", object{"sessionId": session})
				}
				for _, id := range prompts {
					var f frame
					e.await("the answer to "+id, func() bool {
						f = e.answers[id]
						return f.raw != "" || !row.all && e.gone
					})
					if f.raw == "" && e.overloaded("pod_bytes") {
						return
					}
					full := f.Error != nil && f.Error.Code == -32000 && f.Error.Data["scope"] != nil && f.Error.Data["limit"] != nil
					if stopReason(f) != "cancelled" && (row.all || !full && stopReason(f) != "end_turn") {
						t.Errorf("%s: %.300s", id, f.raw)
					}
				}
			})
			t.Logf("%d answered, %d refused, %d MiB on accounts at most", answered, refused, peak/mib)
			figures := p.tree().Pod
			if answered+refused != n || row.all && refused > 0 || !row.all && (answered == 0 || refused == 0) {
				t.Errorf("%d answered, %d refused", answered, refused)
			}
			if peak > figures.BytesLimit || row.all && peak < 64*mib {
				t.Errorf("%d bytes were on accounts, of %d", peak, figures.BytesLimit)
			}
			p.kept(row.most)
			e.hangUp()
			p.rest()
		})
	}
}

// overloaded tells whether the pod has closed the socket for want of room in that account; another end fails the test.
func (e *extension) overloaded(scope string) bool {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone && e.closed != nil && (e.closed.Code != 1013 || !strings.Contains(string(e.closed.Reason), scope)) {
		e.t.Errorf("closed with %v", e.closed)
	}
	return e.gone
}
