//go:build !race

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// tight is a pod whose accounts are small beside what is sent to it, so that all of them are full.
func tight(config string) string {
	return with(config, "agent.session_ttl", `"500ms"`, "limits.pod_bytes", `"64MiB"`, "limits.connections", "100", "limits.sessions", "100",
		"limits.connection_bytes", `"16MiB"`, "limits.session_bytes", `"12MiB"`, "limits.outbound_bytes", `"8MiB"`, "limits.agent_line_bytes", `"2MiB"`,
		"limits.result_bytes", `"4MiB"`, "acp.write_timeout", `"5s"`)
}

// crowd is who attacks: each on a socket of its own, until it is closed or the time is over.
type crowd struct {
	p     *pod
	over  chan struct{}
	group sync.WaitGroup
	mu    sync.Mutex
	open  []net.Conn
}

func newCrowd(p *pod) *crowd { return &crowd{p: p, over: make(chan struct{})} }

// add lets n attackers come, again when they were closed. What they do ends with an error of their socket.
func (c *crowd) add(n int, address string, attack func(conn net.Conn)) {
	for range n {
		c.group.Go(func() {
			for {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					c.mu.Lock()
					c.open = append(c.open, conn)
					c.mu.Unlock()
					attack(conn)
					_, _ = io.Copy(io.Discard, io.LimitReader(conn, 64)) // it holds what it has, and does not read what it gets
					_ = conn.Close()
				}
				select {
				case <-c.over:
					return
				case <-time.After(20 * time.Millisecond): // a closed attacker comes back, but not as a busy loop of dials
				}
			}
		})
	}
}

// leave ends them all.
func (c *crowd) leave() {
	close(c.over)
	done := make(chan struct{})
	go func() { c.group.Wait(); close(done) }()
	for {
		c.mu.Lock()
		for _, conn := range c.open {
			_ = conn.Close()
		}
		c.open = nil
		c.mu.Unlock()
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// hello upgrades a socket and initializes it.
func (c *crowd) hello(conn net.Conn) error {
	_, err := fmt.Fprintf(conn, "GET /acp HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n%s",
		c.p.Public, maskedFrame(initialize))
	if err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 300)) // the 101 and the beginning of the answer
	return err
}

// halfFrame is the header of a masked text frame of n bytes and the first part of it.
func halfFrame(first byte, n, part int) []byte {
	b := []byte{first, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint64(b[2:10], uint64(n))
	return append(b, bytes.Repeat([]byte{'x'}, part)...)
}

// Everything at once that holds memory without an agent: heads that do not end, frames half read, floods that nobody reads the answers of,
// large notifications that are no UTF-8, results that slow callers do not take, lists of tools, sessions that are opened and left. The pod holds what it
// has promised and no more, and afterwards nothing.
func TestTheWorstCaseIsKeptWhileAllAccountsAreFull(t *testing.T) {
	p := startPlain(t, tight(noAgent))
	promise, idle := p.promise(), p.memory("VmRSS")
	var honest []*extension
	for range 3 { // results that nobody takes, and lists of tools as long as they may be
		e := dial(t, p)
		honest = append(honest, e)
		server, lister := newServer("katashiro", genA, "katashiro.click"), newServer("other", genA)
		server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return sizedResult(3 << 20), nil, false }
		for i := range 100 {
			lister.tools = append(lister.tools, object{"name": fmt.Sprintf("other.t%d", i), "description": strings.Repeat("d", 4000), "inputSchema": object{"type": "object"}})
		}
		agent := e.facadeOf(e.open(server, lister))
		for range 6 {
			agent.callSlowly(p, "katashiro.click")
		}
	}
	c := newCrowd(p)
	var head strings.Builder
	for i := range 95 {
		fmt.Fprintf(&head, "X-%d: %s\r\n", i, strings.Repeat("h", 190))
	}
	write := func(conn net.Conn, b []byte) error { _, err := conn.Write(b); return err }
	c.add(40, p.Public, func(conn net.Conn) {
		_ = write(conn, []byte("GET /acp HTTP/1.1\r\nHost: "+p.Public+"\r\n"+head.String()))
	})
	c.add(150, p.Facade, func(conn net.Conn) {
		_ = write(conn, []byte("POST /mcp HTTP/1.1\r\nHost: "+p.Facade+"\r\n"+head.String()))
	})
	c.add(100, p.Facade, func(conn net.Conn) {
		_ = write(conn, []byte("POST /mcp HTTP/1.1\r\nHost: "+p.Facade+"\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("{", 900_000)))
	})
	for _, n := range []int{128<<10 + 1, 4 << 20, 32<<10 + 1, 8 << 20} { // the second half never comes
		c.add(8, p.Public, func(conn net.Conn) {
			if c.hello(conn) == nil {
				_ = write(conn, halfFrame(0x81, n, n/2))
			}
		})
		c.add(4, p.Public, func(conn net.Conn) { // in fragments
			if c.hello(conn) == nil && write(conn, halfFrame(0x01, n/4, n/4)) == nil {
				_ = write(conn, halfFrame(0x00, n/4, n/8))
			}
		})
	}
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"no/such"}`, `{"jsonrpc":"2.0","method":"no/such"}`, `{"jsonrpc":"2.0","id":7,"method":"session/list"}`,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 1000) + `","method":"no/such"}`,
		`{"jsonrpc":"2.0","method":"no/such","params":{"text":"` + strings.Repeat("\xff", 900_000) + `"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"acp","name":"katashiro","id":"a"},{"type":"acp","name":"other","id":"b"}],"_meta":{"baggage":"` + strings.Repeat("b", 500_000) + `"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/","additionalDirectories":[` + strings.Repeat(`"/",`, 200_000) + `"/"]}}`,
	} {
		flood := bytes.Repeat(maskedFrame(text), max(1, 200_000/len(text)))
		c.add(6, p.Public, func(conn net.Conn) {
			_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			if c.hello(conn) == nil {
				for write(conn, flood) == nil {
				}
			}
		})
	}
	used := c.watch(t, idle, promise)
	c.leave()
	for _, e := range honest {
		e.hangUp()
	}
	if used < 16<<20 {
		t.Errorf("only %d bytes were on accounts: this was no attack", used)
	}
	p.rest()
	p.kept(promise)
}

// The same with agents: what they say to clients that do not read, lines as long as they may be, stderr, prompts, and agents that
// read nothing.
func TestTheWorstCaseIsKeptWhileAgentsFloodClientsThatDoNotRead(t *testing.T) {
	p := startPlain(t, with(tight(baseConfig), "agent.max_sessions", "8", "agent.stop_grace", `"1s"`, "agent.turn_idle_timeout", `"1s"`, "agent.cancel_timeout", `"1s"`))
	promise, idle := p.promise(), p.memory("VmRSS")
	c := newCrowd(p)
	for _, line := range []string{"/flood 5000", "/emit 1900000", "/stderr 1000000", "/hang"} {
		c.add(4, p.Public, func(conn net.Conn) {
			_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			if c.hello(conn) != nil {
				return
			}
			id, err := openOn(conn)
			if err != nil {
				return
			}
			text := strings.Repeat(line+`\n`, 3) + strings.Repeat("p", 900_000)
			for range 20 {
				if _, err := conn.Write(maskedFrame(`{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"` + id + `","prompt":[{"type":"text","text":"` + text + `"}]}}`)); err != nil {
					return
				}
			}
		})
	}
	used := c.watch(t, idle, promise)
	c.leave()
	if used < 1<<20 {
		t.Errorf("only %d bytes were on accounts: this was no attack", used)
	}
	p.rest()
	p.kept(promise)
}

// openOn opens a session and reads on until its id has come.
func openOn(conn net.Conn) (id string, err error) {
	if _, err = conn.Write(maskedFrame(`{"jsonrpc":"2.0","id":8,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var seen []byte
	buffer := make([]byte, 512)
	for len(seen) < 64<<10 {
		n, err := conn.Read(buffer)
		if err != nil {
			return "", err
		}
		seen = append(seen, buffer[:n]...)
		if at := bytes.Index(seen, []byte(`"sess_`)); at >= 0 && len(seen) >= at+42 {
			return string(seen[at+1 : at+42]), nil
		}
	}
	return "", io.ErrUnexpectedEOF
}

// watch samples the pod's memory, looks at it as an operator would, and gives the most that was on accounts.
func (c *crowd) watch(t *testing.T, idle, promise int64) (used int64) {
	t.Helper()
	samples, most := 0, int64(0)
	for begun := time.Now(); time.Since(begun) < 8*time.Second; samples++ {
		most = max(most, c.p.memory("VmRSS"))
		if samples%10 == 0 {
			used = max(used, c.p.tree().Pod.BytesUsed)
			c.p.get("http://" + c.p.Debug + "/metrics")
		}
		time.Sleep(20 * time.Millisecond) // the distance of two samples
	}
	t.Logf("idle %d MiB, at most %d MiB of %d promised in %d samples; %d MiB on accounts at most", idle>>20, most>>20, promise>>20, samples, used>>20)
	return used
}
