package session

import (
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Where the pod answers permissions itself, nothing that a client may send changes whether the agent asks.
func TestTheModesGate(t *testing.T) {
	const mode, option = acp.MethodSessionSetMode, acp.MethodSessionSetOpt
	rows := []struct {
		method, rest string
		relay, deny  int // the error's code, 0 = it passes
	}{
		{mode, `,"modeId":"plan"`, 0, 0},
		{mode, `,"modeId":"yolo"`, 0, jsonrpc.InvalidParams},
		{mode, `,"modeId":"PLAN"`, 0, jsonrpc.InvalidParams},
		{mode, `,"modeId":"yolo","modeId":"plan"`, jsonrpc.InvalidParams, jsonrpc.InvalidParams},
		{mode, `,"modeId":"plan","mode\u0049d":"yolo"`, jsonrpc.InvalidParams, jsonrpc.InvalidParams},
		{mode, `,"modeId":["plan"]`, jsonrpc.InvalidParams, jsonrpc.InvalidParams},
		{mode, ``, jsonrpc.InvalidParams, jsonrpc.InvalidParams},
		{option, `,"configId":"way","value":"plan"`, 0, 0},
		{option, `,"configId":"way","value":"yolo"`, 0, jsonrpc.InvalidParams},
		{option, `,"configId":"way","value":true`, 0, jsonrpc.InvalidParams},
		{option, `,"configId":"way"`, 0, jsonrpc.InvalidParams},
		{option, `,"configId":"way","value":"plan","value":"yolo"`, jsonrpc.InvalidParams, jsonrpc.InvalidParams},
		{option, `,"configId":"model","value":"yolo"`, 0, 0},
		{option, `,"configId":"unknown","value":"plan"`, 0, jsonrpc.InvalidParams},
		{option, `,"value":"plan"`, jsonrpc.InvalidParams, jsonrpc.InvalidParams},
		{"session/set_title", `,"title":"yolo"`, 0, 0},
		{"session/set_model", `,"modelId":"yolo"`, 0, 0},
		{"_vendor/set_mode", `,"modeId":"plan"`, 0, jsonrpc.MethodNotFound},
		{"session/set_way", `,"way":"yolo"`, 0, jsonrpc.MethodNotFound},
	}
	for _, policy := range []Decision{Relay, Deny, Allow} {
		t.Run(string(policy), func(t *testing.T) {
			inPod(t, func(c *Config) { c.Permissions, c.Modes = policy, []string{"plan"} }, func(p *pod) {
				c := p.client("", 0)
				id := c.opened("[]")
				for _, row := range rows {
					want := row.deny
					if policy == Relay {
						want = row.relay
					}
					req := c.pass(id, row.method, row.rest)
					if want == 0 && c.answer(req) != nil {
						t.Errorf("%s %s: %+v, want it to pass", row.method, row.rest, c.answer(req).err)
					}
					if want != 0 {
						c.wantError(req, want, "")
					}
				}
				if policy == Relay {
					return
				}
				c.tell(id, Inform{Client: c, Method: "_vendor/mode", Params: []byte(`{"sessionId":"` + id + `"}`)})
				p.settle()
				if got := p.agents.last().see(&p.agents.last().notes); len(got) != 0 {
					t.Errorf("a notification reached the agent: %q", got)
				}
			})
		})
	}
}

// The mode of an option is judged by what the agent said of it last.
func TestAnOptionThatBecomesAModeIsGated(t *testing.T) {
	inPod(t, func(c *Config) { c.Permissions = Deny }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		p.agents.last().update(`{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","category":"mode","name":"M"},{"id":"mode","name":"N"}]}`)
		for _, option := range []string{"model", "mode", "way"} {
			c.wantError(c.pass(id, acp.MethodSessionSetOpt, `,"configId":"`+option+`","value":"x"`), jsonrpc.InvalidParams, "")
		}
	})
}
