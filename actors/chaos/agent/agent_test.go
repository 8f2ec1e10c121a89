package agent

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pretence is a Host that ends only the agent's goroutine.
type pretence struct {
	out  io.Closer
	mu   sync.Mutex
	done []string
}

func (p *pretence) say(what string) { p.mu.Lock(); p.done = append(p.done, what); p.mu.Unlock() }

func (p *pretence) said() string { p.mu.Lock(); defer p.mu.Unlock(); return strings.Join(p.done, " ") }

func (p *pretence) Exit(code int) {
	p.say(fmt.Sprintf("exit-%d", code))
	_ = p.out.Close()
	runtime.Goexit()
}

func (p *pretence) Kill(s syscall.Signal) {
	p.say("kill-" + s.String())
	_ = p.out.Close()
	runtime.Goexit()
}
func (p *pretence) Deafen() { p.say("deaf") }
func (p *pretence) Fork(hold bool) error {
	p.say(fmt.Sprintf("fork-%t", hold))
	return nil
}
func (p *pretence) CloseStdout() {
	p.say("closed")
	_ = p.out.Close()
}

// client is the other side of an agent in this process.
type client struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	errs  strings.Builder
	host  *pretence
	ended chan struct{}
	next  int
}

type line struct {
	ID     any
	Method string
	Params struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind    string `json:"sessionUpdate"`
			Content struct{ Text string }
		}
	}
	Result struct {
		SessionID  string `json:"sessionId"`
		StopReason string `json:"stopReason"`
	}
	Error *struct {
		Code    int
		Message string
	}
	raw string
}

func start(t *testing.T, plan string, environ map[string]string) *client {
	t.Helper()
	parsed, err := ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	c := &client{t: t, in: inWrite, lines: bufio.NewScanner(outRead), host: &pretence{out: outWrite}, ended: make(chan struct{})}
	c.lines.Buffer(nil, 64<<20)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(c.ended)
		defer func() { _ = outWrite.Close() }()
		_ = Run(ctx, Options{In: inRead, Out: outWrite, Err: &c.errs, Host: c.host, Plan: parsed, Records: t.TempDir(),
			Environ: func(name string) string { return environ[name] }})
	}()
	t.Cleanup(func() {
		cancel()
		_ = inWrite.Close()
		_ = outRead.Close()
		<-c.ended
	})
	return c
}

func (c *client) send(method, params string) int {
	c.t.Helper()
	c.next++
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.next, method, params))
	return c.next
}

// write does not wait for an agent that reads no more.
func (c *client) write(text string) {
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.WriteString(c.in, text+"\n") }()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// read gives the next line, and false at the end.
func (c *client) read() (line, bool) {
	c.t.Helper()
	if !c.lines.Scan() {
		return line{}, false
	}
	l := line{raw: c.lines.Text()}
	_ = json.Unmarshal([]byte(l.raw), &l, json.MatchCaseInsensitiveNames(true)) // garbage stays raw
	return l, true
}

// until reads up to the answer of a request.
func (c *client) until(id int) (before []line, answer line) {
	c.t.Helper()
	for {
		l, ok := c.read()
		if !ok {
			return before, line{}
		}
		if n, isNumber := l.ID.(float64); isNumber && int(n) == id && l.Method == "" {
			return before, l
		}
		before = append(before, l)
	}
}

func (c *client) open(servers string) string {
	c.t.Helper()
	c.until(c.send("initialize", `{"protocolVersion":1}`))
	_, opened := c.until(c.send("session/new", `{"cwd":"/","mcpServers":[`+servers+`]}`))
	if opened.Result.SessionID == "" {
		c.t.Fatalf("no session: %s", opened.raw)
	}
	return opened.Result.SessionID
}

func (c *client) prompt(session, text string) int {
	return c.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text))
}

func TestASoundTurnSaysItsChunksThenItsEnd(t *testing.T) {
	c := start(t, "", nil)
	session := c.open("")
	said, answer := c.until(c.prompt(session, "turn k1\nchunks 20 200\nchunks 3\nend max_tokens"))
	b := Book{Key: "k1", Size: 200}
	for i, l := range said {
		if l.Params.SessionID != session {
			t.Errorf("an update of session %q", l.Params.SessionID)
		}
		if i == 20 {
			b.Size = 0
		}
		b.Read(l.Params.Update.Content.Text)
	}
	b.End(23)
	if len(b.Wrong()) > 0 || answer.Result.StopReason != "max_tokens" {
		t.Errorf("%q; %s", b.Wrong(), answer.raw)
	}
	_, answer = c.until(c.prompt(session, "fail -32077"))
	if answer.Error == nil || answer.Error.Code != -32077 {
		t.Errorf("fail: %s", answer.raw)
	}
	_, answer = c.until(c.prompt(session, "dance"))
	if answer.Error == nil || answer.Error.Code != -32602 {
		t.Errorf("no script: %s", answer.raw)
	}
	_, answer = c.until(c.prompt("nobody", "ask"))
	if answer.Error == nil {
		t.Errorf("an unknown session: %s", answer.raw)
	}
}

func TestACancelIsHonouredAtOnce(t *testing.T) {
	c := start(t, "", nil)
	session := c.open("")
	id := c.prompt(session, "turn k\nsleep 1h")
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
	if _, answer := c.until(id); answer.Result.StopReason != "cancelled" {
		t.Errorf("%s", answer.raw)
	}
}

func TestAQuestionTellsTheChoice(t *testing.T) {
	c := start(t, "", nil)
	session := c.open("")
	id := c.prompt(session, "turn k\nask")
	asked, _ := c.read()
	if asked.Method != "session/request_permission" {
		t.Fatalf("%s", asked.raw)
	}
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`, asked.ID))
	said, _ := c.until(id)
	if len(said) != 1 || said[0].Params.Update.Content.Text != "[k =choice allow]" {
		t.Errorf("%+v", said)
	}
}

func TestACallGoesThroughTheEntryWithItsToken(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer the-token":
			w.WriteHeader(http.StatusForbidden)
		case strings.Contains(string(body), `"name":"a.stream"`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"streamed\"}]}}\n\n")
		case strings.Contains(string(body), `"arguments":{"name":"a.b","arguments":{"x": 1}}`):
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`)
		default:
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"no"}],"_meta":{"acpod.dev/refusal":"unknown"}}}`)
		}
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	c := start(t, "", map[string]string{"OPENAB_SESSION_TOKEN": "the-token"})
	session := c.open(`{"type":"http","name":"openab","url":"` + server.URL + `","headers":[{"name":"Authorization","value":"Bearer ${OPENAB_SESSION_TOKEN}"}]}`)
	said, answer := c.until(c.prompt(session, "turn k\ncall a.b {\"x\": 1}\ncall c\ncall a.stream\nsearch"))
	var notes, kinds []string
	for _, l := range said {
		kinds = append(kinds, l.Params.Update.Kind)
		if l.Params.Update.Content.Text != "" {
			notes = append(notes, l.Params.Update.Content.Text)
		}
	}
	want := "[k =execute_capability a.b ok done][k =execute_capability c error unknown no][k =execute_capability a.stream ok streamed][k =search_capabilities error unknown no]"
	if strings.Join(notes, "") != want || answer.Result.StopReason != "end_turn" {
		t.Errorf("%q, %s", notes, answer.raw)
	}
	if !strings.HasPrefix(strings.Join(kinds, " "), "tool_call tool_call_update agent_message_chunk tool_call ") {
		t.Errorf("%q", kinds)
	}
}

// Each strike does what it says, at its stage, and is written down.
func TestEachStrikeInATurn(t *testing.T) {
	for _, row := range []struct {
		strike string
		script string
		host   string // what the process did
		answer string // part of the answer; "-" = there is none
		said   string // part of what was said before
	}{
		{"agentcrash:prompt", "", "exit-3", "-", ""},
		{"agentcrash:prompt:zero", "", "exit-0", "-", ""},
		{"agentcrash:chunk:kill", "chunks 10", "kill-killed", "-", "[k 5/10 ]"},
		{"agentcrash:line:abort", "chunks 10", "kill-aborted", "-", "[k 5/10 ]"},
		{"agentcrash:answered", "chunks 2", "exit-3", "end_turn", "[k 2/2 ]"},
		{"agenthang:chunk:deaf", "chunks 2", "", "-", ""},
		{"agentgarbage:chunk:all", "chunks 4", "", "end_turn", "this line is not JSON {"},
		{"stderr:prompt:control", "chunks 1", "", "end_turn", "[k 1/1 ]"},
		{"flood:prompt:small", "", "", "end_turn", "[k ~ ~~~~"},
		{"oversize:prompt", "chunks 1", "", "end_turn", "[k 1/1 ]"},
		{"oversize:answer:exact", "", "", "end_turn", ""},
		{"never:answer", "", "", "-", ""},
		{"hostiletext:answer", "", "", "-32050", ""},
	} {
		t.Run(row.strike, func(t *testing.T) {
			c := start(t, "line 20000\ndelay 10ms", nil)
			session := c.open("")
			strike, err := ParseStrike(row.strike)
			if err != nil {
				t.Fatal(err)
			}
			if strike.Variant == "" && strike.Fault == Crash {
				row.strike += ":exit"
			}
			id := c.prompt(session, "turn k\nfault "+row.strike+"\n"+row.script)
			var said []line
			var answer line
			if row.host == "" && row.answer == "-" { // nothing comes: the next request tells that it is not only late
				if strike.Fault == Never {
					said, _ = c.until(c.send("chaos/none", `{}`))
				}
			} else {
				said, answer = c.until(id)
			}
			for more := strike.Stage == AtAnswered; more; {
				_, more = c.read()
			}
			var text strings.Builder
			for _, l := range said {
				text.WriteString(l.raw + "\n")
			}
			if !strings.Contains(text.String(), row.said) {
				t.Errorf("said %.2000s", text.String())
			}
			if row.answer != "-" && !strings.Contains(answer.raw, row.answer) || row.answer == "-" && answer.raw != "" {
				t.Errorf("answered %q", answer.raw)
			}
			if strike.Fault == Oversize && strike.Variant == "exact" && len(answer.raw) != 20000 {
				t.Errorf("the answer has %d bytes", len(answer.raw))
			}
			if strings.Contains(row.host, "-") {
				if got := c.host.said(); !strings.HasPrefix(got, row.host) {
					t.Errorf("the process did %q", got)
				}
			}
		})
	}
}

func TestAPlanStrikesBeforeThereIsAPrompt(t *testing.T) {
	for plan, want := range map[string]string{
		"agentcrash:start:exit":      "exit-3",
		"agentcrash:initialize:zero": "exit-0",
		"agentcrash:new:kill":        "kill-killed",
	} {
		c := start(t, plan, nil)
		id := c.send("initialize", `{}`)
		if plan == "agentcrash:new:kill" {
			c.until(id)
			id = c.send("session/new", `{"cwd":"/","mcpServers":[]}`)
		}
		if _, answer := c.until(id); answer.raw != "" {
			t.Errorf("%s: answered %s", plan, answer.raw)
		}
		if got := c.host.said(); got != want {
			t.Errorf("%s: the process did %q", plan, got)
		}
	}
	c := start(t, "duplicate:initialize\nagentgarbage:new:early", nil)
	c.until(c.send("initialize", `{}`))
	if again, _ := c.read(); again.ID != 1.0 {
		t.Errorf("not answered twice: %s", again.raw)
	}
	early, answer := c.until(c.send("session/new", `{"cwd":"/","mcpServers":[]}`))
	if len(early) != Early || early[0].Params.SessionID != answer.Result.SessionID || answer.Result.SessionID == "" {
		t.Errorf("%d updates before %s", len(early), answer.raw)
	}
}

// Chance depends on the seed and the ordinal of the process and on nothing else.
func TestAStrikeWithARateStrikesByTheSeed(t *testing.T) {
	plan, err := ParsePlan("seed 5\nagentcrash:new 0.3\nnever:initialize 0\n")
	if err != nil {
		t.Fatal(err)
	}
	hit := 0
	for ordinal := range uint64(1000) {
		o := Options{Plan: plan, Ordinal: ordinal}
		first, second := newArmoury(o), newArmoury(o)
		if len(first.planned) != len(second.planned) {
			t.Fatalf("process %d: %v and %v", ordinal, first.planned, second.planned)
		}
		hit += len(first.planned)
	}
	if hit < 200 || hit > 400 {
		t.Errorf("a rate of 0.3 struck %d times in 1000", hit)
	}
}

func TestARecordTellsWhoLivesAndWhatStruck(t *testing.T) {
	folder := t.TempDir()
	for want := range uint64(3) {
		if got, err := Enter(folder, "agent"); err != nil || got != want {
			t.Fatalf("ordinal %d, %v; want %d", got, err, want)
		}
	}
	// A process with our number that began at another time is another one.
	if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("process-%d-1", os.Getpid())), fmt.Appendf(nil, "%d 1 1 agent\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	note(folder, Strike{Crash, AtNew, "kill"})
	note(folder, Strike{Crash, AtNew, "kill"})
	r := Records{folder}
	all, err := r.Processes()
	if err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	living, err := r.Living()
	if err != nil || len(living) != 1 || living[0].PID != os.Getpid() || living[0].Role != "agent" {
		t.Errorf("%+v, %v", living, err)
	}
	struck, err := r.Struck()
	if err != nil || struck[Strike{Crash, AtNew, "kill"}] != 2 || len(struck) != 1 {
		t.Errorf("%v, %v", struck, err)
	}
}

func TestAgentsGiveTheSameSessionIDsAndEachGivesNoneTwice(t *testing.T) {
	one, other := start(t, "", nil), start(t, "", nil)
	if a, b := one.open(""), other.open(""); a != b {
		t.Errorf("two agents gave the ids %q and %q", a, b)
	}
	one.until(one.send("session/load", `{"sessionId":"chaos-2","cwd":"/","mcpServers":[]}`))
	if id := one.open(""); id == "chaos-1" || id == "chaos-2" {
		t.Errorf("an agent gave the id %q again", id)
	}
}
