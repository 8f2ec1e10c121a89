package facade

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestTheDoorIsLockedForEveryOtherSite(t *testing.T) {
	w := newWorld(t, nil)
	port := w.baseURL[strings.LastIndexByte(w.baseURL, ':'):]
	for _, c := range []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"no origin", nil, 200},
		{"own origin", map[string]string{"Origin": w.baseURL}, 200},
		{"own origin by name", map[string]string{"Host": "localhost" + port, "Origin": "http://localhost" + port}, 200},
		{"same-origin fetch", map[string]string{"Origin": w.baseURL, "Sec-Fetch-Site": "same-origin"}, 200},
		{"the address's origin for the name", map[string]string{"Host": "localhost" + port, "Origin": w.baseURL}, 403},
		{"other port", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"no port", map[string]string{"Origin": "http://127.0.0.1"}, 403},
		{"https", map[string]string{"Origin": "https://127.0.0.1" + port}, 403},
		{"foreign origin", map[string]string{"Origin": "http://evil.example"}, 403},
		{"null origin", map[string]string{"Origin": "null"}, 403},
		{"rebinding", map[string]string{"Host": "evil.example" + port, "Origin": "http://evil.example" + port}, 403},
		{"rebinding without origin", map[string]string{"Host": "evil.example" + port}, 403},
		{"localhost's neighbour", map[string]string{"Host": "localhost.evil.example"}, 403},
		{"cross-site", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"cross-site with own origin", map[string]string{"Origin": w.baseURL, "Sec-Fetch-Site": "cross-site"}, 403},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH"} {
			want := c.want
			if want == 200 && method != "POST" {
				want = 405
			}
			got := w.do(request{method: method, body: ping, header: c.header})
			if got.status != want {
				t.Errorf("%s %s: %d, want %d", method, c.name, got.status, want)
			}
			if got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: opened to other origins", method, c.name)
			}
		}
		if got := w.do(request{path: "/elsewhere", body: ping, header: c.header}).status; (got == 403) != (c.want == 403) {
			t.Errorf("%s on another path: %d", c.name, got)
		}
	}
	refused := w.node().Refused
	if refused["door_host"] == 0 || refused["door_origin"] == 0 || refused["door_cross_site"] == 0 {
		t.Errorf("the refusals are not in the tree: %v", refused)
	}
}

func TestEveryMethodButPostIsNotAllowed(t *testing.T) {
	w := newWorld(t, nil)
	for _, method := range []string{"GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH"} {
		got := w.do(request{method: method, header: map[string]string{"Mcp-Session-Id": "stale", "Accept": "text/event-stream"}})
		if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, got.status, got.header.Get("Allow"))
		}
	}
}

func TestEachFaultOfAMessageHasItsStatusAndCode(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RequestBytes = 4096 })
	long := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("y", 4096) + `"}}`
	modern := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range []struct {
		name, body string
		header     map[string]string
		status     int
		code       int    // 0 = the body is no JSON-RPC error
		id         string // of the answer
	}{
		{"ping", ping, nil, 200, 0, "1"},
		{"a charset", ping, map[string]string{"Content-Type": "application/json; charset=utf-8"}, 200, 0, "1"},
		{"upper case", ping, map[string]string{"Content-Type": "Application/JSON"}, 200, 0, "1"},
		{"text", ping, map[string]string{"Content-Type": "text/plain"}, 415, 0, ""},
		{"no content type", ping, map[string]string{"Content-Type": ""}, 415, 0, ""},
		{"a form", ping, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, 0, ""},
		{"a broken content type", ping, map[string]string{"Content-Type": "application/json;;=,"}, 415, 0, ""},
		{"too large", long, nil, 413, 0, ""},
		{"no JSON", `{"jsonrpc":`, nil, 400, -32700, "null"},
		{"nothing", ``, nil, 400, -32700, "null"},
		{"two values", ping + ping, nil, 400, -32700, "null"},
		{"a batch", `[` + ping + `]`, nil, 400, -32600, "null"},
		{"an empty batch", `[]`, nil, 400, -32600, "null"},
		{"a second method in another case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, nil, 400, -32600, "null"},
		{"a second params in another case and escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"p\u0041RAMS":{"a":1}}`, nil, 400, -32600, "null"},
		{"an id in another case", `{"jsonrpc":"2.0","Id":1,"method":"ping"}`, nil, 400, -32600, "null"},
		{"a string", `"ping"`, nil, 400, -32600, "null"},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, -32600, "1"},
		{"a fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, -32600, "null"},
		{"null as id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, -32600, "null"},
		{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, -32600, "null"},
		{"a response", `{"jsonrpc":"2.0","id":5,"result":{}}`, nil, 400, -32600, "null"},
		{"unknown method", `{"jsonrpc":"2.0","id":7,"method":"resources/list"}`, nil, 200, -32601, "7"},
		{"a subscription", `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{}}}`, nil, 200, -32601, "7"},
		{"a log level", `{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"debug"}}`, map[string]string{"Mcp-Session-Id": "x"}, 200, -32601, "7"},
		{"unknown tool", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"katashiro.read"}}`, nil, 200, -32602, "7"},
		{"call without a name", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`, nil, 200, -32602, "7"},
		{"call without params", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, nil, 200, -32602, "7"},
		{"call with arguments as text", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search_capabilities","arguments":"{}"}}`, nil, 200, -32602, "7"},
		{"call with two names", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search_capabilities","name":"execute_capability"}}`, nil, 200, -32602, "7"},
		{"old version", ping, map[string]string{"MCP-Protocol-Version": "2024-11-05"}, 200, 0, "1"},
		{"unknown version", ping, map[string]string{"MCP-Protocol-Version": "2025-01-01"}, 400, -32022, "1"},
		{"future version", ping, map[string]string{"MCP-Protocol-Version": "2027-01-01"}, 400, -32022, "1"},
		{"empty version", ping, map[string]string{"MCP-Protocol-Version": " "}, 400, -32022, "null"},
		{"stateless list", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + meta + `}}`, modern, 200, 0, "7"},
		{"stateless, only in the header", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, modern, 400, -32602, "7"},
		{"stateless, only in the body", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + meta + `}}`, nil, 400, -32020, "7"},
		{"stateless, future version in the body", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + strings.Replace(meta, "2026-07-28", "2027-01-01", 1) + `}}`, with(modern, "Mcp-Protocol-Version", "2027-01-01"), 400, -32022, "7"},
		{"stateless, another version in the body", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + strings.Replace(meta, "2026-07-28", "2027-01-01", 1) + `}}`, modern, 400, -32020, "7"},
		{"stateless, an older version in the body", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + strings.Replace(meta, "2026-07-28", "2025-11-25", 1) + `}}`, modern, 400, -32020, "7"},
		{"a future version, in the body alone", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + strings.Replace(meta, "2026-07-28", "2027-01-01", 1) + `}}`, nil, 400, -32022, "7"},
		{"a notification of an unknown version", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, map[string]string{"MCP-Protocol-Version": "2025-01-01"}, 400, -32022, "null"},
		{"stateless, another method in the header", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{` + meta + `}}`, modern, 400, -32020, "7"},
		{"stateless, no capabilities", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, modern, 400, -32602, "7"},
		{"stateless, unknown method", `{"jsonrpc":"2.0","id":7,"method":"x/y","params":{` + meta + `}}`, with(modern, "Mcp-Method", "x/y"), 404, -32601, "7"},
		{"stateless, another tool in the header", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search_capabilities",` + meta + `}}`, with(modern, "Mcp-Method", "tools/call", "Mcp-Name", "execute_capability"), 400, -32020, "7"},
	} {
		got := w.do(request{body: c.body, header: c.header})
		if got.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, got.status, c.status, got.body)
			continue
		}
		if c.id == "" {
			continue
		}
		m := parse(t, got.body)
		code := 0
		if m.Error != nil {
			code = m.Error.Code
		}
		if code != c.code || string(m.ID) != c.id || m.JSONRPC != "2.0" || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s", c.name, got.body)
		}
		if code == -32022 && !strings.Contains(string(m.Error.Data), `"supported":["2026-07-28","2025-11-25"`) {
			t.Errorf("%s: the client is not told what it may use: %s", c.name, got.body)
		}
		if got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: a session id was given", c.name)
		}
	}
}

func TestABodyIsHeldToTheLimitWhetherOrNotItsLengthIsTold(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RequestBytes = 2000 })
	frame := func(size int) string {
		head, tail := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
		return head + strings.Repeat("y", size-len(head)-len(tail)) + tail
	}
	for _, chunked := range []bool{false, true} {
		for size, want := range map[int]int{1999: 200, 2000: 200, 2001: 413, 100_000: 413} {
			var body io.Reader = strings.NewReader(frame(size))
			if chunked {
				body = struct{ io.Reader }{body} // hides the length
			}
			req, err := http.NewRequest(http.MethodPost, w.baseURL+endpoint, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := w.client.Do(req)
			if err != nil {
				t.Fatalf("%d bytes, chunked %v: %v", size, chunked, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%d bytes, chunked %v: %d, want %d", size, chunked, resp.StatusCode, want)
			}
		}
	}
	atRest(t, w)
}

func TestABodyThatDoesNotArriveIsGivenUp(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ReadTimeout = 50 * time.Millisecond })
	for name, frame := range map[string]string{
		"a length":  "Content-Length: 100\r\n\r\n{\"jsonrpc\"",
		"no length": "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"jso",
	} {
		conn, reader := w.rawConn()
		if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", w.socket.Addr(), frame); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !resp.Close || err != nil {
			t.Errorf("%s: %d, closed %v, %v", name, resp.StatusCode, resp.Close, err)
		}
		if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the connection is still open: %v", name, err)
		}
	}
	// One that leaves in the middle is as good as one that is slow.
	conn, _ := w.rawConn()
	if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", w.socket.Addr()); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	atRest(t, w)
}

// A slow call must not be taken for a client that left: the deadline of the request ends with its body, and stays where
// the body did not come.
func TestTheReadDeadlineEndsWithTheBody(t *testing.T) {
	account := kerneltest.Start(t, kernel.Options{}).Account()
	for name, c := range map[string]struct {
		body   io.Reader
		length int64
		lifted bool
	}{
		"whole":              {strings.NewReader("0123456789"), 10, true},
		"whole, no length":   {strings.NewReader("0123456789"), -1, true},
		"too long":           {strings.NewReader(strings.Repeat("x", 11)), -1, false},
		"announced too long": {strings.NewReader(""), 11, false},
		"cut short":          {strings.NewReader("01234"), 10, false},
		"broken":             {iotest.ErrReader(os.ErrDeadlineExceeded), 10, false},
	} {
		w := &deadlines{sunk: sunk{header: http.Header{}}}
		r := &http.Request{Body: io.NopCloser(c.body), ContentLength: c.length}
		body, lease, err := readBody(w, r, account, 10)
		if lifted := len(w.set) == 1 && w.set[0].IsZero(); lifted != c.lifted || len(w.set) > 1 || (err == nil) != c.lifted {
			t.Errorf("%s: deadlines set %v, %v", name, w.set, err)
		}
		if err == nil && (string(body) != "0123456789" || account.Used() < 10) {
			t.Errorf("%s: %q, %d bytes paid", name, body, account.Used())
		}
		lease.Release()
		if account.Used() != 0 {
			t.Errorf("%s: %d bytes are still paid", name, account.Used())
		}
	}
}

type deadlines struct {
	sunk
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.set = append(d.set, at); return nil }

func atRest(t *testing.T, w *world) {
	t.Helper()
	kerneltest.Eventually(t, "the facade's account is at zero", func() bool { return w.ref.Account().Used() == 0 })
}

func TestANotificationIsAcceptedAndAnsweredByNothing(t *testing.T) {
	w := newWorld(t, nil)
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/anything","params":{"x":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"x.y"}}}`,
	} {
		if got := w.do(request{body: body}); got.status != http.StatusAccepted || got.body != "" {
			t.Errorf("%s: %d %q", body, got.status, got.body)
		}
	}
	if got := w.audit.all(); len(got) != 0 {
		t.Errorf("a notification ran a capability: %v", got)
	}
}

func TestAStaleSessionIDIsIgnoredAndNoneIsGiven(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	for _, header := range []map[string]string{bearer(s.token), with(bearer(s.token), "Mcp-Session-Id", "mcp-session-of-another-life"), with(bearer(s.token), "Mcp-Session-Id", strings.Repeat("x", 4000))} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			executeBody("1", "katashiro.read", "{}"),
		} {
			got := w.do(request{body: body, header: header})
			if m := parse(t, got.body); got.status != 200 || m.Error != nil || m.Result == nil || m.Result.IsError {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
			if got.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s: a session id was given", body)
			}
		}
	}
}

func TestInitializeSaysWhoTheFacadeIsAndListsTwoTools(t *testing.T) {
	w := newWorld(t, nil)
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2026-07-28": "2025-11-25", "nonsense": "2025-11-25"} {
		got := w.do(request{body: fmt.Sprintf(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, asked)})
		var m struct {
			Result struct {
				ProtocolVersion string
				ServerInfo      struct{ Name, Version string }
				Capabilities    map[string]any
				Instructions    string
			}
		}
		if err := json.Unmarshal([]byte(got.body), &m, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		r := m.Result
		if got.status != 200 || r.ProtocolVersion != want || r.ServerInfo.Name != "oab-mcp-facade" || r.ServerInfo.Version != "test" || len(r.Capabilities) != 1 || r.Capabilities["tools"] == nil {
			t.Errorf("%s: %s", asked, got.body)
		}
		for _, word := range []string{"tools/list", searchTool, executeTool, "untrusted"} {
			if !strings.Contains(r.Instructions, word) {
				t.Errorf("the instructions do not speak of %s", word)
			}
		}
	}
	got := w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`})
	var m struct {
		Result struct {
			Tools []struct {
				Name        string
				InputSchema struct {
					Required   []string
					Properties map[string]any
				}
			}
			NextCursor string
		}
	}
	if err := json.Unmarshal([]byte(got.body), &m, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if len(m.Result.Tools) != 2 || m.Result.NextCursor != "" {
		t.Fatalf("not exactly two tools: %s", got.body)
	}
	properties := map[string][]string{}
	for _, tool := range m.Result.Tools {
		for name := range tool.InputSchema.Properties {
			properties[tool.Name] = append(properties[tool.Name], name)
		}
	}
	if len(properties[searchTool]) != 4 || len(properties[executeTool]) != 3 {
		t.Errorf("arguments: %v", properties)
	}
	if len(got.body) > 2000 {
		t.Errorf("tools/list has %d bytes, every agent pays for them in every prompt", len(got.body))
	}
}

func TestServerDiscoverAnswersAStatelessClientAndRefusesAnOlderOne(t *testing.T) {
	w := newWorld(t, nil)
	got := w.do(request{
		body:   `{"jsonrpc":"2.0","id":"server-discover-probe-1","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		header: map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"},
	})
	m := parse(t, got.body)
	if got.status != 200 || string(m.ID) != `"server-discover-probe-1"` || m.Error != nil || !strings.Contains(got.body, `"supportedVersions":["2026-07-28","2025-11-25"`) || !strings.Contains(got.body, "oab-mcp-facade") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTwoAuthorizationHeadersAreNoIdentity(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	for name, c := range map[string]struct {
		lines   []string
		live    bool
		counted string
	}{
		"none":             {nil, false, ""},
		"live":             {[]string{"Bearer " + s.token}, true, ""},
		"lower case":       {[]string{"bearer " + s.token}, true, ""},
		"the same twice":   {[]string{"Bearer " + s.token, "Bearer " + s.token}, false, "two_bearers"},
		"live, then dead":  {[]string{"Bearer " + s.token, "Bearer x"}, false, "two_bearers"},
		"dead":             {[]string{"Bearer nobody"}, false, "dead_bearer"},
		"another scheme":   {[]string{"Basic " + s.token}, false, "odd_bearer"},
		"nothing":          {[]string{"Bearer "}, false, "odd_bearer"},
		"a list":           {[]string{"Bearer x, Bearer " + s.token}, false, "dead_bearer"},
		"only the token":   {[]string{s.token}, false, "odd_bearer"},
		"a very long one":  {[]string{"Bearer " + strings.Repeat("x", 600)}, false, "odd_bearer"},
		"a longer version": {[]string{"Bearer " + s.token + "x"}, false, "dead_bearer"},
	} {
		before := w.node().Refused[c.counted]
		req, err := http.NewRequest(http.MethodPost, w.baseURL+endpoint, strings.NewReader(executeBody("1", "katashiro.read", "{}")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header["Authorization"] = c.lines
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		got := reply{resp.StatusCode, resp.Header, string(body)}
		if c.live != (parse(t, got.body).Result.Structured != nil) {
			t.Errorf("%s: %s", name, got.body)
		}
		if !c.live && refusalOf(t, got) != "unknown" {
			t.Errorf("%s: the anonymous view shows more than unknown: %s", name, got.body)
		}
		if c.counted != "" && w.node().Refused[c.counted] != before+1 {
			t.Errorf("%s: not counted as %s: %v", name, c.counted, w.node().Refused)
		}
	}
}

func TestAClosedFacadeTakesATokenOrTheKeyAndNothingElse(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ClosedToAnonymous, c.Key = true, KeySum("k-e-y") })
	s := w.session("alice", capability.Ready, echo)
	for name, c := range map[string]struct {
		header map[string]string
		want   int
	}{
		"nothing": {nil, 401}, "dead": {bearer("x"), 401}, "empty": {map[string]string{"Authorization": "Bearer "}, 401},
		"token": {bearer(s.token), 200}, "key": {bearer("k-e-y"), 200}, "key and more": {bearer("k-e-y."), 401},
	} {
		got := w.do(request{body: ping, header: c.header})
		if got.status != c.want || (got.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d %v", name, got.status, got.header)
		}
	}
	if got := w.do(request{body: executeBody("1", "katashiro.read", "{}"), header: bearer("k-e-y")}); refusalOf(t, got) != "unknown" {
		t.Errorf("the key is more than the anonymous view: %d %s", got.status, got.body)
	}
	if w := newWorld(t, func(c *Config) { c.ClosedToAnonymous = true }); w.do(request{body: ping, header: bearer("")}).status != 401 {
		t.Error("without a key file an empty bearer opened the door")
	}
}
