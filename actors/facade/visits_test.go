package facade

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// named is a connection that has a name and does nothing.
type named struct {
	net.Conn
	name string
}

func TestWhichConnectionGoes(t *testing.T) {
	conns := map[string]net.Conn{}
	for _, name := range strings.Split("abcdef", "") {
		conns[name] = &named{name: name}
	}
	for _, row := range []struct{ name, steps, gone string }{
		{"there is room", "a+ b+", ""},
		{"the longest idle", "a+ b+ c+ d+", "a"},
		{"and then the next", "a+ b+ c+ d+ e+", "ab"},
		{"idle since its last request", "a+ b+ c+ a= a. d+", "b"},
		{"not one that is busy", "a+ b+ c+ a= d+", "b"},
		{"the newcomer when all are busy", "a+ b+ c+ a= b= c= d+", "d"},
		{"one that has gone makes room", "a+ b+ c+ b- d+", ""},
	} {
		v := newVisits(3, func(string) {})
		gone := ""
		for step := range strings.FieldsSeq(row.steps) {
			conn := conns[step[:1]]
			switch step[1] {
			case '+':
				if out, _ := v.come(conn); out != nil {
					gone += out.(*named).name
				}
			case '=':
				v.turn(conn, true)
			case '.':
				v.turn(conn, false)
			case '-':
				v.gone(conn)
			}
		}
		if gone != row.gone || len(v.open) > 3 {
			t.Errorf("%s: %q went, want %q; %d are open", row.name, gone, row.gone, len(v.open))
		}
	}
}

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
