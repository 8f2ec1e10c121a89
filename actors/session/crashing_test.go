package session

import (
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A session that goes down by a fault of ours while somebody takes it over: who asked is answered by the generation that follows, or told that this one
// ended.
func TestAResumeThatASessionDoesNotSurviveIsAnswered(t *testing.T) {
	for _, at := range []string{"lost", "granted"} {
		inPod(t, nil, func(p *pod) {
			c := p.client("k", 1)
			id := c.opened("[]")
			c.hold = func(what string) {
				if what == "lost" && at == "lost" {
					c.hold = nil
					panic("a fault of ours")
				}
			}
			again := p.client("k", 1)
			again.hold = func(what string) {
				if what == at {
					again.hold = nil
					panic("a fault of ours")
				}
			}
			req := again.resume(id, "[]")
			p.after(time.Minute)
			if a := again.answer(req); a == nil {
				t.Errorf("%s: it still waits", at)
			}
		})
	}
}

// A request that no generation survives does not end one after the other.
func TestARequestThatASessionNeverSurvivesIsRefused(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		c.leave()
		crashes := 0
		again := p.client("k", 1)
		again.fault = func() { crashes++; panic("a fault of ours") }
		req := again.resume(id, "[]")
		p.after(time.Minute)
		again.wantError(req, jsonrpc.Internal, "internal")
		if crashes != maxHands {
			t.Errorf("%d generations were ended", crashes)
		}
		other := p.client("k", 1)
		if a := other.answer(other.resume(id, "[]")); a == nil || a.err != nil {
			t.Errorf("the next one was answered %+v", a)
		}
	})
}
