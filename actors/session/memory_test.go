package session

import (
	"errors"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

func TestWhatAnAgentIsAskedToOpen(t *testing.T) {
	both := acp.AgentInfo{LoadSession: true, Session: acp.SessionCapabilities{Resume: true}}
	loads, resumes := acp.AgentInfo{LoadSession: true}, acp.AgentInfo{Session: acp.SessionCapabilities{Resume: true}}
	for name, row := range map[string]struct {
		about  recalling
		offers acp.AgentInfo
		want   question
	}{
		"a session that never was":                        {recalling{}, both, askNew},
		"one that was":                                    {recalling{id: "x"}, both, askResume},
		"one that was, to an agent that only loads":       {recalling{id: "x"}, loads, askLoad},
		"one that was, to an agent that forgets":          {recalling{id: "x"}, acp.AgentInfo{}, askNew},
		"one that somebody wants to see":                  {recalling{id: "x", replay: true}, both, askLoad},
		"one to see, to an agent that only resumes":       {recalling{id: "x", replay: true}, resumes, askResume},
		"one that it does not resume":                     {recalling{id: "x", tried: 1 << askResume}, both, askLoad},
		"one that it neither resumes nor loads":           {recalling{id: "x", tried: 1<<askResume | 1<<askLoad}, both, askNew},
		"one to see that it does not load":                {recalling{id: "x", replay: true, tried: 1 << askLoad}, both, askResume},
		"a copy":                                          {recalling{id: "x", fork: true}, acp.AgentInfo{}, askFork},
		"nothing to see in a session that never was":      {recalling{replay: true}, both, askNew},
		"an agent that loads, and has been asked to load": {recalling{id: "x", tried: 1 << askLoad}, loads, askNew},
	} {
		if got := row.about.next(&row.offers); got != row.want {
			t.Errorf("%s: %s, not %s", name, got.method(), row.want.method())
		}
	}
}

func TestWhatOfItsAgentAClientIsTold(t *testing.T) {
	for _, row := range []struct {
		was  memory
		by   question
		want memory
	}{
		{memoryAlive, askNew, memoryFresh},
		{memoryAlive, askResume, memoryRestored},
		{memoryAlive, askLoad, memoryRestored},
		{memoryRestored, askResume, memoryRestored},
		{memoryRestored, askNew, memoryFresh},
		{memoryFresh, askLoad, memoryFresh}, // what was lost before is still lost
	} {
		if got := row.was.after(row.by); got != row.want {
			t.Errorf("%s, then %s: %s, not %s", row.was, row.by.method(), got, row.want)
		}
	}
}

func TestWhichErrorsOfAnAgentAreForGood(t *testing.T) {
	for _, code := range []int{-32002, -32601, -32602} {
		if !forGood(&jsonrpc.Error{Code: code}) {
			t.Errorf("%d may pass", code)
		}
	}
	for name, err := range map[string]error{
		"it wants a login": &jsonrpc.Error{Code: -32000}, "it is broken": &jsonrpc.Error{Code: -32603}, "it is gone": agentExit(1), "it was silent": errNewTimeout,
		"the pod has no room": &kernel.Overloaded{Scope: "pod_bytes"}, "anything else": errors.New("x"),
	} {
		if forGood(err) {
			t.Errorf("%s: for good", name)
		}
	}
}

func TestWhatOfAReplayIsHistory(t *testing.T) {
	for kind, want := range map[string]bool{
		"user_message_chunk": true, "agent_message_chunk": true, "agent_thought_chunk": true, "tool_call": true, "tool_call_update": true, "plan": true,
		"available_commands_update": false, "current_mode_update": false, "config_option_update": false, "usage_update": false, "": false, "of_tomorrow": false,
	} {
		if history(kind) != want {
			t.Errorf("%q: %v", kind, !want)
		}
	}
}
