package connection

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestAClientOfALoopbackAddressIsOfThisMachineWhateverItsOwnIs(t *testing.T) {
	for name, c := range map[string]struct {
		peer, local string
		keys        int
		asked       bool
	}{
		"by loopback":                          {"127.0.0.1:40000", "127.0.0.1:8080", 0, true},
		"bound to another address":             {"192.0.2.2:40000", "127.0.0.1:8080", 0, true},
		"by IPv6, bound to another address":    {"[fd00::2]:40000", "[::1]:8080", 0, true},
		"from elsewhere":                       {"192.0.2.9:40000", "192.0.2.2:8080", 0, false},
		"with keys, which say more than a pid": {"127.0.0.1:40000", "127.0.0.1:8080", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			g := &Gateway{cfg: Config{Keys: make([]Key, c.keys), Descends: func(netip.AddrPort, netip.AddrPort) bool { asked = true; return true }}}
			r := httptest.NewRequest(http.MethodGet, "/acp", nil)
			r.RemoteAddr = c.peer
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.local)))))
			if got := g.descends(r); got != c.asked || asked != c.asked {
				t.Errorf("descends %v, asked %v", got, asked)
			}
		})
	}
}
