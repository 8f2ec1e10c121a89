package acp

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestOnlyAnIntegerVersionIsNegotiated(t *testing.T) {
	for params, want := range map[string]int{ // 0: refused
		`{"protocolVersion":1}`:                     1,
		`{"protocolVersion":2,"info":{}}`:           1,
		`{"protocolVersion":65535}`:                 1,
		`{"protocolVersion":0}`:                     0,
		`{"protocolVersion":-0}`:                    0,
		`{"protocolVersion":-1}`:                    0,
		`{"protocolVersion":65536}`:                 0,
		`{"protocolVersion":1.0}`:                   0,
		`{"protocolVersion":1e0}`:                   0,
		`{"protocolVersion":"1"}`:                   0,
		`{"protocolVersion":"2024-11-05"}`:          0,
		`{"protocolVersion":true}`:                  0,
		`{"protocolVersion":null}`:                  0,
		`{}`:                                        0,
		`[]`:                                        0,
		`null`:                                      0,
		`{"protocolVersion":1,"protocolVersion":1}`: 0,
	} {
		in, bad := ParseInitialize([]byte(params))
		if want == 0 {
			if bad == nil || bad.Code != jsonrpc.InvalidParams {
				t.Errorf("%s gave %+v, %v", params, in, bad)
			}
			continue
		}
		if bad != nil || in.Version != want {
			t.Errorf("%s gave %+v, %v", params, in, bad)
		}
	}
	if _, bad := ParseInitialize(nil); bad == nil || bad.Code != jsonrpc.InvalidParams {
		t.Errorf("without params: %v", bad)
	}
	if _, bad := ParseInitialize([]byte(`{"protocolVersion":0}`)); !strings.Contains(bad.Message, "version 0") || !strings.Contains(bad.Message, "speaks 1") {
		t.Errorf("the refusal names neither version: %s", bad.Message)
	}
}

func TestMalformedOptionalMembersDegrade(t *testing.T) {
	for _, params := range []string{
		`{"protocolVersion":1,"clientCapabilities":7,"clientInfo":[],"mcpServers":{},"_meta":"x"}`,
		`{"protocolVersion":1,"clientCapabilities":null,"clientInfo":{"name":5},"mcpServers":null,"_meta":null,"more":1}`,
	} {
		in, bad := ParseInitialize([]byte(params))
		if bad != nil {
			t.Errorf("%s: %v", params, bad)
		}
		if in.Servers != nil || in.Capabilities != nil || in.ClientName != "" || in.ClientSecret != "" {
			t.Errorf("%s gave %+v", params, in)
		}
	}
	in, bad := ParseInitialize([]byte(`{"protocolVersion":3,"clientInfo":{"name":"n","title":"t","version":"v"},"mcpServers":[ ],"clientCapabilities":{"fs":{}}}`))
	if bad != nil || in.ClientName != "n" || in.ClientTitle != "t" || in.ClientBuild != "v" || string(in.Servers) != "[ ]" || string(in.Capabilities) != `{"fs":{}}` || in.Requested != 3 {
		t.Errorf("got %+v, %v", in, bad)
	}
}

func TestAClientsSecretIsWholeOrRefused(t *testing.T) {
	parse := func(secret string) (Initialize, *jsonrpc.Error) {
		return ParseInitialize([]byte(`{"protocolVersion":1,"_meta":{"acpod.dev/client":` + secret + `}}`))
	}
	for _, n := range []int{MinClientSecret, MaxClientSecret} {
		secret := strings.Repeat("ä", n)
		if in, bad := parse(`"` + secret + `"`); bad != nil || in.ClientSecret != secret {
			t.Errorf("%d characters: %v", n, bad)
		}
	}
	for _, secret := range []string{`""`, `"` + strings.Repeat("a", MinClientSecret-1) + `"`, `"` + strings.Repeat("a", MaxClientSecret+1) + `"`, "7", "{}",
		`"aaaaaaaaaaaaaaaaaaaa","acpod.dev\/client":"bbbbbbbbbbbbbbbbbbbb"`} {
		in, bad := parse(secret)
		if bad == nil || bad.Code != jsonrpc.InvalidParams || in.ClientSecret != "" {
			t.Errorf("%s gave %v", secret, bad)
		} else if strings.Contains(bad.Message, "aaaa") {
			t.Errorf("the refusal tells the secret: %s", bad.Message)
		}
	}
}

func TestTheOfferIsTheContracts(t *testing.T) {
	got := string(Offer{Build: `1"2`, Version: 1, Agent: &AgentInfo{Prompt: PromptCapabilities{Image: true}}}.Append(nil))
	want := `{"protocolVersion":1,"agentCapabilities":{"loadSession":false,` +
		`"mcpCapabilities":{"http":false,"sse":false,"acp":true,"_meta":{"dev.openab/acp":true}},` +
		`"sessionCapabilities":{"resume":{},"close":{},"list":{}},` +
		`"promptCapabilities":{"image":true,"audio":false,"embeddedContext":false}},` +
		`"agentInfo":{"name":"acpod","title":"acpod","version":"1\"2"},"authMethods":[]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	info, err := ParseAgentInfo([]byte(got))
	if err != nil || !info.MCP.ACP || info.MCP.HTTP || info.LoadSession || !info.Session.Resume || !info.Session.Close || !info.Session.List || info.Session.Fork || !info.Prompt.Image || info.Prompt.Audio || string(info.AuthMethods) != "[]" {
		t.Errorf("read back: %+v, %v", info, err)
	}
}

func TestAgentsThatSpeakOtherwiseAreRefused(t *testing.T) {
	for _, result := range []string{`{}`, `{"protocolVersion":2}`, `{"protocolVersion":"1"}`, `{"protocolVersion":true}`, `{"protocolVersion":1.0}`, `null`, `[]`} {
		if info, err := ParseAgentInfo([]byte(result)); err == nil {
			t.Errorf("%s gave %+v", result, info)
		}
	}
}

func TestAnAgentsCapabilitiesAreReadLeniently(t *testing.T) {
	info, err := ParseAgentInfo([]byte(`{"protocolVersion":1,"agentInfo":{"name":"x","version":3},"authMethods":{},
		"agentCapabilities":{"loadSession":"yes","subagents":{},"promptCapabilities":[],"mcpCapabilities":{"http":true,"sse":1},
		"sessionCapabilities":{"list":{},"fork":null,"delete":true,"resume":{"x":1}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := AgentInfo{Version: 1, Name: "x", MCP: MCPCapabilities{HTTP: true}, Session: SessionCapabilities{List: true, Resume: true}}
	want.Raw = info.Raw
	if got := *info; got.Name != want.Name || got.Build != "" || got.LoadSession || got.Prompt != want.Prompt || got.MCP != want.MCP || got.Session != want.Session || got.AuthMethods != nil {
		t.Errorf("got %+v", got)
	}
}

func TestWhatAnAgentIsSentAtFirst(t *testing.T) {
	want := `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"acpod","title":"acpod","version":"v1"}}`
	if got := string(AgentInitialize(nil, "v1", nil)); got != want {
		t.Errorf("got %s", got)
	}
}
