package demo

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"
)

const deadline = 30 * time.Second

// TestMain lets a test start this binary as the agent, for what ends or wedges a process.
func TestMain(m *testing.M) {
	if os.Getenv("ACPOD_DEMO_TEST_MCP") != "" {
		if err := serveStdio(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv("ACPOD_DEMO_TEST_STATE"); dir != "" {
		if err := Run(context.Background(), Stdio{os.Stdin, os.Stdout, os.Stderr}, dir, "test", ""); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m,
		// The SDK has no Close: its connection ends with its input, and a goroutine of its own waits up to 5 s after that.
		goleak.IgnoreAnyFunction("github.com/coder/acp-go-sdk.(*Connection).shutdownReceive.func1"),
		goleak.IgnoreAnyFunction("github.com/coder/acp-go-sdk.(*Connection).sendCancelRequests"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// peer is the other end of the agent's stdio: raw lines, so that nothing of an SDK stands between test and wire.
type peer struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan map[string]any
	id    int
	raw   sync.WaitGroup
	junk  int
}

func newPeer(t *testing.T, in io.WriteCloser, out io.Reader) *peer {
	c := &peer{t: t, in: in, lines: make(chan map[string]any, 10000)}
	c.raw.Go(func() {
		defer close(c.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 16<<20)
		for scanner.Scan() {
			var frame map[string]any
			if json.Unmarshal(scanner.Bytes(), &frame) != nil {
				frame = map[string]any{"junk": scanner.Text()}
			}
			c.lines <- frame
		}
	})
	return c
}

// inProcess runs the agent in this process.
func inProcess(t *testing.T, state string, behaviour ...string) *peer {
	t.Helper()
	inReader, inWriter := io.Pipe()
	outReader, outWriter := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := Run(context.Background(), Stdio{inReader, outWriter, io.Discard}, state, "test", strings.Join(behaviour, ","))
		outWriter.Close()
		done <- err
	}()
	c := newPeer(t, inWriter, outReader)
	t.Cleanup(func() {
		inWriter.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the agent ended with %v", err)
			}
		case <-time.After(deadline):
			t.Error("the agent did not end with its input")
		}
		for range c.lines {
		}
		c.raw.Wait()
	})
	return c
}

func (c *peer) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *peer) send(method, params string) int {
	c.t.Helper()
	c.id++
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params))
	return c.id
}

func (c *peer) next() (map[string]any, bool) {
	c.t.Helper()
	select {
	case frame, open := <-c.lines:
		return frame, open
	case <-time.After(deadline):
		c.t.Fatal("nothing came in time")
		return nil, false
	}
}

// until collects the text streamed until the answer of request id comes; requests of the agent are given to answer.
func (c *peer) until(id int, answer func(method string) string) (text string, updates []map[string]any, response map[string]any) {
	c.t.Helper()
	for {
		frame, open := c.next()
		if !open {
			return text, updates, nil
		}
		switch {
		case frame["junk"] != nil:
			c.junk++
		case frame["method"] == "session/update":
			update := frame["params"].(map[string]any)["update"].(map[string]any)
			updates = append(updates, update)
			if content, ok := update["content"].(map[string]any); ok && update["sessionUpdate"] == "agent_message_chunk" {
				text += content["text"].(string)
			}
		case frame["method"] != nil && frame["id"] == nil: // $/cancel_request of a question that a cancel took back
		case frame["method"] != nil:
			raw, err := json.Marshal(frame["id"])
			if err != nil {
				c.t.Fatal(err)
			}
			c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, raw, answer(frame["method"].(string))))
		case frame["id"] == float64(id):
			return text, updates, frame
		}
	}
}

func (c *peer) open(servers string) string {
	c.t.Helper()
	c.until(c.send("initialize", `{"protocolVersion":1}`), nil)
	_, _, response := c.until(c.send("session/new", `{"cwd":"/","mcpServers":[`+servers+`]}`), nil)
	return response["result"].(map[string]any)["sessionId"].(string)
}

func (c *peer) prompt(session, text string) int {
	c.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%s}]}`, session, quoted))
}

// facade is an MCP server with the two tools, from mcp-go.
func facade(t *testing.T) string {
	s := mcpserver.NewMCPServer("facade", "1", mcpserver.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("search_capabilities"), func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(`{"capabilities":[{"name":"a.` + request.GetString("query", "all") + `"},{"name":"b.two"}]}`), nil
	})
	s.AddTool(mcp.NewTool("execute_capability"), func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		switch request.GetString("name", "") {
		case "picture":
			return mcp.NewToolResultImage("seen", base64.StdEncoding.EncodeToString(make([]byte, 1000)), "image/png"), nil
		case "fails":
			return mcp.NewToolResultError("no such luck"), nil
		case "hangs":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		raw, err := json.Marshal(request.GetArguments()["arguments"])
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(string(raw)), nil
	})
	listener := httptest.NewServer(mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateLess(true)))
	t.Cleanup(listener.Close)
	return fmt.Sprintf(`{"type":"http","name":"openab","url":%q,"headers":[{"name":"Authorization","value":"Bearer sec.ret-1"}]}`, listener.URL)
}

func TestEachLineDoesWhatItSays(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open(facade(t))
	answers := map[string]string{"session/request_permission": `{"outcome":{"outcome":"selected","optionId":"reject"}}`}
	for _, row := range []struct{ prompt, text string }{
		{"hello", "echo: hello\n"},
		{"one\ntwo", "echo: one\necho: two\n"},
		{"/search button", "a.button\nb.two\n"},
		{"/search", "a.all\nb.two\n"},
		{`/call x.y {"n":1}`, "{\"n\":1}\n"},
		{"/call x.y", "null\n"},
		{"/call x.y {", "error: the arguments are not JSON: {\n"},
		{"/call", "error: /call takes a name and, if it has any, its arguments as JSON\n"},
		{"/call picture", "seen\n[image image/png 1000 bytes]\n"},
		{"/call fails", "error: no such luck\n"},
		{"/ask", "choice: reject\n"},
		{"/sleep 1ms", ""},
		{"/sleep soon", "error: /sleep takes a duration like 2s, not \"soon\"\n"},
		{"/emit 5", "eeeee"},
		{"/emit -1", "error: a number from 0 to 134217728 is needed, not \"-1\"\n"},
		{"/stderr 3000", ""},
		{"/garbage", ""},
	} {
		text, _, response := c.until(c.prompt(session, row.prompt), func(method string) string { return answers[method] })
		if text != row.text {
			t.Errorf("%q streamed %q, not %q", row.prompt, text, row.text)
		}
		if reason := response["result"].(map[string]any)["stopReason"]; reason != "end_turn" {
			t.Errorf("%q ended with %v", row.prompt, reason)
		}
	}
	if c.junk != 1 {
		t.Errorf("/garbage wrote %d lines that are not JSON, not one", c.junk)
	}
}

func TestNewShowsTheParametersAndNoToken(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open(facade(t))
	text, _, _ := c.until(c.prompt(session, "/new"), nil)
	if strings.Contains(text, "sec.ret") || !strings.Contains(text, "Bearer ***") || !strings.Contains(text, `"cwd":"/"`) {
		t.Errorf("/new streamed %s", text)
	}
}

func TestAFloodIsCompleteAndInOrder(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open("")
	_, updates, _ := c.until(c.prompt(session, "/flood 300"), nil)
	if len(updates) != 300 {
		t.Fatalf("%d updates, not 300", len(updates))
	}
	for i, update := range updates {
		text := update["content"].(map[string]any)["text"].(string)
		if len(text) != 1024 || !strings.HasPrefix(text, fmt.Sprintf("%08d ", i)) {
			t.Fatalf("update %d has %d bytes and starts with %.10s", i, len(text), text)
		}
	}
}

func TestEachCallIsReportedBeforeAndAfter(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open(facade(t))
	_, updates, _ := c.until(c.prompt(session, "/call fails"), nil)
	var seen []string
	for _, update := range updates {
		if id, ok := update["toolCallId"]; ok {
			seen = append(seen, fmt.Sprint(update["sessionUpdate"], " ", id, " ", update["status"]))
		}
	}
	if got := strings.Join(seen, ", "); got != "tool_call call-1 in_progress, tool_call_update call-1 failed" {
		t.Errorf("reported %s", got)
	}
}

// A cancel in the line after the prompt ends that prompt, however the goroutines behind it are scheduled.
func TestACancelRightAfterThePromptEndsIt(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open(facade(t))
	for _, line := range []string{"/sleep 1h", "/call hangs", "/ask"} {
		id := c.prompt(session, line)
		c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
		_, _, response := c.until(id, func(string) string { return `{"outcome":{"outcome":"cancelled"}}` })
		if reason := response["result"].(map[string]any)["stopReason"]; reason != "cancelled" {
			t.Errorf("%s ended with %v", line, reason)
		}
	}
	if text, _, _ := c.until(c.prompt(session, "still there"), nil); text != "echo: still there\n" {
		t.Errorf("the next prompt streamed %q", text)
	}
}

func TestATranscriptIsLoadedAndResumed(t *testing.T) {
	state := t.TempDir()
	first := inProcess(t, state)
	session := first.open("")
	first.until(first.prompt(session, "remember me"), nil)

	second := inProcess(t, state)
	second.until(second.send("initialize", `{"protocolVersion":1}`), nil)
	params := fmt.Sprintf(`{"sessionId":%q,"cwd":"/","mcpServers":[]}`, session)
	_, updates, response := second.until(second.send("session/load", params), nil)
	if response["error"] != nil || len(updates) != 2 || updates[0]["sessionUpdate"] != "user_message_chunk" || updates[1]["sessionUpdate"] != "agent_message_chunk" {
		t.Errorf("load gave %v after %v", response, updates)
	}
	if _, updates, response = second.until(second.send("session/resume", params), nil); response["error"] != nil || len(updates) != 0 {
		t.Errorf("resume gave %v after %v", response, updates)
	}
	for _, id := range []string{"demo-unknown", "../../etc/passwd"} {
		_, _, response = second.until(second.send("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/","mcpServers":[]}`, id)), nil)
		if response["error"] == nil {
			t.Errorf("load of %s gave %v", id, response)
		}
	}
}

func TestTheListIsThereWithoutAServer(t *testing.T) {
	c := inProcess(t, t.TempDir())
	session := c.open(`{"type":"http","name":"gone","url":"http://127.0.0.1:1/mcp","headers":[]}`)
	text, _, _ := c.until(c.prompt(session, "/call x"), nil)
	if !strings.HasPrefix(text, "error: no MCP server offers execute_capability (gone: ") {
		t.Errorf("streamed %q", text)
	}
}

// process starts the agent as a process of its own, in its own group.
func process(t *testing.T) (*peer, *exec.Cmd) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "ACPOD_DEMO_TEST_STATE="+t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	c := newPeer(t, in, out)
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		c.raw.Wait()
		_ = command.Wait()
	})
	return c, command
}

func TestACrashExitsWithThree(t *testing.T) {
	c, command := process(t)
	session := c.open("")
	c.until(c.prompt(session, "/crash"), nil)
	c.raw.Wait()
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("ended with %v", err)
	}
}

func TestAHangIgnoresTermAndItsInput(t *testing.T) {
	c, command := process(t)
	session := c.open("")
	c.prompt(session, "before\n/hang")
	if frame, _ := c.next(); frame["method"] != "session/update" {
		t.Fatalf("%v came first", frame)
	}
	// /hang has begun once the process shows that it ignores the signal: what it does about its input comes before.
	for end := time.Now().Add(deadline); !ignoresTerm(t, command.Process.Pid); {
		if time.Now().After(end) {
			t.Fatal("SIGTERM was never ignored")
		}
	}
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the agent is gone: %v", err)
	}
}

// ignoresTerm reads the mask of ignored signals of a process.
func ignoresTerm(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "SigIgn:\t")
	var mask uint64
	if _, err := fmt.Sscanf(rest, "%x", &mask); err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(uint(syscall.SIGTERM)-1)) != 0
}

func TestAForkLeavesAGrandchildInTheGroup(t *testing.T) {
	c, command := process(t)
	session := c.open("")
	text, _, _ := c.until(c.prompt(session, "/fork"), nil)
	var pid int
	if _, err := fmt.Sscanf(text, "forked: %d", &pid); err != nil {
		t.Fatalf("streamed %q", text)
	}
	group, err := syscall.Getpgid(pid)
	if err != nil || group != command.Process.Pid {
		t.Errorf("the grandchild is in group %d (%v), not %d", group, err, command.Process.Pid)
	}
}

func FuzzTapPassesEveryByteOn(f *testing.F) {
	f.Add([]byte("{\"method\":\"session/prompt\",\"params\":{}}\nx\n\ny"))
	f.Fuzz(func(t *testing.T, input []byte) {
		tap := newTap(strings.NewReader(string(input)), func(arrival) bool { return false })
		close(tap.open)
		passed, err := io.ReadAll(tap)
		if err != nil || string(passed) != string(input) {
			t.Fatalf("passed %q (%v) of %q", passed, err, input)
		}
	})
}
