package facade

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// Whoever fills the facade with connections that do nothing, or with heads that never end, keeps nobody out.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Connections = 8 })
	s := w.session("katashiro", capability.Ready, echo)
	for _, sent := range []string{"", "POST /mcp HTTP/1.1\r\nHost: x\r\nA: "} {
		for range 40 {
			conn, err := net.Dial("tcp", w.socket.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Logf("closed already: %v", err)
			}
		}
		for n := range 20 {
			if reply := w.do(request{body: executeBody(fmt.Sprint(n), "katashiro.read", "{}"), header: bearer(s.token)}); reply.status != http.StatusOK {
				t.Fatalf("with %q in the way: %d %s", sent, reply.status, reply.body)
			}
		}
	}
	kerneltest.Eventually(t, "the count of those who went", func() bool { return w.node().Refused["idle_connection"] > 0 })
}

// A head of many lines costs far more than its bytes: who brings it pays for it while the request is served.
func TestARequestPaysForItsHead(t *testing.T) {
	small, large := http.Header{"A": {"b"}}, http.Header{}
	for n := range 2000 {
		large[fmt.Sprint("H", n)] = []string{""}
	}
	if got := slotBytes(&http.Request{Header: small}); got != requestBytes {
		t.Errorf("a small head costs %d", got-requestBytes)
	}
	if got := slotBytes(&http.Request{Header: large}); got < requestBytes+2000*100 {
		t.Errorf("a head of 2000 lines costs %d", got-requestBytes)
	}
}
