package facade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestABareCallIsServedWithItsIdToTheByte(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	for _, id := range []string{`1`, `0`, `-7`, `9007199254740993`, `18446744073709551617`, `"1"`, `""`, `"a b"`, `"é"`, `"\u00e9\u003c\/"`, `"\ud800"`, `"server-discover-probe-1"`} {
		for method, body := range map[string]string{
			"execute":    executeBody(id, "katashiro.read", "{}"),
			"search":     searchBody(id, "{}"),
			"refusal":    executeBody(id, "nothing.such", "{}"),
			"ping":       `{"id":` + id + `,"method":"ping","jsonrpc":"2.0"}`,
			"list":       `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`,
			"initialize": `{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
			"unknown":    `{"jsonrpc":"2.0","id":` + id + `,"method":"x/y"}`,
		} {
			got := w.do(request{body: body, header: bearer(s.token)})
			if got.status != 200 || !strings.HasPrefix(got.body, `{"jsonrpc":"2.0","id":`+id+`,"`) {
				t.Errorf("%s with id %s: %d %.120s", method, id, got.status, got.body)
			}
		}
	}
}

// What the facade only carries is neither decoded nor written again: lone surrogates, escapes, numbers beyond 2^53,
// space and order pass in both directions, and of a result repeated names too.
func TestArgumentsAndResultsPassToTheByte(t *testing.T) {
	const arguments = `{ "s":"\ud800 \u003cb\u003e \/","n": 9007199254740993, "f":1.50e+02,"n2":[1,2 ,3],"é":"\u00e9","":null,"nest":{"a":1,"A":2}}`
	const result = `{ "content":[{"type":"image","data":"AAAA","mimeType":"image/png","x":"\ud83d"},{"type":"video","u":"\u003c"}],"structuredContent":{"n":18446744073709551617, "z":1,"z":2},"_meta":{"k":1.0},"isError":true,"more":[ ] }`
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		if string(call.Arguments) != arguments {
			t.Errorf("the server got %s", call.Arguments)
		}
		q.Answer(capability.Result{Raw: []byte(result)}, nil)
	})
	got := w.do(request{body: executeBody("1", "katashiro.read", arguments), header: bearer(s.token)})
	if want := `{"jsonrpc":"2.0","id":1,"result":` + result + `}`; got.body != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	if got.header.Get("Content-Type") != "application/json" {
		t.Errorf("content type %q", got.header.Get("Content-Type"))
	}
	stateless := w.do(request{
		body:   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"execute_capability","arguments":{"name":"katashiro.read","arguments":` + arguments + `}}}`,
		header: with(bearer(s.token), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_capability"),
	})
	if want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",` + strings.TrimLeft(result[1:], " ") + `}`; stateless.body != want {
		t.Errorf("got  %s\nwant %s", stateless.body, want)
	}
}

func TestBytesThatAreNoTextAreReplacedAndCounted(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	got := w.do(request{body: executeBody("1", "katashiro.read", "{\"s\":\"a\xffb\"}"), header: bearer(s.token)})
	if got.status != 200 || !strings.Contains(got.body, "{\"s\":\"a\uFFFDb\"}") || w.node().Refused["not_utf8"] != 1 {
		t.Errorf("%d %q %v", got.status, got.body, w.node().Refused)
	}
}

func TestASearchIsOneTextBlockThatIsJSON(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	type found struct {
		Capabilities []struct {
			Name, Provider, Risk, Availability, Description string
			InputSchema                                     map[string]any `json:"input_schema"`
		}
		Unavailable []any
		Pending     []string
		NextCursor  string `json:"next_cursor"`
		Total       int
	}
	search := func(arguments string, header map[string]string) found {
		t.Helper()
		got := w.do(request{body: searchBody(`"s"`, arguments), header: header})
		m := parse(t, got.body)
		if m.Result == nil || m.Result.IsError || len(m.Result.Content) != 1 || m.Result.Content[0].Type != "text" {
			t.Fatalf("%s: %d %s", arguments, got.status, got.body)
		}
		var f found
		if err := json.Unmarshal([]byte(m.Result.Content[0].Text), &f, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%s: %v in %s", arguments, err, m.Result.Content[0].Text)
		}
		return f
	}
	all := search(`{}`, bearer(s.token))
	if all.Total != 2 || len(all.Capabilities) != 2 || all.Capabilities[0].Name != "katashiro.read" || all.Capabilities[0].Risk != "read" ||
		all.Capabilities[0].Availability != "ready" || all.Capabilities[0].Provider != "openab-browser" || all.Capabilities[0].InputSchema["type"] != "object" {
		t.Errorf("%+v", all)
	}
	if absent := search(`{"query":null,"limit":null,"cursor":null,"detail":null}`, bearer(s.token)); absent.Total != 2 {
		t.Errorf("a null is not an argument that was left out: %+v", absent)
	}
	if names := search(`{"query":"writes","detail":"names"}`, bearer(s.token)); len(names.Capabilities) == 0 || names.Capabilities[0].Name != "katashiro.write" || names.Capabilities[0].Description != "" {
		t.Errorf("%+v", names)
	}
	first := search(`{"limit":1}`, bearer(s.token))
	if len(first.Capabilities) != 1 || first.NextCursor == "" {
		t.Fatalf("%+v", first)
	}
	if second := search(`{"limit":1,"cursor":"`+first.NextCursor+`"}`, bearer(s.token)); len(second.Capabilities) != 1 || second.Capabilities[0].Name != "katashiro.write" || second.NextCursor != "" {
		t.Errorf("%+v", second)
	}
	if nobody := search(`{}`, nil); nobody.Total != 0 || len(nobody.Capabilities) != 0 || len(nobody.Pending) != 0 {
		t.Errorf("without a token: %+v", nobody)
	}
	w.tokens.revoke(s.token)
	if dead := search(`{}`, bearer(s.token)); dead.Total != 0 {
		t.Errorf("with a revoked token: %+v", dead)
	}
	kerneltest.Eventually(t, "the session's account is as before", func() bool { return s.desk.Account().Used() == s.idle })
}

func TestBadArgumentsAreRefusedAndReachNobody(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		t.Errorf("the server was called: %s", call.Arguments)
		q.Fail(errors.New("no"))
	})
	call := func(tool, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	}
	for _, body := range []string{
		call(searchTool, `{"query":1}`), call(searchTool, `{"query":["a"]}`), call(searchTool, `{"limit":0}`), call(searchTool, `{"limit":101}`), call(searchTool, `{"limit":"5"}`),
		call(searchTool, `{"limit":1.5}`), call(searchTool, `{"cursor":{}}`), call(searchTool, `{"cursor":"made up"}`), call(searchTool, `{"detail":"none"}`), call(searchTool, `{"words":"x"}`),
		call(searchTool, `{"query":"a","query":"b"}`),
		call(executeTool, `{}`), call(executeTool, `null`), call(executeTool, `{"name":null}`), call(executeTool, `{"name":7}`), call(executeTool, `{"name":"katashiro.read","name":"katashiro.write"}`),
		call(executeTool, `{"name":"katashiro.read","arguments":"[]"}`), call(executeTool, `{"name":"katashiro.read","arguments":[]}`), call(executeTool, `{"name":"katashiro.read","arguments":1}`),
		call(executeTool, `{"name":"katashiro.read","idempotency_key":5}`), call(executeTool, `{"name":"katashiro.read","idempotency_key":"`+strings.Repeat("é", 129)+`"}`),
		call(executeTool, `{"name":"katashiro.write","n":5}`), call(executeTool, `{"name":"katashiro.write","arguments":{"n":"five"}}`),
	} {
		got := w.do(request{body: body, header: bearer(s.token)})
		if code := refusalOf(t, got); code != "bad_arguments" {
			t.Errorf("%s: %s", body, code)
		}
	}
	executions := 0
	for _, e := range w.audit.all() {
		if e.Event != capability.EventRefused || e.Outcome != "bad_arguments" || !e.IsError || e.Session != "#alice" {
			t.Errorf("audit: %+v", e)
		}
		executions++
	}
	if executions != 12 {
		t.Errorf("%d refusals of 12 executions are in the audit", executions)
	}
	const longKey = 128
	w2 := newWorld(t, nil)
	s2 := w2.session("bob", capability.Ready, echo)
	if got := w2.do(request{body: call(executeTool, `{"name":"katashiro.read","arguments":null,"idempotency_key":"`+strings.Repeat("é", longKey)+`"}`), header: bearer(s2.token)}); parse(t, got.body).Result.IsError {
		t.Errorf("a key of 128 characters: %s", got.body)
	}
}

func TestEveryCallIsInTheAuditWithTheHashOfWhatWasSent(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	w.do(request{body: executeBody("1", "katashiro.read", "{}"), header: bearer(s.token)})
	w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.read"}}}`, header: bearer(s.token)})
	w.do(request{body: executeBody("2", "no.such", "{}"), header: nil})
	var seen []string
	for _, e := range w.audit.all() {
		seen = append(seen, fmt.Sprintf("%s %s %s %s %s", e.Event, e.Tool, e.Session, hex.EncodeToString(e.ArgsSHA[:])[:16], e.Outcome))
	}
	want := []string{
		"call katashiro.read #alice 44136fa355b3678a ", "exit katashiro.read #alice 44136fa355b3678a ok",
		"call katashiro.read #alice 44136fa355b3678a ", "exit katashiro.read #alice 44136fa355b3678a ok",
		"refused no.such - 44136fa355b3678a unknown",
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", seen, want)
	}
}

func TestTwoSessionsWithTheSameServerNameReachOnlyTheirOwn(t *testing.T) {
	w := newWorld(t, nil)
	play := func(name string) func(*kernel.Ctx, capability.Call, *kernel.Question) {
		return func(_ *kernel.Ctx, _ capability.Call, q *kernel.Question) {
			q.Answer(capability.Result{Raw: []byte(`{"content":[{"type":"text","text":"` + name + `"}]}`)}, nil)
		}
	}
	for name, s := range map[string]*session{"alice": w.session("alice", capability.Ready, play("alice")), "bob": w.session("bob", capability.Ready, play("bob"))} {
		got := parse(t, w.do(request{body: executeBody("1", "katashiro.write", "{}"), header: bearer(s.token)}).body)
		if got.Result.Content[0].Text != name {
			t.Errorf("%s reached %s", name, got.Result.Content[0].Text)
		}
	}
}

func TestASearchAndAnUnknownNameWaitForAServerThatIsConnecting(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Connecting, echo)
	answers := make(chan reply, 2)
	for _, body := range []string{searchBody("1", "{}"), executeBody("2", "katashiro.read", "{}")} {
		go func() {
			got, err := w.try(request{body: body, header: bearer(s.token)})
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
	}
	kerneltest.Eventually(t, "both wait", func() bool { return w.ref.Account() != nil && s.desk.Account().Used() >= 2*requestBytes })
	// Meanwhile the facade answers from its own state.
	if got := w.do(request{body: `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, header: bearer(s.token)}); got.status != 200 {
		t.Errorf("tools/list waits for a server: %d", got.status)
	}
	select {
	case got := <-answers:
		t.Errorf("answered before the server was there: %s", got.body)
	default:
	}
	s.ready(t)
	for range 2 {
		got := <-answers
		if m := parse(t, got.body); m.Result == nil || m.Result.IsError || (string(m.ID) == "1") != strings.Contains(got.body, "katashiro.write") {
			t.Errorf("after it was there: %s", got.body)
		}
	}
}

func TestCallsThatShareAnIdGetTheirOwnAnswers(t *testing.T) {
	w := newWorld(t, nil)
	sessions := []*session{w.session("alice", capability.Ready, echo), w.session("bob", capability.Ready, echo)}
	var callers sync.WaitGroup
	for i := range 40 {
		s := sessions[i%2]
		callers.Go(func() {
			for n := range 5 {
				arguments := fmt.Sprintf(`{"caller":%d,"n":%d}`, i, n)
				got, err := w.try(request{body: executeBody("1", "katashiro.read", arguments), header: bearer(s.token)})
				if err != nil || !strings.Contains(got.body, arguments) {
					t.Errorf("%v %s", err, got.body)
				}
			}
		})
	}
	callers.Wait()
	sessions[0].ready(t)
	sessions[1].ready(t)
	kerneltest.Eventually(t, "the sessions' accounts are as before", func() bool {
		return sessions[0].desk.Account().Used()+sessions[1].desk.Account().Used() == sessions[0].idle+sessions[1].idle
	})
}

// Nobody can cancel another's call: a notification counts only with the token that the call came with.
func TestACallIsCancelledByItsOwnTokenAndIdOnly(t *testing.T) {
	w := newWorld(t, nil)
	alice, bob := w.session("alice", capability.Ready, nil), w.session("bob", capability.Ready, nil)
	done := make(chan reply, 1)
	go func() {
		got, err := w.try(request{body: executeBody(`"the call"`, "katashiro.write", "{}"), header: bearer(alice.token)})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	call, question := kerneltest.AwaitQuestion[capability.Call](t, alice.server.probe)
	defer call.Bytes.Release()
	cancel := func(id string, header map[string]string) {
		t.Helper()
		body := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"x"}}`
		if got := w.do(request{body: body, header: header}); got.status != http.StatusAccepted {
			t.Errorf("cancel: %d", got.status)
		}
	}
	cancel(`"the call"`, bearer(bob.token))
	cancel(`"the call"`, nil)
	cancel(`"the call"`, bearer("dead"))
	cancel(`"the call"`, with(nil, "Mcp-Session-Id", alice.token))
	cancel(`"another"`, bearer(alice.token))
	cancel(`{"x":1}`, bearer(alice.token))
	cancel(`null`, bearer(alice.token))
	// A turn of alice's desk after all of them: what they caused has happened.
	w.do(request{body: executeBody("1", "no.such", "{}"), header: bearer(alice.token)})
	select {
	case got := <-done:
		t.Fatalf("somebody else cancelled the call: %s", got.body)
	default:
	}
	if w.node().Refused["anonymous_cancel"] != 3 || w.node().Refused["malformed_cancel"] != 2 {
		t.Errorf("refused: %v", w.node().Refused)
	}
	cancel(`"the c\u0061ll"`, bearer(alice.token)) // the same id, spelled otherwise
	cancelled := kerneltest.Await[kernel.Cancelled](t, alice.server.probe)
	if cancelled.Question.ID() != question.ID() {
		t.Error("another question was cancelled")
	}
	if code := refusalOf(t, <-done); code != "outcome_unknown" && code != "cancelled" {
		t.Errorf("the caller is told %s", code)
	}
	cancel(`"the call"`, bearer(alice.token)) // long answered: nothing happens
}

// A client that goes away is told to the desk, which decides: a tool that only reads is cancelled at once, one that
// writes runs on.
func TestTheClosingOfARequestIsToldToTheDesk(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, nil)
	for name, c := range map[string]struct {
		tool      string
		stateless bool
		ends      bool
	}{
		"reading":            {"katashiro.read", false, true},
		"writing":            {"katashiro.write", false, false},
		"writing, stateless": {"katashiro.write", true, true},
	} {
		ctx, leave := context.WithCancel(context.Background())
		left := make(chan struct{})
		go func() {
			defer close(left)
			r := request{ctx: ctx, body: executeBody(`"`+name+`"`, c.tool, `{"n":`+fmt.Sprint(len(name))+`}`), header: bearer(s.token)}
			if c.stateless {
				r.body = strings.Replace(r.body, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`, 1)
				r.header = with(r.header, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", executeTool)
			}
			if _, err := w.try(r); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		}()
		call, question := kerneltest.AwaitQuestion[capability.Call](t, s.server.probe)
		leave()
		<-left
		if c.ends {
			if got := kerneltest.Await[kernel.Cancelled](t, s.server.probe); got.Question.ID() != question.ID() {
				t.Errorf("%s: another call was cancelled", name)
			}
		} else {
			kerneltest.Eventually(t, "the request has ended", func() bool { return w.node().Refused["client_gone"] > 0 })
			if n := s.server.probe.Pending(); n != 0 {
				t.Errorf("%s: the orphan was not left alone: %d messages", name, n)
			}
			question.Answer(capability.Result{Raw: []byte(`{"content":[]}`)}, nil)
		}
		call.Bytes.Release()
	}
}

// A client that reads slowly keeps paying for its result, and what it pays is given back when it has read it.
func TestASlowReaderKeepsTheLeaseOfItsResult(t *testing.T) {
	w := newWorld(t, nil)
	result := []byte(`{"content":[{"type":"image","data":"` + strings.Repeat("QUJD", 4<<20) + `","mimeType":"image/png"}]}`)
	var s *session
	s = w.session("alice", capability.Ready, func(_ *kernel.Ctx, _ capability.Call, q *kernel.Question) {
		lease, err := s.desk.Account().Acquire(int64(len(result)))
		if err != nil {
			t.Error(err)
		}
		q.Answer(capability.Result{Raw: result}, lease)
	})
	conn, reader := w.rawConn()
	if tcp, ok := conn.(interface{ SetReadBuffer(int) error }); ok {
		_ = tcp.SetReadBuffer(16 << 10)
	}
	if _, err := conn.Write(w.post(executeBody("1", "katashiro.read", "{}"), s.token)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Peek(1); err != nil { // the answer has begun
		t.Fatal(err)
	}
	if used := s.desk.Account().Used(); used < int64(len(result)) {
		t.Errorf("the session pays %d bytes for a result of %d that nobody has read", used, len(result))
	}
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(append(append([]byte(`{"jsonrpc":"2.0","id":1,"result":`), result...), '}')); sha256.Sum256(body) != want {
		t.Errorf("the body of %d bytes is not the result of %d", len(body), len(result))
	}
	s.ready(t)
	kerneltest.Eventually(t, "the result is paid back", func() bool { return s.desk.Account().Used() == s.idle })
}

// A client that reads nothing at all is cut off after the write timeout, and its result is paid back.
func TestAReaderThatStopsIsCutOff(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
	result := []byte(`{"content":[],"x":"` + strings.Repeat("y", 16<<20) + `"}`)
	var s *session
	s = w.session("alice", capability.Ready, func(_ *kernel.Ctx, _ capability.Call, q *kernel.Question) {
		lease, err := s.desk.Account().Acquire(int64(len(result)))
		if err != nil {
			t.Error(err)
		}
		q.Answer(capability.Result{Raw: result}, lease)
	})
	conn, reader := w.rawConn()
	if _, err := conn.Write(w.post(executeBody("1", "katashiro.read", "{}"), s.token)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Peek(1); err != nil {
		t.Fatal(err)
	}
	s.ready(t)
	kerneltest.Eventually(t, "the result is paid back", func() bool { return s.desk.Account().Used() == s.idle })
}

func TestAFullSessionIsToldOverloadedAndStillShakesHands(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	account := s.desk.Account()
	hog, err := account.Acquire(account.Limit() - account.Used())
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{ping, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`} {
		if got := w.do(request{body: body, header: bearer(s.token)}); got.status != 200 || parse(t, got.body).Error != nil {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, body := range []string{executeBody("1", "katashiro.read", "{}"), searchBody("1", "{}")} {
		if code := refusalOf(t, w.do(request{body: body, header: bearer(s.token)})); code != "overloaded" {
			t.Errorf("%s: %s", body, code)
		}
	}
	big := w.do(request{body: executeBody("1", "katashiro.read", `{"x":"`+strings.Repeat("y", smallBody)+`"}`), header: bearer(s.token)})
	if big.status != http.StatusServiceUnavailable || big.header.Get("Retry-After") == "" {
		t.Errorf("a large body that nobody can pay for: %d", big.status)
	}
	hog.Release()
	if got := w.do(request{body: executeBody("1", "katashiro.read", "{}"), header: bearer(s.token)}); parse(t, got.body).Result.IsError {
		t.Errorf("after the load: %s", got.body)
	}
	atRest(t, w)
}

func TestAStopAnswersWhatIsOpen(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, nil)
	done := make(chan reply, 1)
	go func() {
		got, err := w.try(request{body: executeBody("1", "katashiro.write", "{}"), header: bearer(s.token)})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	call, question := kerneltest.AwaitQuestion[capability.Call](t, s.server.probe)
	kerneltest.Do(t, w.root, func(c *kernel.Ctx) { c.Stop(w.ref, kernel.ErrShutdown) })
	if code := refusalOf(t, <-done); code != "outcome_unknown" {
		t.Errorf("an open call is told %s", code)
	}
	<-w.ref.Done()
	question.Fail(errors.New("gone"))
	call.Bytes.Release()
}

func TestACrashedGenerationIsFollowedByOneThatServesTheSameSocket(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	w.do(request{body: ping})
	w.ref.Stop(errors.New("a crash for the test"))
	<-w.ref.Done()
	w.client.CloseIdleConnections() // of the generation that has ended
	got := w.do(request{body: executeBody("1", "katashiro.read", "{}"), header: bearer(s.token)})
	if got.status != 200 || parse(t, got.body).Result.IsError {
		t.Errorf("%d %s", got.status, got.body)
	}
	if w.ref.Current() == w.ref {
		t.Error("there is no later generation")
	}
}

func TestAPanicEndsItsOwnRequestOnly(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Callers = panicking{} })
	if got := w.do(request{body: ping, header: bearer("x")}); got.status != 500 || got.body != "" {
		t.Errorf("%d %q", got.status, got.body)
	}
	if got := w.do(request{body: ping}); got.status != 200 {
		t.Errorf("the next request: %d", got.status)
	}
	if w.node().Refused["panic"] != 1 || w.node().Restarts != 0 {
		t.Errorf("%+v", w.node())
	}
}

type panicking struct{}

func (panicking) Resolve([32]byte) (capability.Caller, bool) { panic("for the test") }

func TestProgressMakesTheAnswerAStreamWithTheClientsOwnToken(t *testing.T) {
	w := newWorld(t, nil)
	const pretty = "{\n  \"content\": [],\r\n \"n\": 9007199254740993 }"
	s := w.session("alice", capability.Ready, func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		if call.Progress != nil {
			call.Progress([]byte(`{"progressToken":"ours","progress":1,"total":2,"message":"half\u003c"}`))
			call.Progress([]byte(`{"progressToken":"ours","progress":2,"x":"` + strings.Repeat("y", longestProgress) + `"}`)) // too long: dropped
		}
		q.Answer(capability.Result{Raw: []byte(pretty)}, nil)
	})
	body := func(token string) string {
		return `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":` + token + `},"name":"execute_capability","arguments":{"name":"katashiro.read"}}}`
	}
	for _, token := range []string{`"client's own"`, `9007199254740993`} {
		got := w.do(request{body: body(token), header: with(bearer(s.token), "Accept", "application/json, text/event-stream")})
		if got.header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		events := strings.Split(strings.TrimSuffix(got.body, "\n\n"), "\n\n")
		if len(events) != 2 {
			t.Fatalf("%d events: %q", len(events), got.body)
		}
		if want := "event: message\ndata: " + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"total":2,"message":"half\u003c"}}`; events[0] != want {
			t.Errorf("got  %q\nwant %q", events[0], want)
		}
		var joined strings.Builder
		for line := range strings.SplitSeq(strings.TrimPrefix(events[1], "event: message\n"), "\n") {
			joined.WriteString(strings.TrimPrefix(line, "data: ") + "\n")
		}
		frame, bad := jsonrpc.Scan([]byte(joined.String()))
		if bad != nil || string(frame.ID.Raw()) != "5" || !strings.Contains(string(frame.Result), `"n": 9007199254740993`) {
			t.Errorf("%v %q", bad, joined.String())
		}
	}
	for name, r := range map[string]request{
		"a client that takes no stream": {body: body("1"), header: with(bearer(s.token), "Accept", "application/json")},
		"no token":                      {body: executeBody("5", "katashiro.read", "{}"), header: with(bearer(s.token), "Accept", "text/event-stream")},
		"a token that is an object":     {body: body(`{"a":1}`), header: with(bearer(s.token), "Accept", "text/event-stream")},
	} {
		got := w.do(r)
		if got.header.Get("Content-Type") != "application/json" || got.body != `{"jsonrpc":"2.0","id":5,"result":`+pretty+`}` {
			t.Errorf("%s: %s %q", name, got.header.Get("Content-Type"), got.body)
		}
	}
	s.ready(t)
	kerneltest.Eventually(t, "the session's account is as before", func() bool { return s.desk.Account().Used() == s.idle })
}

// A client that goes away while its result is being written has not got it: the same call again gets it, and nothing is done twice.
func TestAResultWhoseWritingFailedIsKeptForTheSameCall(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.WriteTimeout = time.Second })
	result := []byte(`{"content":[],"x":"` + strings.Repeat("y", 16<<20) + `"}`)
	var s *session
	var calls atomic.Int64
	s = w.session("alice", capability.Ready, func(_ *kernel.Ctx, _ capability.Call, q *kernel.Question) {
		calls.Add(1)
		lease, err := s.desk.Account().Acquire(int64(len(result)))
		if err != nil {
			t.Error(err)
		}
		q.Answer(capability.Result{Raw: result}, lease)
	})
	conn, reader := w.rawConn()
	if _, err := conn.Write(w.post(executeBody("1", "katashiro.write", `{"n":1}`), s.token)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Peek(1); err != nil { // the answer has begun
		t.Fatal(err)
	}
	_ = conn.Close()
	kerneltest.Eventually(t, "the failed write is counted", func() bool { return w.node().Refused["client_gone"] == 1 })
	again := w.do(request{body: executeBody("2", "katashiro.write", `{"n":1}`), header: bearer(s.token)})
	if want := `{"jsonrpc":"2.0","id":2,"result":` + string(result) + `}`; again.body != want {
		t.Errorf("the same call again got %d bytes: %.200s", len(again.body), again.body)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the server was called %d times", n)
	}
	s.ready(t)
	kerneltest.Eventually(t, "the result is paid back", func() bool { return s.desk.Account().Used() == s.idle })
}
