package main

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// knock sends a request as it stands and gives the response, on a socket from the given local address ("" = any).
func knock(t *testing.T, p *pod, from, request string) (net.Conn, *http.Response) {
	t.Helper()
	dialer := net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := dialer.Dial("tcp", p.Public)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, response
}

const upgradeHeaders = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// Every way to write an upgrade is let in or refused by its rule, and never by chance.
func TestHowAnUpgradeMayBeWritten(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.allowed_origins", `["chrome-extension://abcdef"]`))
	_, port, err := net.SplitHostPort(p.Public)
	if err != nil {
		t.Fatal(err)
	}
	request := func(host, headers string) string {
		return "GET /acp HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n"
	}
	own := func(headers string) string { return request(p.Public, headers) }
	origin := func(host, value string) string { return request(host, upgradeHeaders+"Origin: "+value+"\r\n") }
	seen := map[string]bool{}
	for _, row := range []struct {
		name, request string
		status        int
	}{
		{"plain", own(upgradeHeaders), 101},
		{"compression offered", own(upgradeHeaders + "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-other\r\n"), 101},
		{"a list in Connection", own(strings.Replace(upgradeHeaders, "Connection: Upgrade", "Connection: keep-alive, Upgrade", 1)), 101},
		{"two Connection lines", own("Connection: keep-alive\r\n" + upgradeHeaders), 101},
		{"two Upgrade lines", own("Upgrade: h2c\r\n" + upgradeHeaders), 101},
		{"a list in Upgrade", own(strings.Replace(upgradeHeaders, "Upgrade: websocket", "Upgrade: h2c, WebSocket", 1)), 101},
		{"an Upgrade to something else", own(strings.Replace(upgradeHeaders, "Upgrade: websocket", "Upgrade: websockets", 1)), 426},
		{"no upgrade", own(""), 426},
		{"no Connection", own(strings.Replace(upgradeHeaders, "Connection: Upgrade\r\n", "", 1)), 426},
		{"an old version", own(strings.Replace(upgradeHeaders, "13", "8", 1)), 400},
		{"no version", own(strings.Replace(upgradeHeaders, "Sec-WebSocket-Version: 13\r\n", "", 1)), 400},
		{"a key that is too short", own(strings.Replace(upgradeHeaders, "dGhlIHNhbXBsZSBub25jZQ==", "dGhl", 1)), 400},
		{"a POST", "POST /acp HTTP/1.1\r\nHost: " + p.Public + "\r\nContent-Length: 0\r\n" + upgradeHeaders + "\r\n", 405},
		{"HTTP/1.0", "GET /acp HTTP/1.0\r\nHost: " + p.Public + "\r\n" + upgradeHeaders + "\r\n", 400},
		{"no Host", "GET /acp HTTP/1.1\r\n" + upgradeHeaders + "\r\n", 400},
		{"HTTP/1.0 without a Host", "GET /acp HTTP/1.0\r\n" + upgradeHeaders + "\r\n", 403},
		{"two Hosts", request(p.Public+"\r\nHost: "+p.Public, upgradeHeaders), 400},
		{"an empty Host", request("", upgradeHeaders), 403},
		{"absolute form", "GET http://" + p.Public + "/acp HTTP/1.1\r\nHost: " + p.Public + "\r\n" + upgradeHeaders + "\r\n", 101},
		{"absolute form of another host", "GET http://evil.example/acp HTTP/1.1\r\nHost: " + p.Public + "\r\n" + upgradeHeaders + "\r\n", 403},
		{"absolute form of a host that folds to ours", "GET http://localho\u017ft/acp HTTP/1.1\r\nHost: " + p.Public + "\r\n" + upgradeHeaders + "\r\n", 403},
		{"by name", request("localhost:"+port, upgradeHeaders), 101},
		{"by a name in capitals", request("LocalHost:"+port, upgradeHeaders), 101},
		{"without a port", request("localhost", upgradeHeaders), 101},
		{"another port", request("localhost:1", upgradeHeaders), 101},
		{"IPv6", request("[::1]:"+port, upgradeHeaders), 101},
		{"IPv6 without a port", request("[::1]", upgradeHeaders), 101},
		{"IPv6, the long way", request("[0:0:0:0:0:0:0:1]", upgradeHeaders), 101},
		{"all of 127/8", request("127.1.2.3", upgradeHeaders), 101},
		{"IPv6 that is not loopback", request("[2001:db8::1]:"+port, upgradeHeaders), 403},
		{"IPv6 unspecified", request("[::]", upgradeHeaders), 403},
		{"unspecified", request("0.0.0.0", upgradeHeaders), 403},
		{"a short form", request("127.1", upgradeHeaders), 403},
		{"a trailing dot", request("localhost.", upgradeHeaders), 403},
		{"a name below", request("evil.localhost", upgradeHeaders), 403},
		{"rebinding", request("evil.example:"+port, upgradeHeaders), 403},
		{"own origin", origin(p.Public, "http://"+p.Public), 101},
		{"own origin in capitals", origin("localhost:"+port, "http://LOCALHOST:"+port), 101},
		{"own origin on the default port", origin("localhost", "http://localhost"), 101},
		{"own origin by IPv6", origin("[::1]:"+port, "http://[::1]:"+port), 101},
		{"an origin without the port", origin(p.Public, "http://127.0.0.1"), 403},
		{"an origin by another name", origin(p.Public, "http://localhost:"+port), 403},
		{"an origin with a slash", origin(p.Public, "http://"+p.Public+"/"), 403},
		{"an https origin", origin(p.Public, "https://"+p.Public), 403},
		{"null", origin(p.Public, "null"), 403},
		{"an empty origin", origin(p.Public, ""), 403},
		{"a listed origin", origin(p.Public, "chrome-extension://abcdef"), 101},
		{"a listed origin in capitals is not listed", origin(p.Public, "chrome-extension://ABCDEF"), 403},
		{"two origins", own(upgradeHeaders + "Origin: http://" + p.Public + "\r\nOrigin: chrome-extension://abcdef\r\n"), 403},
		{"Sec-Fetch-Site is not looked at", own(upgradeHeaders + "Sec-Fetch-Site: cross-site\r\n"), 101},
	} {
		conn, response := knock(t, p, "", row.request)
		if response.StatusCode != row.status {
			t.Errorf("%s: %s", row.name, response.Status)
		}
		if response.StatusCode == 101 {
			id := response.Header.Get("Acp-Connection-Id")
			if id == "" || seen[id] {
				t.Errorf("%s: Acp-Connection-Id is %q", row.name, id)
			}
			seen[id] = true
			if got := response.Header.Values("Sec-WebSocket-Extensions"); len(got) != 0 {
				t.Errorf("%s: negotiated %q", row.name, got)
			}
		}
		if row.status == 405 && response.Header.Get("Allow") != "GET" {
			t.Errorf("%s: Allow is %q", row.name, response.Header.Get("Allow"))
		}
		conn.Close()
	}
}

// One socket too many is told when to come again, and a seat that is left is free.
func TestSocketsAreCounted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ scope, from, other string }{
		{"connections", "127.0.0.1", ""},
		{"connections_per_address", "127.0.0.1", "127.0.0.7"},
	} {
		t.Run(row.scope, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, with(baseConfig, "limits."+row.scope, "2"))
			request := "GET /acp HTTP/1.1\r\nHost: " + p.Public + "\r\n" + upgradeHeaders + "X-Forwarded-For: 192.0.2.1\r\n\r\n"
			enter := func(from string, want int) (net.Conn, *http.Response) {
				t.Helper()
				conn, response := knock(t, p, from, request)
				if response.StatusCode != want {
					t.Fatalf("from %s: %s", from, response.Status)
				}
				if want == 101 { // one that has spoken makes room for nobody
					w := &wirePeer{t, conn}
					w.send(initialize)
					w.answered("1", 0)
				}
				return conn, response
			}
			first, _ := enter(row.from, 101)
			enter(row.from, 101)
			if _, response := enter(row.from, 503); response.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			if row.other != "" {
				enter(row.other, 101)
			}
			if gateway, ok := p.tree().find("/gateway"); !ok || gateway.Refused[row.scope] != 1 {
				t.Errorf("the refusal is not shown: %v", gateway.Refused)
			}
			before := p.tree().Pod.Connections
			first.Close()
			eventually(t, "the seat is free", func() bool { return p.tree().Pod.Connections == before-1 })
			enter(row.from, 101)
		})
	}
}
