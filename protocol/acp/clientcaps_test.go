package acp

import (
	"strings"
	"testing"
)

const ableClient = `{"fs":{"readTextFile":true,"writeTextFile":false},"terminal":true,"elicitation":{"url":{}},"x":[1.0],"auth":{"terminal":true,"y":1}}`

func TestWhatAClientIsAskedFor(t *testing.T) {
	form, url := `{"mode":"form"}`, `{"mode":"url"}`
	for _, row := range []struct {
		method, params     string
		able, none, reader bool
	}{
		{MethodReadTextFile, "{}", true, false, true},
		{MethodWriteTextFile, "{}", false, false, false},
		{MethodTerminalCreate, "{}", true, false, false},
		{"terminal/of_tomorrow", "{}", true, false, false},
		{MethodElicitation, form, false, false, false},
		{MethodElicitation, url, true, false, false},
		{MethodElicitation, `{"mode":"form","mode":"url"}`, false, false, false},
		{MethodElicitation, `{"mode":"mind"}`, false, false, false},
		{MethodElicitation, `{}`, false, false, false},
		{MethodElicitation, ``, false, false, false},
		{"_vendor/x", "{}", true, true, true},
		{"_mcp/connect", "{}", false, false, false},
		{"_acpod/x", "{}", false, false, false},
		{MethodMCPMessage, "{}", false, false, false},
		{MethodSessionPrompt, "{}", false, false, false},
		{"of/tomorrow", "{}", false, false, false},
		{"", "{}", false, false, false},
	} {
		for client, want := range map[string]bool{ableClient: row.able, "": row.none, `{"fs":{"readTextFile":true},"terminal":"yes","elicitation":{"form":true,"url":null}}`: row.reader} {
			if got := ParseClientCapabilities([]byte(client)).Serves(row.method, []byte(row.params)); got != want {
				t.Errorf("%q %s of %q: %v", row.method, row.params, client, got)
			}
		}
	}
}

func TestAnAgentIsToldAllThatTheClientCanDo(t *testing.T) {
	for client, want := range map[string]string{
		ableClient:                                  strings.Replace(ableClient, `"terminal":true,"y":1`, `"y":1`, 1),
		`{"auth":{"y":1}, "x":"\ud800"}`:            `{"auth":{"y":1}, "x":"\ud800"}`,
		`{"auth":{"terminal":true}}`:                `{"auth":{}}`,
		`{"auth":{"terminal":1,"termin\u0061l":2}}`: `{"auth":{}}`,
		`{"auth":7}`:                                `{"auth":7}`,
		`[]`:                                        "",
		"":                                          "",
	} {
		if got := string(AgentClient([]byte(client))); got != want {
			t.Errorf("of %s it is told %s, want %s", client, got, want)
		}
	}
	want := `{"protocolVersion":1,"clientCapabilities":{"x":1},"clientInfo":{"name":"acpod","title":"acpod","version":"v1"}}`
	if got := string(AgentInitialize(nil, "v1", []byte(`{"x":1}`))); got != want {
		t.Errorf("got %s", got)
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	for method, want := range map[string][2]bool{ // reserved, the agent's to call
		"_vendor/x": {}, "session/set_mode": {}, "session/set_title": {}, "": {},
		MethodInitialize: {true, false}, MethodSessionPrompt: {true, false}, MethodSessionDelete: {true, false}, MethodLogout: {true, false},
		"mcp/message": {true, false}, "_mcp/connect": {true, false}, "_acpod/servers": {true, false}, "$/cancel_request": {true, false}, "proxy/successor": {true, false},
		MethodSessionUpdate: {false, true}, MethodPermission: {false, true}, MethodReadTextFile: {false, true}, "terminal/x": {false, true}, MethodElicitationDone: {false, true},
	} {
		if got := [2]bool{Reserved(method), OfClient(method)}; got != want {
			t.Errorf("%q: %v", method, got)
		}
	}
}

// What an agent offers is offered as far as the pod serves it, and nothing more.
func TestTheOfferOfAnAgent(t *testing.T) {
	info, err := ParseAgentInfo([]byte(`{"protocolVersion":1,"authMethods":[ {"id":"a","name":"A","x":1.0} ],"agentCapabilities":{"loadSession":true,"auth":{"logout":{},"status":{}},
		"providers":{},"mcpCapabilities":{"http":true},"sessionCapabilities":{"fork":{},"delete":{"x":1},"additionalDirectories":{},"status":{},"title":{},"archive":{},"systemPrompt":{},"close":null}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const head, tail = `{"protocolVersion":1,"agentCapabilities":{"loadSession":`, `"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"auth":{"logout":{}}},"agentInfo":{"name":"acpod","title":"acpod","version":"v"},"authMethods":[ {"id":"a","name":"A","x":1.0} ]}`
	const mcp = `,"mcpCapabilities":{"http":false,"sse":false,"acp":true,"_meta":{"dev.openab/acp":true}},"sessionCapabilities":{"resume":{},"close":{},"list":{}`
	if got := string(Offer{Build: "v", Version: 1, Agent: info}.Append(nil)); got != head+"true"+mcp+`,"delete":{},"fork":{},"additionalDirectories":{},"status":{},"title":{}},`+tail {
		t.Errorf("all is served: %s", got)
	}
	none := func(string) bool { return false }
	if got := string(Offer{Build: "v", Version: 1, Agent: info, Serves: none}.Append(nil)); got != head+"false"+mcp+`,"additionalDirectories":{},"status":{},"title":{}},`+tail {
		t.Errorf("nothing is served: %s", got)
	}
}
