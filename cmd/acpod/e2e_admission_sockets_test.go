package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// figure reads one series of /metrics, summed over whatever labels it has besides those given (name="value" pairs).
func (p *pod) figure(name string, labels ...string) (sum float64) {
	p.t.Helper()
	for line := range strings.SplitSeq(string(p.get("http://"+p.Debug+"/metrics")), "\n") {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		head, value, _ := cutLast(line, " ")
		fits := true
		for _, label := range labels {
			fits = fits && strings.Contains(head, label)
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && fits {
			sum += n
		}
	}
	return sum
}

// inUse is how many slots of a limit are taken, as the metrics tell it.
func (p *pod) inUse(scope string) int {
	label := `scope="` + scope + `"`
	return int(p.figure("acpod_slots_taken_total", label) - p.figure("acpod_slots_returned_total", label))
}

// slotsAtRest waits until every slot has been given back.
func (p *pod) slotsAtRest() {
	p.t.Helper()
	for _, scope := range []string{"connections", "connections_per_address", "handshakes", "closing", "sessions_per_connection", "sessions", "sessions_per_key", "max_sessions"} {
		eventually(p.t, "the return of the slots of "+scope, func() bool { return p.inUse(scope) == 0 })
	}
}

const comesIn = "GET /acp HTTP/1.1\r\nHost: localhost\r\n" + upgradeHeaders

// comes sends an upgrade and gives the socket, when it was let in, and the answer otherwise.
func comes(t *testing.T, p *pod, headers string) (w *wirePeer, status int, retry, body string) {
	t.Helper()
	conn, response := knock(t, p, "", comesIn+headers+"\r\n")
	if response.StatusCode == 101 {
		return &wirePeer{t, conn}, 101, "", ""
	}
	text, _ := io.ReadAll(response.Body)
	_ = conn.Close()
	return nil, response.StatusCode, response.Header.Get("Retry-After"), string(text)
}

// Sockets that say no initialize keep nobody out: for as long as each had its time a newcomer is told when to come again,
// and from then on the longest silent one goes. Those that have spoken stay.
func TestTheLongestSilentSocketMakesRoom(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ scope, limit, spoken string }{
		{"handshakes", "limits.handshakes", "any number"},
		{"connections", "limits.connections", "one"},
	} {
		t.Run(row.scope, func(t *testing.T) {
			t.Parallel()
			n := "2"
			if row.scope == "connections" {
				n = "3" // one of them is taken by somebody who has spoken
			}
			p := startPod(t, with(baseConfig, row.limit, n))
			speaker := greeted(t, p)
			began := time.Now() // before the pod knows of the oldest
			oldest := upgraded(t, p)
			younger := upgraded(t, p)
			if _, status, retry, body := comes(t, p, ""); time.Since(began) < 4500*time.Millisecond && (status != 503 || retry != "5" || !strings.Contains(body, row.scope)) {
				t.Errorf("one too many is answered %d, Retry-After %q, %q", status, retry, body)
			}
			var newcomer *wirePeer
			eventually(t, "room for a newcomer", func() bool {
				newcomer, _, _, _ = comes(t, p, "")
				return newcomer != nil
			})
			if waited := time.Since(began); waited < 5*time.Second {
				t.Errorf("the first was displaced after %v", waited)
			}
			first, payload := oldest.frame()
			if first != 0x88 || binary.BigEndian.Uint16(payload) != 1008 || string(payload[2:]) != "initialize_timeout" {
				t.Errorf("the displaced one is told %x %q", first, payload)
			}
			newcomer.send(initialize)
			newcomer.answered("1", 0)
			newcomer.ping()
			speaker.ping()
			younger.send(initialize) // it was not its turn, or the room was made by it: then it is told the same
			gateway, _ := p.tree().find("/gateway")
			if gateway.Refused["handshake_displaced"] < 1 || gateway.Refused[row.scope] < 1 {
				t.Errorf("the tree shows %v", gateway.Refused)
			}
			if p.figure("acpod_socket_ends_total", `reason="handshake_displaced"`) < 1 || p.figure("acpod_upgrades_refused_total", `why="`+row.scope+`"`) < 1 {
				t.Error("the metrics do not show it")
			}
			for _, w := range []*wirePeer{speaker, oldest, younger, newcomer} {
				_ = w.conn.Close()
			}
			p.rest()
			p.slotsAtRest()
		})
	}
}

// An address is the socket's own: what a header says of another neither makes room nor takes any.
func TestAnAddressIsTheSocketsOwn(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.connections_per_address", "1"))
	enter := func(from, headers string) (net.Conn, int, string) {
		t.Helper()
		conn, response := knock(t, p, from, comesIn+headers+"\r\n")
		body := ""
		if response.StatusCode != 101 {
			text, _ := io.ReadAll(response.Body)
			body = string(text)
		}
		return conn, response.StatusCode, body
	}
	first, status, _ := enter("127.0.0.1", "X-Forwarded-For: 192.0.2.1\r\n")
	if status != 101 {
		t.Fatalf("the first: %d", status)
	}
	speaks := &wirePeer{t, first} // so that it makes room for nobody, however slow this machine is
	speaks.send(initialize)
	speaks.answered("1", 0)
	for _, claim := range []string{"", "X-Forwarded-For: 192.0.2.2\r\n", "X-Forwarded-For: 127.0.0.2\r\n", "Forwarded: for=192.0.2.3;host=localhost\r\n", "X-Real-IP: 192.0.2.4\r\n", "X-Forwarded-For: 192.0.2.5, 192.0.2.6\r\nForwarded: for=\"[2001:db8::1]\"\r\n"} {
		if _, status, body := enter("127.0.0.1", claim); status != 503 || !strings.Contains(body, "connections_per_address") {
			t.Errorf("a second socket with %q is answered %d %q", claim, status, body)
		}
	}
	if _, status, _ := enter("127.0.0.2", "X-Forwarded-For: 127.0.0.1\r\n"); status != 101 {
		t.Errorf("another address is answered %d", status)
	}
	_ = first.Close()
	eventually(t, "the seat of the first", func() bool {
		conn, status, _ := enter("127.0.0.1", "")
		_ = conn.Close()
		return status == 101
	})
}

// Ten thousand wrong keys leave numbers, and nobody who has the right one waits for them.
func TestWrongKeysPileUpNothing(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "acp.auth_key", `"the.key"`, "limits.handshakes", "4", "limits.connections", "8"))
	right := "Authorization: Bearer the.key\r\n"
	wrong := func(n int) { // over one connection as long as it is kept, as fast as it goes
		var conn net.Conn
		var in *bufio.Reader
		defer func() {
			if conn != nil {
				_ = conn.Close()
			}
		}()
		for i := range n {
			if conn == nil {
				var err error
				if conn, err = net.Dial("tcp", p.Public); err != nil {
					t.Error(err)
					return
				}
				_ = conn.SetDeadline(time.Now().Add(5 * patience))
				in = bufio.NewReader(conn)
			}
			_, err := fmt.Fprintf(conn, "GET /acp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer wrong-%d\r\nX-Forwarded-For: 10.%d.%d.%d\r\n\r\n", p.Public, i, i>>16, i>>8&255, i&255)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("a wrong key is answered %s", response.Status)
				return
			}
			if response.Close {
				_ = conn.Close()
				conn = nil
			}
		}
	}
	wrong(50)
	series := bytes.Count(p.get("http://"+p.Debug+"/metrics"), []byte("\n"))
	tree := len(p.get("http://" + p.Debug + "/debug/tree"))
	memory := p.figure("process_resident_memory_bytes")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { wrong(2500) })
	}
	for range 60 { // in a browser's way: let in to be told, and gone
		conn, response := knock(t, p, "", comesIn+"Sec-WebSocket-Protocol: acp.v1, openab.bearer.wrong\r\n\r\n")
		if response.StatusCode != 101 {
			t.Errorf("a wrong key in the subprotocol is answered %s", response.Status)
		}
		_ = conn.Close()
	}
	for range 10 { // and those that stay to be told, more than there are handshakes and connections
		if w, status, _, _ := comes(t, p, "Sec-WebSocket-Protocol: openab.bearer.wrong\r\n"); w == nil {
			t.Errorf("a wrong key in the subprotocol is answered %d", status)
		}
	}
	w, status, _, _ := comes(t, p, right)
	if w == nil {
		t.Fatalf("the right key is answered %d", status)
	}
	w.send(initialize)
	w.answered("1", 0)
	all.Wait()
	gateway, _ := p.tree().find("/gateway")
	if gateway.Refused["wrong_key"] < 10050 || p.figure("acpod_upgrades_refused_total", `why="wrong_key"`) != 10120 {
		t.Errorf("counted in the tree %d, in the metrics %v", gateway.Refused["wrong_key"], p.figure("acpod_upgrades_refused_total", `why="wrong_key"`))
	}
	_ = w.conn.Close()
	p.rest()
	p.slotsAtRest()
	if now := bytes.Count(p.get("http://"+p.Debug+"/metrics"), []byte("\n")); now > series+100 {
		t.Errorf("the metrics grew from %d to %d lines", series, now)
	}
	if now := len(p.get("http://" + p.Debug + "/debug/tree")); now > tree+4096 {
		t.Errorf("the tree grew from %d to %d bytes", tree, now)
	}
	if now := p.figure("process_resident_memory_bytes"); now > memory+64<<20 {
		t.Errorf("the memory grew from %.0f to %.0f bytes", memory, now)
	}
}
