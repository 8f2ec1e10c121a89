package main

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"
)

// The end of a turn, by itself or by a cancel, ends the calls that were made with its agent's token, down to the server: long
// before their deadline, and at a cancel before the agent has done anything about it.
func TestTheEndOfATurnEndsItsCalls(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, prompt string
		cancel       bool
	}{
		{"by a cancel that the agent ignores", "/hang", true},
		{"by itself", "/sleep 3s", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, with(baseConfig, "agent.cancel_timeout", `"1h"`, "agent.stop_grace", `"300ms"`, "pod.drain_timeout", `"100ms"`, "mcp.tunnel_timeout", `"1h"`, "mcp.call_max", `"2h"`))
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
			} else if reason := stopReason(e.answer(id)); reason != "end_turn" {
				t.Errorf("the turn ended with %q", reason)
			}
			select {
			case got := <-result:
				if refusal := got.refusal(); refusal != "outcome_unknown" {
					t.Errorf("the call of a writing tool ended as %q", refusal)
				}
			case <-time.After(patience):
				t.Fatal("the call outlived its turn")
			}
			e.await("the cancel of the call", func() bool { return server.cancelled() > 0 })
			answers.Store(true)
			if !row.cancel {
				e.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
			}
		})
	}
}
