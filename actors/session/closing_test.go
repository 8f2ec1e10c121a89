package session

import "testing"

// Who has read that its session is closed opens the next one at once: the place of the closed one must be free by then.
func TestAClosedSessionIsLostBeforeItsAnswer(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened(roomServer)
		req := c.prompt(id, "one")
		owned := false
		c.hold = func(what string) {
			if what == "respond" {
				c.mu.Lock()
				defer c.mu.Unlock()
				_, owned = c.sessions[id]
			}
		}
		c.tell(id, Close{Client: c, Req: 77})
		p.settle()
		c.hold = nil
		c.want(req, `{"stopReason":"cancelled"}`)
		c.want(77, `{}`)
		if owned {
			t.Error("the answer came while the connection still had the session")
		}
	})
}

// The words before it are not said any more, and who closed the session is not told that somebody else has it.
func TestATurnThatHasEndedIsAnsweredSoWhenItsSessionIsClosed(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		turn := c.prompt(id, "hello")
		c.full = true
		p.agents.last().say("word")
		p.agents.last().end(endTurn)
		closing := c.close(id)
		c.want(turn, endTurn)
		c.want(closing, "{}")
		p.atRest()
	})
}
