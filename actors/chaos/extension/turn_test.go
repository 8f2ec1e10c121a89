package extension

import "testing"

func TestWhatAnAgentSaysInATurnIsCounted(t *testing.T) {
	const (
		begins    = `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","status":"in_progress","content":[]}}`
		runs      = `{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}}`
		ends      = `{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"content"}]}}`
		fails     = `{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}}`
		elsewhere = `{"sessionId":"t","update":{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}}`
		says      = `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi "}}}`
		thinks    = `{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"ho "}}}`
	)
	for _, test := range []struct {
		name     string
		updates  []string
		text     string
		reported int
	}{
		{"a call", []string{begins, says, runs, ends, says}, "hi hi ", 1},
		{"a call that fails", []string{begins, fails}, "", 1},
		{"a call that does not end", []string{begins, runs, says}, "hi ", 0},
		{"an end before its beginning", []string{ends, begins}, "", 0},
		{"an end without a beginning", []string{ends}, "", 0},
		{"an end in another session", []string{begins, elsewhere}, "", 0},
		{"words that are not for the user", []string{thinks, says}, "hi ", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			turns := NewTurns(nil, "s", false)
			for _, update := range test.updates {
				turns.Hear([]byte(update))
			}
			if text, reported := turns.heard(); text != test.text || reported != test.reported {
				t.Errorf("it said %q and reported %d calls, want %q and %d", text, reported, test.text, test.reported)
			}
		})
	}
}
