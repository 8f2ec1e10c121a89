//go:build !race

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Clients that read slowly, or not at all: what the pod holds for them, what they get and what becomes of their sessions.

// narrowPeer is a bare client whose socket takes in little, so that what it does not read stays with the pod.
func narrowPeer(t *testing.T, p *pod) *wirePeer {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		if err := raw.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		}); err != nil {
			return err
		}
		return failed
	}}
	conn, err := dialer.DialContext(context.Background(), "tcp", p.Public)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	w := &wirePeer{t, conn}
	w.raw([]byte("GET /acp HTTP/1.1\r\nHost: " + p.Public + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	for head := ""; !strings.HasSuffix(head, "\r\n\r\n"); {
		var b [1]byte
		if _, err := readFull(conn, b[:]); err != nil {
			t.Fatalf("the upgrade: %v after %q", err, head)
		}
		if head += string(b[:]); len(head) > 4096 {
			t.Fatalf("the upgrade: %q", head)
		}
	}
	return w
}

const secretHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"_meta":{"acpod.dev/client":"a secret of 16 or more"}}}`

func (w *wirePeer) greet() {
	w.t.Helper()
	w.send(secretHello)
	w.answered("1", 0)
}

// heardTurn is what a client got of a turn.
type heardTurn struct {
	words    strings.Builder
	updates  int // frames of session/update
	answer   frame
	dropped  int
	longest  int
	closedBy string // of a close frame: code and text
}

// hear reads until the answer with that id, or the end of the socket.
func (w *wirePeer) hear(id string, each func(f frame)) *heardTurn {
	w.t.Helper()
	h := &heardTurn{}
	var whole []byte
	for {
		first, payload, err := w.tryFrame()
		if err != nil {
			h.closedBy = err.Error()
			return h
		}
		switch first & 0x0f {
		case 0x8:
			h.closedBy = fmt.Sprint(binary.BigEndian.Uint16(payload), " ", string(payload[2:]))
			return h
		case 0x9, 0xa:
			continue
		}
		if whole = append(whole, payload...); first&0x80 == 0 {
			continue
		}
		f := frame{raw: string(whole)}
		whole = whole[:0]
		if err := json.Unmarshal([]byte(f.raw), &f); err != nil {
			w.t.Fatalf("%v in %.300s", err, f.raw)
		}
		if wrong := f.misfit(); wrong != "" {
			w.t.Errorf("the pod sent a frame that its schema does not allow: %s in %.300s", wrong, f.raw)
		}
		if each != nil {
			each(f)
		}
		switch {
		case f.Method == "session/update":
			var params struct {
				Update struct {
					Kind    string         `json:"sessionUpdate"`
					Content map[string]any `json:"content"`
				} `json:"update"`
			}
			_ = json.Unmarshal(f.Params, &params)
			text, _ := params.Update.Content["text"].(string)
			h.words.WriteString(text)
			h.updates++
			h.longest = max(h.longest, len(f.raw))
		case f.Method == "_acpod/dropped":
			h.dropped++
		case f.Method == "" && string(f.ID) == id:
			h.answer = f
			return h
		}
	}
}

// floodOf is what the demo agent says for /flood n, from the given update on.
func floodOf(from, n int) string {
	var b strings.Builder
	for i := from; i < n; i++ {
		label := fmt.Sprintf("%08d ", i)
		b.WriteString(label + strings.Repeat("f", 1024-len(label)))
	}
	return b.String()
}

func residentKB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// A client that reads slowly loses nothing, however much its agent has to say: the agent waits, text becomes fewer frames, the
// pod holds little, and the client is not closed for it.
func TestASlowClientGetsEveryByteInFewerFrames(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := narrowPeer(t, p)
	w.greet()
	session := w.open()
	const updates, single = 20_000, 5 << 20
	w.prompt("2", session, fmt.Sprintf("/flood %d\n/emit %d\nthe end", updates, single))
	agent := p.agentOf(session)
	eventually(t, "the agent is held up", func() bool { // it has said what fits between it and the client, and no more
		node, ok := p.tree().find(treeName(session) + "/agent")
		if !ok {
			return false
		}
		before := cpuTicks(t, agent)
		time.Sleep(300 * time.Millisecond)
		return before > 0 && cpuTicks(t, agent) == before && node.State == "running"
	})
	if node, ok := p.tree().find(treeName(session)); !ok || node.Account.Used > 3<<20 {
		t.Errorf("%v: the session holds %d bytes", ok, node.Account.Used)
	}
	held := residentKB(t, p.command.Process.Pid)
	begun := time.Now()
	slow := 0
	h := w.hear("2", func(frame) {
		if slow++; slow < 200 {
			time.Sleep(5 * time.Millisecond)
		}
	})
	if stopReason(h.answer) != "end_turn" {
		t.Fatalf("answered %.300s %s after %v", h.answer.raw, h.closedBy, time.Since(begun))
	}
	if want := floodOf(0, updates) + strings.Repeat("e", single) + "echo: the end\n"; h.words.String() != want {
		t.Errorf("%d bytes came, want %d", h.words.Len(), len(want))
	}
	if h.updates >= updates || h.dropped != 0 {
		t.Errorf("%d frames for %d updates, %d gaps", h.updates, updates+2, h.dropped)
	}
	if grown := residentKB(t, p.command.Process.Pid) - held; grown > 200<<10 {
		t.Errorf("the pod grew by %d KiB", grown)
	}
	t.Logf("%d updates in %d frames, the longest of %d bytes", updates+2, h.updates, h.longest)
	w.ping()
	counted := fmt.Sprintf("\nacpod_updates_merged_total %d\n", updates+2-h.updates)
	p.await("the count of what became part of another's frame", func() bool {
		return strings.Contains(string(p.get("http://"+p.Debug+"/metrics")), counted)
	})
}

// cpuTicks is the time that a process has computed.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// An update that is longer than limits.agent_line_bytes reaches nobody; its client is told in its place.
func TestAnUpdateThatIsTooLongIsToldToItsClient(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.agent_line_bytes", `"1MiB"`))
	e := dial(t, p)
	session := e.open()
	streamed, answer := e.prompt(session, "before\n/emit 1048576\nafter")
	if streamed != "echo: before\necho: after\n" || stopReason(answer) != "end_turn" {
		t.Errorf("streamed %.200q, answered %.200s", streamed, answer.raw)
	}
	gaps := e.received("_acpod/dropped")
	if len(gaps) != 1 {
		t.Fatalf("told %d times", len(gaps))
	}
	var told struct {
		SessionID, Scope string
		Updates, Bytes   int
	}
	if err := json.Unmarshal(gaps[0].Params, &told); err != nil || told.SessionID != session || told.Scope != "agent_line_bytes" || told.Updates != 1 || told.Bytes < 1<<20 {
		t.Errorf("told %s", gaps[0].raw)
	}
	var order []string
	e.mu.Lock()
	for _, f := range e.frames {
		switch {
		case f.Method == "_acpod/dropped":
			order = append(order, "gap")
		case strings.Contains(f.raw, "echo: before"):
			order = append(order, "before")
		case strings.Contains(f.raw, "echo: after"):
			order = append(order, "after")
		}
	}
	e.mu.Unlock()
	if strings.Join(order, " ") != "before gap after" {
		t.Errorf("the client got %v", order)
	}
}
