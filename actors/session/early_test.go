package session

import (
	"fmt"
	"slices"
	"testing"
)

// Before its answer to session/new an agent may speak of a session that is not the client's: when it is known which one is, the other's
// words are dropped and counted.
func TestWhatAnAgentSaysEarlyOfAnotherSessionIsNotSaid(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.mute = true
		c := p.client("", 0)
		c.open("[]") // the answer waits for the agent
		a := p.agents.last()
		a.tellUpdate("its own, 1")
		a.tellRaw([]byte(`{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"another's"}}}`))
		a.tellUpdate("its own, 2")
		a.end(fmt.Sprintf(`{"sessionId":%q}`, a.id()))
		if said := texts(c.heard()); !slices.Equal(said, []string{"answer 1", "its own, 1", "its own, 2"}) {
			t.Errorf("the client was told %q", said)
		}
	})
}

// The words of an agent that never told its session are dropped, and what they held is free.
func TestWhatAnAgentSaysEarlyEndsWithIt(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.mute = true
		c := p.client("", 0)
		c.open("[]")
		p.agents.last().tellUpdate("too soon")
		c.leave()
		p.atRest()
	})
}
