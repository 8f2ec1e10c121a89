package connection

import (
	"net/http"
	"strings"
	"testing"
)

// TestWhoGetsIn is the contract's table: keyless by Host and Origin, keyed by the key alone.
func TestWhoGetsIn(t *testing.T) {
	keys := []Key{NewKey("", "s3cret"), NewKey("laptop", "other-key")}
	const origins = "https://panel.example,chrome-extension://abc"
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	const protocol = "Sec-WebSocket-Protocol"
	for _, test := range []struct {
		name     string
		keys     []Key
		host     string
		header   http.Header
		status   int
		close    uint16
		identity string
		echo     bool
	}{
		{name: "keyless, localhost, no Origin", host: "localhost:8080", status: 101},
		{name: "keyless, 127.0.0.1", host: "127.0.0.1:8080", status: 101},
		{name: "keyless, another loopback address", host: "127.9.9.9", status: 101},
		{name: "keyless, IPv6 loopback", host: "[::1]:8080", status: 101},
		{name: "keyless, case of localhost", host: "LocalHost:1", status: 101},
		{name: "keyless, a name that was rebound", host: "evil.example:8080", status: 403},
		{name: "keyless, a private address", host: "192.168.0.5:8080", status: 403},
		{name: "keyless, no Host", host: "", status: 403},
		{name: "keyless, a name below localhost", host: "a.localhost:8080", status: 403},
		{name: "keyless, own Origin", host: "127.0.0.1:8080", header: headers("Origin", "http://127.0.0.1:8080"), status: 101},
		{name: "keyless, own host on another port", host: "127.0.0.1:8080", header: headers("Origin", "http://127.0.0.1:9090"), status: 403},
		{name: "keyless, own host by https", host: "127.0.0.1:8080", header: headers("Origin", "https://127.0.0.1:8080"), status: 403},
		{name: "keyless, another loopback name", host: "127.0.0.1:8080", header: headers("Origin", "http://localhost:8080"), status: 403},
		{name: "keyless, listed Origin", host: "localhost:8080", header: headers("Origin", "chrome-extension://abc"), status: 101},
		{name: "keyless, prefix of a listed Origin", host: "localhost:8080", header: headers("Origin", "chrome-extension://abcd"), status: 403},
		{name: "keyless, listed Origin in another case", host: "localhost:8080", header: headers("Origin", "HTTPS://panel.example"), status: 403},
		{name: "keyless, null", host: "localhost:8080", header: headers("Origin", "null"), status: 403},
		{name: "keyless, empty Origin", host: "localhost:8080", header: headers("Origin", ""), status: 403},
		{name: "keyless, two Origins", host: "localhost:8080", header: headers("Origin", "http://localhost:8080", "Origin", "https://panel.example"), status: 403},
		{name: "keyless, listed Origin on a rebound name", host: "evil.example", header: headers("Origin", "https://panel.example"), status: 403},
		{name: "keyless, a bearer plays no part", host: "localhost", header: headers("Authorization", "Bearer x", protocol, "openab.bearer.x, acp.v1"), status: 101, echo: true},

		{name: "keyed, header", keys: keys, host: "evil.example", header: headers("Authorization", "Bearer s3cret"), status: 101, identity: Shared},
		{name: "keyed, named key", keys: keys, header: headers("Authorization", "Bearer other-key"), status: 101, identity: "key:laptop"},
		{name: "keyed, foreign Origin is not consulted", keys: keys, header: headers("Authorization", "Bearer s3cret", "Origin", "https://evil.example"), status: 101, identity: Shared},
		{name: "keyed, wrong header", keys: keys, header: headers("Authorization", "Bearer nope"), status: 401},
		{name: "keyed, wrong header beats a right subprotocol", keys: keys, header: headers("Authorization", "Bearer nope", protocol, "openab.bearer.s3cret"), status: 401},
		{name: "keyed, right header beats a wrong subprotocol", keys: keys, header: headers("Authorization", "Bearer s3cret", protocol, "openab.bearer.nope"), status: 101, identity: Shared},
		{name: "keyed, empty bearer", keys: keys, header: headers("Authorization", "Bearer "), status: 401},
		{name: "keyed, two headers", keys: keys, header: headers("Authorization", "Bearer s3cret", "Authorization", "Bearer s3cret"), status: 400},
		{name: "keyed, other scheme alone", keys: keys, header: headers("Authorization", "Basic czNjcmV0"), status: 401},
		{name: "keyed, other scheme and a subprotocol", keys: keys, header: headers("Authorization", "Basic x", protocol, "openab.bearer.s3cret"), status: 101, identity: Shared},
		{name: "keyed, subprotocol", keys: keys, header: headers(protocol, "openab.bearer.s3cret, acp.v1"), status: 101, identity: Shared, echo: true},
		{name: "keyed, subprotocol in two lines", keys: keys, header: headers(protocol, "openab.bearer.s3cret", protocol, "acp.v1"), status: 101, identity: Shared, echo: true},
		{name: "keyed, subprotocol without acp.v1", keys: keys, header: headers(protocol, "openab.bearer.other-key"), status: 101, identity: "key:laptop"},
		{name: "keyed, wrong subprotocol", keys: keys, header: headers(protocol, "acp.v1, openab.bearer.nope"), status: 101, close: 4401, echo: true},
		{name: "keyed, the first bearer entry decides", keys: keys, header: headers(protocol, "openab.bearer.nope, openab.bearer.s3cret"), status: 101, close: 4401},
		{name: "keyed, empty bearer entry", keys: keys, header: headers(protocol, "openab.bearer."), status: 101, close: 4401},
		{name: "keyed, nothing", keys: keys, status: 401},
		{name: "keyed, only acp.v1", keys: keys, header: headers(protocol, "acp.v1"), status: 401},
		{name: "keyed, loopback without a key", keys: keys, host: "127.0.0.1", status: 401},
		{name: "only acp.v1 is echoed", host: "localhost", header: headers(protocol, "mqtt, acp.v2, acp.v1x"), status: 101},
		{name: "acp.v1 exactly", host: "localhost", header: headers(protocol, "ACP.V1"), status: 101},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.header == nil {
				test.header = http.Header{}
			}
			v := admit(test.keys, strings.Split(origins, ","), test.host, test.header)
			if v.status != test.status || v.close != test.close {
				t.Errorf("got %d, close %d (%s), want %d, close %d", v.status, v.close, v.reason, test.status, test.close)
			}
			if v.status == 101 && v.close == 0 && v.identity != test.identity {
				t.Errorf("identity %q, want %q", v.identity, test.identity)
			}
			if v.status == 101 && v.echo != test.echo {
				t.Errorf("echo %v, want %v", v.echo, test.echo)
			}
			if v.status != 101 && (v.reason == "" || v.text == "") {
				t.Error("a refusal says nothing")
			}
			if v.close != 0 && v.identity != "" {
				t.Errorf("a refused key has the identity %q", v.identity)
			}
		})
	}
}

func TestKeysLeaveTheHeaders(t *testing.T) {
	h := http.Header{"Authorization": {"Bearer s3cret"}, headerProtocol: {"openab.bearer.s3cret", "acp.v1"}}
	strip(h, true)
	if got := h.Values(headerProtocol); len(got) != 1 || got[0] != "acp.v1" {
		t.Errorf("subprotocols are %q", got)
	}
	if h.Get("Authorization") != "" {
		t.Error("the Authorization header is still there")
	}
	h.Set(headerProtocol, "openab.bearer.s3cret")
	if strip(h, false); h.Get(headerProtocol) != "" {
		t.Error("a subprotocol is left although none is echoed")
	}
}

func TestAKeyDoesNotKeepItsSecret(t *testing.T) {
	if k := NewKey("laptop", "s3cret"); strings.Contains(strings.ToLower(k.Identity), "s3cret") || strings.Contains(string(k.hash[:]), "s3cret") {
		t.Error("the secret is in the key")
	}
}
