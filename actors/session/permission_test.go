package session

import (
	"testing"

	"github.com/acpod/acpod/protocol/acp"
)

func TestHowAPermissionIsDecided(t *testing.T) {
	rules := []PermissionRule{
		{Server: "room", Tool: "room.click", Decision: Deny},
		{Server: "room", Tool: "look", Decision: Allow},
		{Server: "mail", Tool: "*", Decision: Deny},
		{Server: "*", Tool: "x.read", Decision: Allow},
	}
	for capability, want := range map[string]Decision{
		"room.click": Deny, "room.look": Allow, "room.type": Relay, "mail.send": Deny, "mail": Deny, "x.read": Allow, "y.read": Relay, "": Relay,
	} {
		if got := decide(rules, Relay, capability); got != want {
			t.Errorf("%q: %s, want %s", capability, got, want)
		}
	}
	if got := decide([]PermissionRule{{Server: "*", Tool: "*", Decision: Deny}}, Allow, ""); got != Deny {
		t.Errorf("a rule for all does not hold for a request that names nothing: %s", got)
	}
}

func TestWhatAPermissionRequestIsAbout(t *testing.T) {
	for params, want := range map[string]string{
		`{"toolCall":{"rawInput":{"name":"room.click","arguments":{}}}}`:        "room.click",
		`{"toolCall":{"rawInput":{"name":7}}}`:                                  "",
		`{"toolCall":{"rawInput":{"name":"a","name":"b"}}}`:                     "",
		`{"toolCall":{"rawInput":"room.click"}}`:                                "",
		`{"toolCall":{"title":"room.click"}}`:                                   "",
		`{"toolCall":{"rawInput":{"name":"room.click","idempotency_key":"k"}}}`: "room.click",
		`{"toolCall":{"rawInput":{"name":"room.click","path":"/etc/passwd"}}}`:  "", // another tool's
		`{"toolCall":{"rawInput":{"server":"openab","tool":"execute_capability","status":"x","arguments":{"name":"room.click","arguments":{}}}}}`:       "room.click",
		`{"toolCall":{"rawInput":{"server":"other","tool":"execute_capability","arguments":{"name":"room.click"}}}}`:                                    "",
		`{"toolCall":{"rawInput":{"server":"openab","tool":"shell","arguments":{"name":"room.click"}}}}`:                                                "",
		`{"toolCall":{"rawInput":{"server":"openab","tool":"shell","tool":"execute_capability","arguments":{"name":"room.click"}}}}`:                    "",
		`{"toolCall":{"rawInput":{"server":"openab","tool":"execute_capability","arguments":{"name":"room.click"},"arguments":{"name":"room.other"}}}}`: "",
		`{"toolCall":{"rawInput":{"name":"room.click"},"rawInput":{"name":"room.other"}}}`:                                                              "",
		`{}`: "",
		`[]`: "",
	} {
		if got := capabilityOf([]byte(params)); got != want {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
	}
}

func TestAnOptionIsChosenByItsKindAndNeverByItsPlace(t *testing.T) {
	asked := acp.Permission{Options: []acp.Option{{ID: "1", Kind: "allow_always"}, {ID: "2", Kind: "reject_always"}, {ID: "3", Kind: "allow_once"}, {ID: "4", Kind: "reject_once"}}}
	if got := string(outcomeOf(asked.Allowing())); got != `{"outcome":{"outcome":"selected","optionId":"3"}}` {
		t.Error(got)
	}
	if got := string(outcomeOf(asked.Rejecting())); got != `{"outcome":{"outcome":"selected","optionId":"4"}}` {
		t.Error(got)
	}
	if got := string(outcomeOf(acp.Permission{Options: asked.Options[:1]}.Rejecting())); got != `{"outcome":{"outcome":"cancelled"}}` {
		t.Errorf("without a rejecting option: %s", got)
	}
}

func TestAnAnswerThatSelectsNothingOfferedIsNoApproval(t *testing.T) {
	asked := acp.Permission{Options: []acp.Option{{ID: "yes", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}}
	good := `{ "outcome": {"outcome":"selected","optionId":"yes"},"_meta":{"a":1e999}}`
	if got := string(answeredBy(asked, []byte(good))); got != good {
		t.Errorf("a good answer does not pass to the byte: %s", got)
	}
	for _, bad := range []string{
		`{"outcome":{"outcome":"selected","optionId":"other"}}`, `{"outcome":{"outcome":"selected"}}`, `{"outcome":{"outcome":"approved","optionId":"yes"}}`,
		`{"outcome":{"outcome":"cancelled"}}`, `{"outcome":"selected"}`, `{}`, `null`, `true`, ``, `{"outcome":{"outcome":"selected","optionId":"no","optionId":"yes"}}`,
	} {
		if got := string(answeredBy(asked, []byte(bad))); got != `{"outcome":{"outcome":"cancelled"}}` {
			t.Errorf("%s became %s", bad, got)
		}
	}
}
