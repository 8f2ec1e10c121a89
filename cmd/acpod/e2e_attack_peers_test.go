//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hand-written adversaries. In each of these tests somebody who is sound works on beside the attack, the pod holds no more than
// it promised and than the attack is worth, and afterwards it is at rest.

// soon is how long a neighbour may wait for a call while the pod is under attack, on a machine that is busy with the attackers.
const soon = 15 * time.Second

// neighbour is a sound client with one server, and the agent that calls it.
type neighbour struct {
	*extension
	t       *testing.T
	p       *pod
	agent   agentClient
	session string
	calls   int
}

func neighbourOf(t *testing.T, p *pod) *neighbour {
	t.Helper()
	n := &neighbour{extension: dial(t, p), t: t, p: p}
	n.session = n.open(newServer("katashiro", genA, "katashiro.click"))
	n.agent = n.facadeOf(n.session)
	return n
}

// works wants one call to be answered soon.
func (n *neighbour) works() {
	n.t.Helper()
	begun := time.Now()
	n.calls++
	if result := n.agent.execute("katashiro.click", fmt.Sprintf(`{"n":%d}`, n.calls)); result.text() != fmt.Sprintf(`katashiro.click {"n":%d}`, n.calls) {
		n.t.Fatalf("the neighbour's call %d: %.300s", n.calls, result.raw)
	}
	if took := time.Since(begun); took > soon {
		n.t.Errorf("the neighbour's call %d took %v", n.calls, took)
	}
}

// during runs an attack while the neighbour works on.
func (n *neighbour) during(attack func()) {
	n.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		attack()
	}()
	for over := false; !over; {
		n.works()
		select {
		case <-done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	n.works()
}

// small is a pod of few clients, whose promise is small enough to be broken by an attack that is held in memory.
func small(config string) string {
	return with(config, "agent.session_ttl", `"500ms"`, "limits.pod_bytes", `"128MiB"`, "limits.connections", "300", "limits.sessions", "300")
}

// Hundreds of clients that send one byte at a time, of all that can be cut: handshakes, frames, fragments, requests of the facade.
func TestAttackOneByteAtATime(t *testing.T) {
	t.Parallel()
	p := startPlain(t, small(noAgent))
	n := neighbourOf(t, p)
	frame := maskedFrame(padded(`{"jsonrpc":"2.0","id":2,"method":"no/such","params":"`, `"}`, 200))
	fragments := wireFrame(0x01, "{")
	for range 200 {
		fragments = append(fragments, wireFrame(0x00, "p")...)
	}
	upgrade := "GET /acp HTTP/1.1\r\nHost: " + p.Public + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	post := "POST /mcp HTTP/1.1\r\nHost: " + p.Facade + "\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n" + strings.Repeat("{", 60)
	n.during(func() {
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				to, bytes := p.Public, []byte(upgrade)
				switch i % 4 {
				case 1:
					bytes = append(append(bytes, maskedFrame(initialize)...), frame...)
				case 2:
					bytes = append(append(bytes, maskedFrame(initialize)...), fragments...)
				case 3:
					to, bytes = p.Facade, []byte(post)
				}
				conn, err := net.Dial("tcp", to)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				for j := range bytes {
					if _, err := conn.Write(bytes[j : j+1]); err != nil {
						return // it was closed for it
					}
					time.Sleep(time.Millisecond) // what the attack is about
				}
			})
		}
		all.Wait()
	})
	n.hangUp()
	p.rest()
	p.kept(256 << 20)
}

// 8 MiB of nested arrays, as request, as notification, as the answer to a call and as arguments of one.
func TestAttackNestedArrays(t *testing.T) {
	t.Parallel()
	p := startPlain(t, with(small(noAgent), "mcp.tunnel_timeout", `"5s"`))
	n := neighbourOf(t, p)
	nested := func(head, tail string, size int) string {
		return head + strings.Repeat("[", size-len(head)-len(tail)) + tail
	}
	n.during(func() {
		for range 3 {
			w := greeted(t, p)
			w.send(nested(`{"jsonrpc":"2.0","id":7,"method":"no/such","params":`, "", 8<<20))
			w.answered("null", -32700)
			w.send(nested(`{"jsonrpc":"2.0","method":"no/such","params":`, "", 8<<20))
			w.answered("null", -32700)
			w.send(nested("", "", 8<<20))
			w.answered("null", -32700)
			w.send(`{"jsonrpc":"2.0","id":8,"method":"no/such","params":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`)
			w.answered("8", -32601)
			_ = w.conn.Close()
		}
	})
	// As an answer it is no answer: the call ends in its time, and the client is told what it sent.
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) {
		return json.RawMessage(nested("", "", 7<<20)), nil, false
	}
	agent := e.facadeOf(e.open(server))
	n.during(func() {
		if result := agent.execute("katashiro.click", `{}`); result.refusal() != "outcome_unknown" {
			t.Errorf("an answer of nested arrays: %.300s", result.raw)
		}
	})
	e.await("-32700 for the answer", func() bool { return e.answers["null"].Error != nil && e.answers["null"].Error.Code == -32700 })
	// As arguments: refused, and not sent.
	for _, row := range []struct {
		deep   int
		closed bool
		status int
	}{{1<<20 - 512, false, 400}, {100_000, true, 400}, {5_000, true, 200}} {
		arguments := strings.Repeat("[", row.deep)
		if row.closed {
			arguments += strings.Repeat("]", row.deep)
		}
		response, body := agent.do(agent.request(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"a":`+arguments+`}}}}`))
		if response.StatusCode != row.status || row.status == 200 && !strings.Contains(string(body), `"bad_arguments"`) {
			t.Errorf("arguments %d deep: %d %.300s", row.deep, response.StatusCode, body)
		}
	}
	if calls := server.callCount(); calls != 1 {
		t.Errorf("%d calls were made", calls)
	}
	e.hangUp()
	n.hangUp()
	p.rest()
	p.kept(256 << 20)
}

// A million answers to requests that nobody sent, of four clients at once.
func TestAttackAMillionUnknownIDs(t *testing.T) {
	t.Parallel()
	p := startPlain(t, small(noAgent))
	n := neighbourOf(t, p)
	const clients, each = 4, 250_000
	n.during(func() {
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() {
				w := greeted(t, p)
				var batch []byte
				for i := range each {
					id := fmt.Sprint(1_000_000*(client+1) + i)
					if i%2 == 0 {
						id = `"` + id + `"`
					}
					text := `{"jsonrpc":"2.0","id":` + id + `,"result":0}`
					batch = append(append(batch, 0x81, 0x80|byte(len(text)), 0, 0, 0, 0), text...)
					if len(batch) > 64<<10 || i == each-1 {
						w.raw(batch)
						batch = batch[:0]
					}
				}
				w.ping()
				_ = w.conn.Close()
			})
		}
		all.Wait()
	})
	n.hangUp()
	p.rest()
	p.kept(256 << 20)
	if counted := p.counter(`acpod_refused_total`, "late_answer"); counted != clients*each {
		t.Errorf("%d were counted", counted)
	}
}

// A client that declares 8 servers in each of its sessions and answers none of their connects.
func TestAttackServersThatNeverAnswer(t *testing.T) {
	t.Parallel()
	config := small(noAgent)
	for i := range 8 {
		config += fmt.Sprintf("[[mcp.acp_servers]]\nname = \"s%d\"\ntools = [\"*\"]\n", i)
	}
	p := startPlain(t, config)
	n := neighbourOf(t, p)
	e := dial(t, p)
	e.hello()
	silent := func(string, json.RawMessage) (any, *rpcError, bool, bool) { return nil, nil, true, true }
	var sessions []string
	n.during(func() {
		for range 20 {
			var servers []*mcpServer
			for i := range 8 {
				server := newServer(fmt.Sprint("s", i), genA)
				server.handshake = silent
				servers = append(servers, server)
			}
			sessions = append(sessions, e.newSession(servers...))
		}
	})
	refused := e.state(sessions[19], "s7", "failed") // 64 connects are under way: there is no place for more
	if !strings.Contains(refused.Reason, "establishes_per_connection") {
		t.Errorf("the reason is %q", refused.Reason)
	}
	begun := time.Now()
	n.during(func() {
		if found := e.facadeOf(sessions[0]).search(`{}`); len(found.Pending) == 0 || len(found.Pending)+len(found.Unavailable) != 8 || found.Total != 0 {
			t.Errorf("a search of it: %+v", found)
		}
	})
	if took := time.Since(begun); took > soon+10*time.Second {
		t.Errorf("the search took %v", took)
	}
	e.hangUp()
	n.hangUp()
	p.rest()
	p.kept(256 << 20)
}

// An agent that writes 1 GiB without a line break: it is read and forgotten, and what comes behind it is heard.
func TestAttackAnAgentThatWritesWithoutALineBreak(t *testing.T) {
	t.Parallel()
	p := startPlain(t, small(attackerConfig(t, baseConfig)))
	e, other := dial(t, p), dial(t, p)
	session, quiet := e.open(), other.open()
	gush := e.sendPrompt(session, fmt.Sprint("/gush ", 1<<30))
	for over, n := false, 0; !over; n++ {
		begun := time.Now()
		other.says(quiet, fmt.Sprint("still ", n), fmt.Sprint("echo: still ", n))
		if took := time.Since(begun); took > soon {
			t.Errorf("the neighbour's turn took %v", took)
		}
		e.mu.Lock()
		_, over = e.answers[gush]
		e.mu.Unlock()
	}
	if f := e.answer(gush); stopReason(f) != "end_turn" {
		t.Errorf("the turn of 1 GiB: %.300s", f.raw)
	}
	e.says(session, "and now", "echo: and now")
	if n := p.refusals("long_line"); n != 1 {
		t.Errorf("%d lines are counted as too long", n)
	}
	e.hangUp()
	other.hangUp()
	p.rest()
	p.kept(256 << 20)
}

// 10,000 sockets that never send, from one process: a client that has something to say gets in meanwhile.
func TestAttackTenThousandSilentSockets(t *testing.T) {
	p := startPlain(t, with(noAgent, "agent.session_ttl", `"500ms"`))
	n := neighbourOf(t, p)
	const sockets = 10_000
	var mu sync.Mutex
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	n.during(func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range sockets / 20 {
					conn, err := net.DialTimeout("tcp", p.Public, patience)
					if err != nil {
						t.Errorf("after %d: %v", len(open), err)
						return
					}
					mu.Lock()
					open = append(open, conn)
					mu.Unlock()
				}
			})
		}
		all.Wait()
	})
	if len(open) != sockets {
		t.Fatalf("%d sockets are open", len(open))
	}
	begun := time.Now()
	late := neighbourOf(t, p)
	late.works()
	if took := time.Since(begun); took > soon {
		t.Errorf("a client that came behind them waited %v", took)
	}
	p.kept(600 << 20)
	late.hangUp()
	for _, conn := range open {
		conn.Close()
	}
	open = nil
	n.works()
	n.hangUp()
	p.rest()
}

// counter is a counter of /metrics with that label's value.
func (p *pod) counter(name, label string) (n int) {
	p.t.Helper()
	for line := range strings.Lines(string(p.get("http://" + p.Debug + "/metrics"))) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, `"`+label+`"`) {
			var value float64
			_, rest, _ := strings.Cut(line, "} ")
			if _, err := fmt.Sscan(rest, &value); err != nil && err != io.EOF {
				p.t.Fatal(err)
			}
			n += int(value)
		}
	}
	return n
}
