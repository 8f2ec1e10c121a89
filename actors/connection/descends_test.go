package connection

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAKeylessClientThatDescendsFromThePodIsRefused(t *testing.T) {
	var asked atomic.Int32
	var peer, local atomic.Value
	descends := func(p, l netip.AddrPort) bool {
		asked.Add(1)
		peer.Store(p)
		local.Store(l)
		return true
	}
	for name, c := range map[string]struct {
		cfg    Config
		header http.Header
		asked  int32
		status int
	}{
		"keyless":                        {Config{Descends: descends}, nil, 1, http.StatusForbidden},
		"keyless, not an upgrade":        {Config{Descends: descends}, http.Header{"Upgrade": nil}, 0, http.StatusUpgradeRequired},
		"keyless, of a foreign page":     {Config{Descends: descends}, http.Header{"Origin": {"https://evil.example"}}, 0, http.StatusForbidden},
		"with a key":                     {Config{Descends: descends, Keys: []Key{NewKey("k", "secret")}}, http.Header{"Authorization": {"Bearer secret"}}, 0, http.StatusSwitchingProtocols},
		"keyless, and nobody is a child": {Config{Descends: func(netip.AddrPort, netip.AddrPort) bool { return false }}, nil, 0, http.StatusSwitchingProtocols},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			p := startPod(t, c.cfg)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.server.URL+"/acp", nil)
			must(t, err)
			request.Header = http.Header{
				"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
			}
			for name, values := range c.header {
				request.Header[name] = values
			}
			response, err := p.server.Client().Do(request)
			must(t, err)
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != c.status || asked.Load() != c.asked {
				t.Errorf("status %d, asked %d times", response.StatusCode, asked.Load())
			}
			if c.asked == 0 {
				return
			}
			if got := local.Load().(netip.AddrPort).String(); "http://"+got != p.server.URL || !peer.Load().(netip.AddrPort).Addr().IsLoopback() {
				t.Errorf("asked of %v to %v", peer.Load(), got)
			}
			text := make([]byte, 512)
			n, _ := response.Body.Read(text)
			if !strings.Contains(string(text[:n]), "acp.auth_key") {
				t.Errorf("it says %q", text[:n])
			}
			if stats := p.gateway.Stats(); stats.Refused["descendant"] != 1 {
				t.Errorf("counted: %v", stats.Refused)
			}
		})
	}
}
