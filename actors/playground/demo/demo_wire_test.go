package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// serveStdio is the other program of a stdio entry: this binary again.
func serveStdio() error {
	s := mcpserver.NewMCPServer("stdio", "1", mcpserver.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("execute_capability"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("over stdio as " + os.Getenv("ACPOD_DEMO_TEST_MCP")), nil
	})
	return mcpserver.ServeStdio(s)
}

// offered is what the agent answers a client with these capabilities.
func (c *peer) offered(capabilities string) map[string]any {
	c.t.Helper()
	_, _, response := c.until(c.send("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`), nil)
	return response["result"].(map[string]any)
}

const everything = `{"fs":{"readTextFile":true},"elicitation":{"form":{}}}`

func (c *peer) call(method, params string) (updates []map[string]any, response map[string]any) {
	c.t.Helper()
	_, updates, response = c.until(c.send(method, params), nil)
	return updates, response
}

// at reads a path like result.modes.currentModeId; "" is what is not there.
func at(value map[string]any, path string) string {
	var current any = value
	for step := range strings.SplitSeq(path, ".") {
		members, _ := current.(map[string]any)
		if current = members[step]; current == nil {
			return ""
		}
	}
	if members, ok := current.(map[string]any); ok && len(members) == 0 {
		return "{}"
	}
	return fmt.Sprint(current)
}

func TestLinesThatAskTheClient(t *testing.T) {
	c := inProcess(t, t.TempDir())
	c.offered(everything)
	session := c.openAgain(`"cwd":"/","mcpServers":[]`)
	answers := map[string]string{
		"session/request_permission": `{"outcome":{"outcome":"selected","optionId":"reject_always"}}`,
		"fs/read_text_file":          `{"content":"what stands there"}`, "elicitation/create": `{"action":"accept","content":{"answer":"yes"}}`,
		"_x/y": `{"a": 1.50}`, "terminal/create": `{"terminalId":"t"}`,
	}
	for _, row := range []struct{ prompt, text string }{
		{"/ask-of allow_always,reject_always katashiro.click", "choice: reject_always\n"},
		{"/read /a/b", "what stands there"},
		{"/elicit sure?", "elicited: {\"action\":\"accept\",\"content\":{\"answer\":\"yes\"}}\n"},
		{`/request _x/y {"deep":{"b":2}}`, "result: {\"a\": 1.50}\n"},
		{`/request terminal/create`, "result: {\"terminalId\":\"t\"}\n"},
		{"/request x y", "error: a JSON object is needed, not y\n"},
		{"/update nonsense", "error: an update is JSON, not nonsense\n"},
		{"/mode", "mode ask, pace fast\n"},
		{"/work 1ms", ""},
		{"/deaf 1ms", ""},
	} {
		if text, _, _ := c.until(c.prompt(session, row.prompt), func(method string) string { return answers[method] }); text != row.text {
			t.Errorf("%q streamed %q, not %q", row.prompt, text, row.text)
		}
	}
	bare := inProcess(t, t.TempDir())
	session = bare.open("")
	if text, _, _ := bare.until(bare.prompt(session, "/read x\n/elicit y"), nil); text != "error: the client offers no fs.readTextFile\nerror: the client offers no elicitation.form\n" {
		t.Errorf("of a client that offers nothing: %q", text)
	}
}

func (c *peer) openAgain(params string) string {
	c.t.Helper()
	_, response := c.call("session/new", "{"+params+"}")
	return at(response, "result.sessionId")
}

func TestWhatPassesToTheByte(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open("")
	id := c.prompt(session, `/update {"sessionUpdate":"of_tomorrow","x":1.50,"_meta":{"k":null}}`+"\n"+`/notify _x/note {"n":2}`)
	var seen []string
	for {
		frame, _ := c.next()
		raw, err := json.Marshal(frame["params"], json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if frame["id"] == float64(id) {
			break
		}
		seen = append(seen, fmt.Sprint(frame["method"], " ", strings.ReplaceAll(string(raw), session, "ID")))
	}
	want := `session/update {"sessionId":"ID","update":{"_meta":{"k":null},"sessionUpdate":"of_tomorrow","x":1.5}}` + "\n" + `_x/note {"n":2,"sessionId":"ID"}`
	if got := strings.Join(seen, "\n"); got != want {
		t.Errorf("written:\n%s\nnot\n%s", got, want)
	}
	if _, response := c.call("_demo/echo", `{"a":[1],"_meta":{}}`); at(response, "result.a") != "[1]" {
		t.Errorf("echo: %v", response)
	}
	if _, response := c.call("_demo/fail", `{"code":-7,"message":"m"}`); at(response, "error.code") != "-7" {
		t.Errorf("fail: %v", response)
	}
	if _, response := c.call("_demo/other", `{}`); at(response, "error.code") != "-32601" {
		t.Errorf("an unknown one: %v", response)
	}
	c.write(`{"jsonrpc":"2.0","method":"_demo/note","params":{"n":1}}`)
	if frame, _ := c.next(); frame["method"] != "_demo/noted" {
		t.Errorf("noted: %v", frame)
	}
}

func TestEndsOfATurn(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open("")
	for line, want := range map[string]string{"/stop max_tokens": "max_tokens", "/stop refusal\nnever": "refusal"} {
		if text, _, response := c.until(c.prompt(session, line), nil); at(response, "result.stopReason") != want || text != "" {
			t.Errorf("%q: %q, %v", line, text, response)
		}
	}
	if _, _, response := c.until(c.prompt(session, "/fail -32000 no credit"), nil); at(response, "error.code") != "-32000" || at(response, "error.message") != "no credit" {
		t.Errorf("/fail: %v", response)
	}
	c.until(c.prompt(session, "/late behind"), nil)
	if frame, _ := c.next(); frame["method"] != "session/update" {
		t.Errorf("behind the answer came %v", frame)
	}
	id := c.prompt(session, "/twice")
	c.until(id, nil)
	if frame, _ := c.next(); frame["id"] != float64(id) || at(frame, "result.stopReason") != "refusal" {
		t.Errorf("behind the answer came %v", frame)
	}
	for line, want := range map[string]string{"/sour 1h": "error.code -32603", "/work 1h": "result.stopReason cancelled", "/deaf 1ms": "result.stopReason cancelled", "/ask-deaf": "result.stopReason cancelled"} {
		id := c.prompt(session, line)
		c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
		_, _, response := c.until(id, func(string) string { return `{"outcome":{"outcome":"cancelled"}}` })
		if path, value, _ := strings.Cut(want, " "); at(response, path) != value {
			t.Errorf("a cancelled %s: %v", line, response)
		}
	}
}

func TestModesAndOptions(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open("")
	set := func(method, params string) ([]map[string]any, map[string]any) {
		return c.call("session/"+method, fmt.Sprintf(`{"sessionId":%q,%s}`, session, params))
	}
	if updates, response := set("set_mode", `"modeId":"auto"`); response["error"] != nil || len(updates) != 1 || updates[0]["currentModeId"] != "auto" {
		t.Errorf("set_mode: %v %v", updates, response)
	}
	if _, response := set("set_config_option", `"configId":"pace","value":"slow"`); !strings.Contains(fmt.Sprint(response), "currentValue:slow") {
		t.Errorf("set_config_option: %v", response)
	}
	if text, _, _ := c.until(c.prompt(session, "/mode\n/ask"), nil); text != "mode auto, pace slow\nchoice: allow (nobody was asked)\n" {
		t.Errorf("streamed %q", text)
	}
	set("set_config_option", `"configId":"mode","value":"ask"`)
	if text, _, _ := c.until(c.prompt(session, "/mode"), nil); text != "mode ask, pace slow\n" {
		t.Errorf("streamed %q", text)
	}
	for _, wrong := range []string{`"configId":"mode","value":"never"`, `"configId":"pace","value":"x"`, `"configId":"x","value":"fast"`, `"configId":"x","type":"boolean","value":true`} {
		if _, response := set("set_config_option", wrong); at(response, "error.code") != "-32602" {
			t.Errorf("%s: %v", wrong, response)
		}
	}
}

func TestBlocksAreToldByTypeAndSize(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open("")
	id := c.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"audio","mimeType":"audio/wav","data":"aGkh"},`+
		`{"type":"resource","resource":{"uri":"file:///a","text":"four"}},{"type":"resource","resource":{"uri":"file:///b","blob":"aGkhIQ=="}},{"type":"text","text":"and"}]}`, session))
	if text, _, _ := c.until(id, nil); text != "[image image/png 2 bytes]\n[audio audio/wav 3 bytes]\n[resource file:///a 4 bytes]\n[resource file:///b 4 bytes]\necho: and\n" {
		t.Errorf("streamed %q", text)
	}
}

func TestSessionsAreListedForkedAndDeleted(t *testing.T) {
	state := t.TempDir()
	first := inProcess(t, state)
	session := first.open("")
	first.until(first.prompt(session, "before the fork"), nil)

	c := inProcess(t, state)
	if offers := c.offered(`{}`); at(offers, "agentCapabilities.sessionCapabilities.delete") != "{}" || at(offers, "agentCapabilities.sessionCapabilities.fork") != "{}" {
		t.Errorf("offered: %v", offers)
	}
	_, response := c.call("session/fork", fmt.Sprintf(`{"sessionId":%q,"cwd":"/tmp","mcpServers":[]}`, session))
	fork := at(response, "result.sessionId")
	if fork == "" || fork == session {
		t.Fatalf("fork: %v", response)
	}
	if text, _, _ := c.until(c.prompt(fork, "/new"), nil); !strings.Contains(text, `"/tmp"`) {
		t.Errorf("the fork was opened with %s", text)
	}
	if updates, _ := c.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/","mcpServers":[]}`, fork)); len(updates) != 4 {
		t.Errorf("the fork knows %v", updates)
	}
	if _, response = c.call("session/list", `{}`); strings.Count(fmt.Sprint(response), "sessionId:") != 2 {
		t.Errorf("list: %v", response)
	}
	if _, response = c.call("session/set_title", fmt.Sprintf(`{"sessionId":%q,"title":"T"}`, fork)); response["error"] != nil {
		t.Errorf("set_title: %v", response)
	}
	for _, want := range []string{"", "-32002"} {
		if _, response = c.call("session/delete", fmt.Sprintf(`{"sessionId":%q}`, session)); at(response, "error.code") != want {
			t.Errorf("delete: %v", response)
		}
	}
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		if _, response = c.call(method, fmt.Sprintf(`{"sessionId":%q,"cwd":"/","mcpServers":[]}`, session)); at(response, "error.code") != "-32002" {
			t.Errorf("%s of a deleted one: %v", method, response)
		}
	}
}

func TestHowItBehavesOutsideTurns(t *testing.T) {
	open := func(t *testing.T, state string, behaviour ...string) (*peer, []map[string]any, map[string]any) {
		c := inProcess(t, state, behaviour...)
		c.offered(`{}`)
		updates, response := c.call("session/new", `{"cwd":"/","mcpServers":[{"type":"http","name":"x","url":"http://127.0.0.1:1/","headers":[]}]}`)
		return c, updates, response
	}
	again := func(c *peer, method string, session string) ([]map[string]any, map[string]any) {
		return c.call(method, fmt.Sprintf(`{"sessionId":%q,"cwd":"/","mcpServers":[]}`, session))
	}
	state := t.TempDir()
	c, _, response := open(t, state)
	session := at(response, "result.sessionId")
	c.until(c.prompt(session, "hello"), nil)

	if _, updates, _ := open(t, state, "early"); len(updates) != 1 {
		t.Errorf("early: %v", updates)
	}
	if _, _, response := open(t, state, "refuse-http"); at(response, "error.code") != "-32602" {
		t.Errorf("refuse-http: %v", response)
	}
	c = inProcess(t, state, "replay")
	c.offered(`{}`)
	if updates, _ := again(c, "session/resume", session); len(updates) != 2 {
		t.Errorf("replay: %v", updates)
	}
	c = inProcess(t, state, "flaky", "null")
	c.offered(`{}`)
	if _, response = again(c, "session/resume", session); at(response, "error.code") != "-32603" {
		t.Errorf("flaky: %v", response)
	}
	if _, response = again(c, "session/load", session); response["error"] != nil || response["result"] != nil {
		t.Errorf("null: %v", response)
	}
	c = inProcess(t, state, "forget", "no-http")
	if offers := c.offered(`{}`); at(offers, "agentCapabilities.mcpCapabilities.http") == "true" {
		t.Errorf("no-http: %v", offers)
	}
	if _, response = again(c, "session/load", session); at(response, "error.code") != "-32002" {
		t.Errorf("forget: %v", response)
	}
	c = inProcess(t, state, "plain")
	if offers := fmt.Sprint(c.offered(`{}`)); strings.Contains(offers, "loadSession:true") || strings.Contains(offers, "image:true") {
		t.Errorf("plain: %s", offers)
	}
	if _, response = again(c, "session/delete", session); at(response, "error.code") != "-32601" {
		t.Errorf("plain: %v", response)
	}
	if _, err := chosen("early, nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a word that is none: %v", err)
	}
}

func TestALoginIsAskedForAndKept(t *testing.T) {
	state := t.TempDir()
	c := inProcess(t, state, "login")
	if offers := c.offered(`{}`); !strings.Contains(fmt.Sprint(offers["authMethods"]), "id:demo") || at(offers, "agentCapabilities.auth.logout") != "" {
		t.Errorf("offered: %v", offers)
	}
	if _, response := c.call("session/new", `{"cwd":"/","mcpServers":[]}`); at(response, "error.code") != "-32000" {
		t.Errorf("before: %v", response)
	}
	if _, response := c.call("authenticate", `{"methodId":"other"}`); at(response, "error.code") != "-32602" {
		t.Errorf("another method: %v", response)
	}
	if _, response := c.call("authenticate", `{"methodId":"demo"}`); response["error"] != nil {
		t.Errorf("authenticate: %v", response)
	}
	c = inProcess(t, state, "login")
	if offers := c.offered(`{}`); at(offers, "agentCapabilities.auth.logout") != "{}" {
		t.Errorf("offered: %v", offers)
	}
	if session := c.openAgain(`"cwd":"/","mcpServers":[]`); session == "" {
		t.Error("no session after the login")
	}
	if _, response := c.call("logout", `{}`); response["error"] != nil {
		t.Errorf("logout: %v", response)
	}
	if _, err := os.Stat(filepath.Join(state, "login")); err == nil {
		t.Error("the login is kept after a logout")
	}
}

func TestAStdioEntryIsStartedAndItsToolCalled(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open(fmt.Sprintf(`{"name":"openab","command":%q,"args":[],"env":[{"name":"ACPOD_DEMO_TEST_MCP","value":"a child"}]}`, os.Args[0]))
	if text, _, _ := c.until(c.prompt(session, "/call x"), nil); text != "over stdio as a child\n" {
		t.Errorf("streamed %q", text)
	}
}

func TestTheTableIsTheHelp(t *testing.T) {
	help := Lines()
	for _, one := range table() {
		if one.run == nil || !strings.Contains(help, "  "+one.word) || !strings.Contains(help, one.does) {
			t.Errorf("%s is not in the help", one.word)
		}
	}
	for word, does := range behaviours {
		if !strings.Contains(Behaviours(), string(word)) || !strings.Contains(Behaviours(), does) {
			t.Errorf("%s is not in the help", word)
		}
	}
}
