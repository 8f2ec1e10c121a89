package main

import (
	"encoding/json"
	"sync/atomic"
	"testing"
)

// The end of a turn, by itself or by a cancel, ends the calls that were made with its agent's token, down to the server.
func TestTheEndOfATurnEndsItsCalls(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, prompt, reason string
		cancel               bool
	}{
		{"by a cancel", "/sleep 1h", "cancelled", true},
		{"by itself", "/sleep 3s", "end_turn", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, baseConfig)
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			echo := server.run
			var answers atomic.Bool
			server.run = func(name string, arguments json.RawMessage) (any, *rpcError, bool) {
				if answers.Load() {
					return echo(name, arguments)
				}
				return heldCall(name, arguments)
			}
			session := e.open(server)
			caller := p.callerOf(session)
			id := e.sendPrompt(session, row.prompt)
			p.turn(session, "running", true)
			result := make(chan toolResult, 1)
			go func() { result <- caller.execute("katashiro.click", `{}`) }()
			e.await("the call", func() bool { return server.callCount() == 1 })
			if row.cancel {
				e.notify("session/cancel", object{"sessionId": session})
			}
			if reason := stopReason(e.answer(id)); reason != row.reason {
				t.Errorf("the turn ended with %q", reason)
			}
			if refusal := (<-result).refusal(); refusal != "outcome_unknown" {
				t.Errorf("the call of a writing tool ended as %q", refusal)
			}
			e.await("the cancel of the call", func() bool { return server.cancelled() > 0 })
			answers.Store(true)
			e.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
		})
	}
}
