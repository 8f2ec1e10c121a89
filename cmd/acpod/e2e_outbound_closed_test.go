//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client that stops reading while the pod owes it what cannot wait has 10 s; then it is closed with 1013, and told which limit
// it was. Its session lives on: a resume brings what it did not read, once and in order, and the count of what was not kept.
func TestAClientThatDoesNotReadWhatItIsOwedIsClosedAndItsSessionLives(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.outbound_frames", "4", "acp.keepalive", `"1s"`))
	w := narrowPeer(t, p)
	w.greet()
	session := w.serveKatashiro()
	caller := p.callerOf(session)
	w.prompt("2", session, "/flood 20000")
	eventually(t, "the socket is full", func() bool { return p.connOf(session)["outbound_frames"] == float64(2) }) // the soft mark
	begun := time.Now()

	refusals := make(chan string, 6)
	var calls sync.WaitGroup
	for i := range cap(refusals) { // more than the stream of that server takes
		calls.Go(func() { refusals <- caller.execute("katashiro.click", fmt.Sprintf(`{"n":%d}`, i)).refusal() })
	}
	eventually(t, "the end of the connection", func() bool { return p.tree().Pod.Sessions == 1 && p.clientOf(session) == nil })
	if lived := time.Since(begun); lived < 9*time.Second {
		t.Errorf("it was closed after %v", lived)
	}
	calls.Wait()
	close(refusals)
	counts := map[string]int{}
	for word := range refusals {
		counts[word]++
	}
	if counts["overloaded"] == 0 || counts["overloaded"]+counts["outcome_unknown"]+counts["detached"] != 6 {
		t.Errorf("the calls ended as %v", counts)
	}
	before := w.hear("2", nil) // all that the socket still held
	if !strings.HasPrefix(before.closedBy, "1013 slow_reader: outbound_frames, 4 of 4 in use") {
		t.Errorf("closed by %q", before.closedBy)
	}
	p.turn(session, "idle", false)

	again := narrowPeer(t, p)
	again.greet()
	again.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/resume","params":{"cwd":"/","sessionId":%q}}`, session))
	var result struct {
		Meta struct {
			Session account `json:"acpod.dev/session"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(again.answered("2", 0).Result, &result); err != nil {
		t.Fatal(err)
	}
	told := result.Meta.Session
	again.prompt("3", session, "alive")
	after := again.hear("3", nil)
	rest, alive := strings.CutSuffix(after.words.String(), "echo: alive\n")
	if !alive || stopReason(after.answer) != "end_turn" || told.LastTurn == nil {
		t.Errorf("answered %.300s after %+v", after.answer.raw, told)
	}
	heard := before.words.String() + rest
	next, missing := 0, 0
	for at := 0; at+1024 <= len(heard); at += 1024 {
		var n int
		if _, err := fmt.Sscanf(heard[at:at+8], "%d", &n); err != nil || n < next {
			t.Fatalf("after update %d came %.40q", next-1, heard[at:])
		}
		missing += n - next
		next = n + 1
	}
	if missing += 20_000 - next; missing != told.MissedUpdates || len(heard)%1024 != 0 || rest == "" {
		t.Errorf("%d updates are missing, %d are told of; %d bytes came by the resume", missing, told.MissedUpdates, len(rest))
	}
	t.Logf("%d bytes before the close, %d by the resume, %d updates not kept", before.words.Len(), len(rest), missing)
}

// serveKatashiro opens a session whose client serves one tool, and answers the pod until that is ready.
func (w *wirePeer) serveKatashiro() (session string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"open","method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"acp","name":"katashiro","id":"k"}]}}`)
	for ready := false; session == "" || !ready; {
		f := frame{raw: w.message()}
		if err := json.Unmarshal([]byte(f.raw), &f); err != nil {
			w.t.Fatalf("%v in %.300s", err, f.raw)
		}
		result := ""
		switch {
		case f.Method == "mcp/connect":
			result = `{"connectionId":"c"}`
		case strings.Contains(f.raw, `"tools/list"`):
			result = `{"tools":[{"name":"katashiro.click","inputSchema":{"type":"object"}}]}`
		case strings.Contains(f.raw, `"method":"initialize"`):
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"k","version":"1"}}`
		}
		if result != "" {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, result))
		}
		if string(f.ID) == `"open"` {
			var opened struct{ SessionID string }
			_ = json.Unmarshal(f.Result, &opened)
			session = opened.SessionID
		}
		ready = ready || strings.Contains(f.raw, `"state":"ready","tools"`)
	}
	return session
}

// clientOf is the name of the connection that a session has in the tree, nil for none.
func (p *pod) clientOf(session string) any {
	node, _ := p.tree().find("/" + treeName(session))
	return node.Attrs["client"]
}

// connOf is what the tree shows of that connection.
func (p *pod) connOf(session string) map[string]any {
	name, _ := p.clientOf(session).(string)
	node, _ := p.tree().find("/" + name)
	return node.Attrs
}
