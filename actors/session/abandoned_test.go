package session

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// TestAnAbandonedSessionAnswersCountsAndFreesEverythingOnce holds a session in one of its turns until it is given up; then the turn goes on.
func TestAnAbandonedSessionAnswersCountsAndFreesEverythingOnce(t *testing.T) {
	// held sends a prompt that brings bytes of its own.
	held := func(p *pod, c *client, id string) uint64 {
		lease, err := p.k.Account().Acquire(700)
		if err != nil {
			t.Fatal(err)
		}
		p.req++
		c.tell(id, Prompt{Client: c, Req: p.req, Held: lease, Params: fmt.Appendf(nil, `{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, id)})
		return p.req
	}
	// crowd leaves words and a question in the session that its client has not taken.
	crowd := func(p *pod, c *client) {
		c.mu.Lock()
		c.full = true
		c.mu.Unlock()
		p.agents.last().say("one", "two")
		p.agents.last().askPermission(5)
	}
	var others atomic.Pointer[client] // who came back, and may have the session again when it was given up
	for what, tc := range map[string]struct {
		at   string
		play func(p *pod, c *client, id string) // up to where it is held
	}{
		"in an update that finds no room": {"offer", func(p *pod, c *client, id string) {
			held(p, c, id)
			p.settle()
			crowd(p, c)
		}},
		"in the answer of its turn": {"respond", func(p *pod, c *client, id string) {
			held(p, c, id)
			p.settle()
			go p.agents.last().end(`{"stopReason":"end_turn"}`)
		}},
		"in a refusal, with a turn, words and a question open": {"respond", func(p *pod, c *client, id string) {
			held(p, c, id)
			p.settle()
			crowd(p, c)
			held(p, c, id)
		}},
		"in a refusal, while a prompt waits for an agent": {"respond", func(p *pod, c *client, id string) {
			p.agents.last().exit(1)
			p.agents.is(func(a *agents) { a.mute = true })
			held(p, c, id)
			p.settle()
			held(p, c, id)
		}},
		"in losing its client to another": {"lost", func(p *pod, c *client, id string) {
			held(p, c, id)
			p.settle()
			crowd(p, c)
			p.settle()
			other := p.client("k", 0)
			others.Store(other)
			go func() { other.resume(id, roomServer) }()
		}},
		"in granting itself to another": {"granted", func(p *pod, c *client, id string) {
			held(p, c, id)
			p.settle()
			go func() {
				other := p.client("k", 0)
				others.Store(other)
				other.hold = c.hold
				other.resume(id, roomServer)
			}()
		}},
	} {
		t.Run(what, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("k", 0)
				id := c.opened(roomServer)
				ref, _ := c.session(id)
				gate, stuck := make(chan struct{}), make(chan struct{})
				var caught atomic.Bool
				c.hold = func(at string) {
					if at == tc.at {
						if caught.CompareAndSwap(false, true) {
							close(stuck)
							<-gate
						}
					}
				}
				tc.play(p, c, id)
				<-stuck
				ref.Stop(nil)
				select {
				case <-ref.Done():
				case <-time.After(time.Hour):
					t.Fatal("it was not given up")
				}
				synctest.Wait()
				if !errors.Is(ref.Cause(), kernel.ErrAbandoned) {
					t.Fatalf("it ended with %v", ref.Cause())
				}
				if n := p.s.Turns(); n != 0 {
					t.Errorf("%d turns run when it was given up", n)
				}
				close(gate)
				synctest.Wait()
				if _, owned := c.session(id); owned {
					t.Error("the client owns it still")
				}
				c.leave()
				if other := others.Swap(nil); other != nil {
					other.leave()
				}
				p.after(p.s.cfg.SessionTTL)
				p.atRest()
			})
		})
	}
}
