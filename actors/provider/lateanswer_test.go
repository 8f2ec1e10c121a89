package provider

import (
	"testing"

	"github.com/acpod/acpod/actors/capability"
)

// What one session's user answers too late, when the connection has broken, is no answer to the next connection's question, which may be another session's.
func TestALateAnswerFindsNoQuestionOfTheNextConnection(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		var asked []capability.Elicitation
		asks := func(c *capability.Call) {
			c.Elicit = func(e capability.Elicitation) { asked = append(asked, e) }
		}
		const question = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`
		w.call("buy", asks)
		s.last().say(question)
		w.pass(0)
		s.last().die(errCut)
		w.pass(0)
		w.call("buy", asks)
		s.last().say(question)
		w.pass(0)
		if len(asked) != 2 {
			t.Fatalf("%d questions were asked", len(asked))
		}
		before := len(s.heard(""))
		asked[0].Answer([]byte(`{"action":"accept"}`), nil)
		w.pass(0)
		if late := s.heard("")[before:]; len(late) != 0 {
			t.Errorf("the late answer went to the other question: %+v", late)
		}
		asked[1].Answer([]byte(`{"action":"decline"}`), nil)
		w.pass(0)
		if own := s.heard("")[before:]; len(own) != 1 || own[0].result != `{"action":"decline"}` {
			t.Errorf("%+v", own)
		}
	})
}
