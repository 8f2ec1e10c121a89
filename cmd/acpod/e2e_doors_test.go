package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Who may knock at which listener, by Host, Origin and Sec-Fetch-Site: for every method, on all three.
func TestTheDoorsOfAllThreeListeners(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.allowed_origins", `["https://allowed.example"]`))
	for _, listener := range []struct{ name, address, path, method string }{
		{"public", p.Public, "/healthz", "GET"},
		{"public", p.Public, "/", "GET"},
		{"facade", p.Facade, "/mcp", "POST"},
		{"debug", p.Debug, "/debug/tree", "GET"},
		{"debug", p.Debug, "/debug/pprof/", "GET"},
		{"debug", p.Debug, "/metrics", "GET"},
	} {
		_, port, err := net.SplitHostPort(listener.address)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			name, host, origin, site string
			open                     bool
		}{
			{"plain", "127.0.0.1:" + port, "", "", true},
			{"by name", "localhost:" + port, "", "", true},
			{"by IPv6", "[::1]:" + port, "", "", true},
			{"own origin", "127.0.0.1:" + port, "http://127.0.0.1:" + port, "", true},
			{"own origin, same-origin fetch", "127.0.0.1:" + port, "http://127.0.0.1:" + port, "same-origin", true},
			{"origin of another port", "127.0.0.1:" + port, "http://127.0.0.1:1", "", false},
			{"origin by another name", "127.0.0.1:" + port, "http://localhost:" + port, "", false},
			{"https origin", "127.0.0.1:" + port, "https://127.0.0.1:" + port, "", false},
			{"foreign origin", "127.0.0.1:" + port, "https://evil.example", "", false},
			{"an origin that only /acp knows", "127.0.0.1:" + port, "https://allowed.example", "", false},
			{"null origin", "127.0.0.1:" + port, "null", "", false},
			{"rebinding host", "evil.example:" + port, "", "", false},
			{"rebinding host with its origin", "evil.example:" + port, "http://evil.example:" + port, "", false},
			{"a host that begins like a loopback", "127.0.0.1.evil.example", "", "", false},
			{"another address", "192.0.2.1:" + port, "", "", false},
			{"cross-site fetch", "127.0.0.1:" + port, "", "cross-site", false},
		} {
			for _, method := range []string{listener.method, "DELETE", "OPTIONS", "OPTIONS *"} {
				method, server := strings.CutSuffix(method, " *")
				request, err := http.NewRequest(method, "http://"+listener.address+listener.path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				if err != nil {
					t.Fatal(err)
				}
				request.Host = row.host
				if server {
					request.URL.Opaque = "*"
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Accept", "application/json, text/event-stream")
				if row.origin != "" {
					request.Header.Set("Origin", row.origin)
				}
				if row.site != "" {
					request.Header.Set("Sec-Fetch-Site", row.site)
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if row.open == (response.StatusCode == http.StatusForbidden) {
					t.Errorf("%s %s %s, %s: %d", listener.name, method, listener.path, row.name, response.StatusCode)
				}
			}
		}
	}
}

// GET /acp follows "Who gets in" alone.
func TestWhoGetsInToACP(t *testing.T) {
	t.Parallel()
	keyless := startPod(t, with(baseConfig, "acp.allowed_origins", `["https://allowed.example"]`))
	keyed := startPod(t, with(baseConfig, "acp.auth_key", `"the.key-1"`)+"[[acp.keys]]\nname = \"laptop\"\nkey = \"the.other-key\"\n")
	bearer := func(tokens ...string) http.Header {
		header := http.Header{}
		for _, token := range tokens {
			header.Add("Authorization", token)
		}
		return header
	}
	origin := func(value string) http.Header { return http.Header{"Origin": {value}} }
	for _, row := range []struct {
		name   string
		pod    *pod
		how    dialling
		status int // 101, or the refusal
		close  uint16
		echo   string
	}{
		{"keyless, no origin", keyless, dialling{}, 101, 0, ""},
		{"keyless, acp.v1", keyless, dialling{protocols: []string{"acp.v1"}}, 101, 0, "acp.v1"},
		{"keyless, another protocol first", keyless, dialling{protocols: []string{"other", "acp.v1"}}, 101, 0, "acp.v1"},
		{"keyless, own origin", keyless, dialling{header: origin("http://" + keyless.Public)}, 101, 0, ""},
		{"keyless, listed origin", keyless, dialling{header: origin("https://allowed.example")}, 101, 0, ""},
		{"keyless, foreign origin", keyless, dialling{header: origin("https://evil.example")}, 403, 0, ""},
		{"keyless, null origin", keyless, dialling{header: origin("null")}, 403, 0, ""},
		{"keyless, an origin like a listed one", keyless, dialling{header: origin("https://allowed.example.evil.example")}, 403, 0, ""},
		{"keyed, right header", keyed, dialling{header: bearer("Bearer the.key-1")}, 101, 0, ""},
		{"keyed, the second key", keyed, dialling{header: bearer("Bearer the.other-key")}, 101, 0, ""},
		{"keyed, a foreign origin is not looked at", keyed, dialling{header: http.Header{"Authorization": {"Bearer the.key-1"}, "Origin": {"https://evil.example"}}}, 101, 0, ""},
		{"keyed, nothing", keyed, dialling{}, 401, 0, ""},
		{"keyed, only acp.v1", keyed, dialling{protocols: []string{"acp.v1"}}, 401, 0, ""},
		{"keyed, wrong header", keyed, dialling{header: bearer("Bearer wrong")}, 401, 0, ""},
		{"keyed, wrong header and right subprotocol", keyed, dialling{header: bearer("Bearer wrong"), protocols: []string{"acp.v1", "openab.bearer.the.key-1"}}, 401, 0, ""},
		{"keyed, two headers", keyed, dialling{header: bearer("Bearer the.key-1", "Bearer the.key-1")}, 400, 0, ""},
		{"keyed, right subprotocol", keyed, dialling{protocols: []string{"openab.bearer.the.key-1", "acp.v1"}}, 101, 0, "acp.v1"},
		{"keyed, wrong subprotocol", keyed, dialling{protocols: []string{"acp.v1", "openab.bearer.wrong"}}, 101, 4401, "acp.v1"},
		{"keyed, a key in the query is none", keyed, dialling{url: "ws://" + keyed.Public + "/acp?token=the.key-1"}, 401, 0, ""},
	} {
		e, response, err := tryDial(t, row.pod, row.how)
		switch {
		case row.status != 101:
			if err == nil || response == nil || response.StatusCode != row.status {
				t.Errorf("%s: %v %v, not %d", row.name, response, err, row.status)
			}
		case err != nil:
			t.Errorf("%s: %v %v", row.name, response, err)
		case row.close != 0:
			if code := e.closeCode(); code != row.close {
				t.Errorf("%s: closed with %d", row.name, code)
			}
		default:
			if got := e.conn.SubProtocol(); got != row.echo {
				t.Errorf("%s: subprotocol %q", row.name, got)
			}
			e.hello()
		}
	}
	if strings.Contains(keyed.log.String(), "the.key-1") || strings.Contains(keyed.log.String(), "the.other-key") {
		t.Error("a key stands in the log")
	}
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example:80"} {
		if status := rawUpgrade(t, keyless.Public, host); status != 403 {
			t.Errorf("a rebinding Host %s: %d", host, status)
		}
	}
}

// rawUpgrade asks for an upgrade under a Host and gives the status.
func rawUpgrade(t *testing.T, address, host string) int {
	t.Helper()
	request, err := http.NewRequest("GET", "http://"+address+"/acp", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		request.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// What a pod refuses at start is one line, and nothing listens.
func TestEachStartUpRefusalIsOneLineAndNothingListens(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, config, says string }{
		{"a facade beyond loopback", with(baseConfig, "mcp.listen", `"0.0.0.0:0"`), "loopback"},
		{"a facade by name", with(baseConfig, "mcp.listen", `"localhost:0"`), "loopback"},
		{"acp beyond loopback without a key", with(baseConfig, "acp.listen", `"0.0.0.0:0"`), "key"},
		{"acp on every address without a key", with(baseConfig, "acp.listen", `":0"`), "key"},
		{"debug beyond loopback without a key", with(baseConfig, "debug.listen", `"0.0.0.0:0"`), "key"},
		{"a key of spaces", with(baseConfig, "acp.auth_key", `"   "`), "spaces"},
		{"an empty key file", with(baseConfig, "acp.auth_key_file", `"`+empty+`"`), "empty"},
		{"a missing key file", with(baseConfig, "acp.auth_key_file", `"/nowhere/key"`), "/nowhere/key"},
		{"an unknown key", with(baseConfig, "acp.lisen", `"x"`), "lisen"},
		{"a wrong type", with(baseConfig, "agent.queue", `"many"`), "queue"},
		{"a value out of range", with(baseConfig, "agent.max_sessions", "-1"), "max_sessions"},
		{"a missing variable", with(baseConfig, "acp.auth_key", `"${env:ACPOD_TEST_NOT_SET}"`), "ACPOD_TEST_NOT_SET"},
		{"a delivery that is none", with(baseConfig, "agent.delivery", `"pigeon"`), "delivery"},
		{"not TOML", baseConfig + "[[[", "acpod.toml"},
		{"session bytes too small for a line and a result", with(baseConfig, "limits.session_bytes", `"1MiB"`), "session_bytes"},
		{"outbound bytes too small for a line", with(baseConfig, "limits.outbound_bytes", `"1MiB"`), "outbound_bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, row.config)
			select {
			case <-p.ended:
			case <-time.After(patience):
				t.Fatal("the pod started")
			}
			text := p.log.String()
			if code := p.command.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit code %d", code)
			}
			if strings.Count(strings.TrimSpace(text), "\n") != 0 || !strings.Contains(text, row.says) {
				t.Errorf("it said %q", text)
			}
			if strings.Contains(text, "listening") {
				t.Errorf("something listened: %q", text)
			}
		})
	}
}

func TestWithoutAnMCPSectionThereIsNoFacade(t *testing.T) {
	t.Parallel()
	config := baseConfig[:strings.Index(baseConfig, "[mcp]")] + baseConfig[strings.Index(baseConfig, "[debug]"):]
	p := startPod(t, config)
	if p.Facade != "" {
		t.Errorf("the ready file names a facade: %q", p.Facade)
	}
	p.await("the log to say so", func() bool { return strings.Contains(p.log.String(), "[mcp]") })
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	e.hello()
	session := e.newSession(server)
	streamed, _ := e.prompt(session, "/new")
	if !strings.Contains(streamed, `"mcpServers":[]`) || strings.Contains(streamed, "openab") {
		t.Errorf("the agent got %s", streamed)
	}
	if n := p.tree().Pod.TokensLive; n != 0 {
		t.Errorf("%d tokens are live", n)
	}
}
