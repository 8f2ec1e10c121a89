package agent

import (
	"bufio"
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/process"
	"go.uber.org/goleak"
)

// TestMain makes the test binary play the agents of the tests: "role=NAME" as its first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := strings.CutPrefix(os.Args[1], "role="); ok {
			time.AfterFunc(4*time.Minute, func() { os.Exit(99) }) // whatever a failed test leaves
			os.Exit(play(role))
		}
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or each agent sleeps a second at its end under the race detector
	goleak.VerifyTestMain(m)
}

func roleOf(name string) []string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{path, "role=" + name}
}

func play(role string) int {
	f := &fake{out: os.Stdout, hanging: map[string]bool{}}
	switch role {
	case "guardian":
		return process.RunGuardian(os.Stdin)
	case "helper": // what a "fork" leaves behind
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println(`{"jsonrpc":"2.0","method":"_helper","params":` + strconv.Itoa(os.Getpid()) + `}`)
		return forever()
	case "silent":
		fmt.Fprintln(os.Stderr, "waiting for \x1b[31mthe cloud\x1b[0m")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "print-env":
		fmt.Fprintln(os.Stderr, os.Environ())
		return 4
	case "crash-before":
		fmt.Fprintln(os.Stderr, "first\ncannot find <b>the key</b>\x1b[31m")
		return 4
	case "crash-after":
		f.crashAfterInitialize = true
	case "obstinate":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		f.serve()
		return forever() // the end of stdin does not move it either
	case "version-2", "version-string":
		f.version = map[string]string{"version-2": "2", "version-string": `"1"`}[role]
	case "refuses":
		f.refuses = true
	case "noisy":
		fmt.Println("[npm] installing\n\n{broken\n" + strings.Repeat("=", 100))
		f.early = true
	case "chatty-start":
		f.longInfo = true
	}
	f.serve()
	return 0
}

func forever() int {
	time.Sleep(time.Hour)
	return 0
}

// fake is an agent whose requests say what it is to do.
type fake struct {
	out                  io.Writer
	mu                   sync.Mutex
	hanging              map[string]bool // ids of requests that wait for session/cancel
	asked                string          // id of the request that waits for our own request's answer
	version              string
	refuses              bool
	early, longInfo      bool
	crashAfterInitialize bool
}

type call struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  jsontext.Value `json:"error"`
}

func (f *fake) serve() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var c call
		if json.Unmarshal(line, &c, jsontext.AllowInvalidUTF8(true)) != nil {
			fmt.Fprintln(os.Stderr, "not JSON:", len(line))
			os.Exit(90)
		}
		f.do(c)
	}
}

func (f *fake) say(lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = io.WriteString(f.out, strings.Join(lines, "\n")+"\n") // one write
}

func update(text string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"text":` + strconv.Quote(text) + `}}`
}

func result(id jsontext.Value, result string) string {
	return `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`
}

func (f *fake) do(c call) {
	if c.Method == "" {
		if f.asked != "" {
			f.say(update("answer "+string(c.ID)+" "+string(c.Result)+string(c.Error)), result(jsontext.Value(f.asked), `"answered"`))
			f.asked = ""
		}
		return
	}
	n := 0
	_ = json.Unmarshal(c.Params, &n)
	switch c.Method {
	case "initialize":
		f.initialize(c)
	case "session/cancel":
		for id := range f.hanging {
			f.say(update("cancelled"), result(jsontext.Value(id), `{"stopReason":"cancelled"}`))
			delete(f.hanging, id)
		}
	case "hang":
		f.hanging[string(c.ID)] = true
	case "$/cancel_request":
		f.say(update("withdrawn " + string(c.Params)))
	case "late": // the whole turn in one write
		lines := make([]string, 0, n+1)
		for i := range n {
			lines = append(lines, update(strconv.Itoa(i)))
		}
		f.say(append(lines, result(c.ID, `{"stopReason":"end_turn"}`))...)
	case "flood": // n updates of 1 KiB, then the answer
		for range n {
			f.say(update(strings.Repeat("f", 1024)))
		}
		f.say(result(c.ID, "true"))
	case "wide": // n updates of 8 KiB, then the answer
		for range n {
			f.say(update(strings.Repeat("w", 8<<10)))
		}
		f.say(result(c.ID, "true"))
	case "long-update":
		f.say(update(strings.Repeat("u", n)), result(c.ID, "true"))
	case "split": // in the middle of a character, and of a line
		for _, b := range []byte(update("züüü€😀")) {
			_, _ = f.out.Write([]byte{b})
		}
		f.say("", result(c.ID, "true"))
	case "not-utf8":
		f.say(`{"jsonrpc":"2.0","method":"session/update","params":{"text":"a`+"\xff\xfe"+`b"}}`, result(c.ID, "true"))
	case "long-not-utf8": // an answer, a question or an update of 1 MiB; then, but for the answer, the answer
		bad := "\"\xff" + strings.Repeat("r", 1<<20) + "\""
		switch unquoted(c.Params) {
		case "response":
			f.say(result(c.ID, bad))
		case "request":
			f.asked = string(c.ID)
			f.say(`{"jsonrpc":"2.0","id":"q","method":"fs/write_text_file","params":[` + bad + `]}`)
		case "update":
			f.say(`{"jsonrpc":"2.0","method":"session/update","params":{"text":`+bad+`}}`, result(c.ID, "true"))
		}
	case "long-result":
		f.say(result(c.ID, strconv.Quote(strings.Repeat("r", n))))
	case "long-result-id-last":
		f.say(`{"jsonrpc":"2.0","result":[` + strconv.Quote(strings.Repeat("r, \\\"id\\\":7", n/10)) + `],"id":` + string(c.ID) + `}`)
	case "long-question":
		f.asked = string(c.ID)
		f.say(`{"jsonrpc":"2.0","id":"q","method":"fs/write_text_file","params":[` + strconv.Quote(strings.Repeat("w", n)) + `]}`)
	case "endless":
		chunk := bytes.Repeat([]byte("e"), 1<<20)
		for range n {
			_, _ = f.out.Write(chunk)
		}
		f.say("", result(c.ID, "true"))
	case "noise":
		f.say("[INFO] hello", "", "123", `"text"`, `[{"jsonrpc":"2.0","method":"x"}]`, `{"jsonrpc":`, "null", "{}", "\r", `{"jsonrpc":"1.0","method":"x"}`,
			`{"method":"session/update","params":{}}`, result(c.ID, "true"))
	case "stderr":
		_, _ = os.Stderr.Write(bytes.Repeat([]byte("stderr line\n"), n/12))
		f.say(result(c.ID, "true"))
	case "ask":
		f.asked = string(c.ID)
		f.say(`{"jsonrpc":"2.0","id":` + string(c.Params) + `,"method":"session/request_permission","params":{"of":` + string(c.Params) + `}}`)
	case "ask-twice":
		f.asked = string(c.ID)
		q := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{}}`
		f.say(q, q)
	case "twice":
		f.say(result(c.ID, "1"), result(c.ID, "2"), result(jsontext.Value("9999"), "3"), result(jsontext.Value(`"x"`), "4"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`, update("after"))
	case "malformed":
		f.say(strings.ReplaceAll(unquoted(c.Params), "ID", string(c.ID)))
	case "string-id":
		f.say(result(jsontext.Value(strconv.Quote(string(c.ID))), "true"))
	case "both": // what an older library writes
		f.say(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":"fine","error":null}`)
	case "fail":
		f.say(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"error":{"code":-32603, "message":"Internal service failure","data":{"big":9007199254740993}}}`)
	case "fail-long":
		f.say(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"error":{"code":-7,"message":"no","data":` + strconv.Quote(strings.Repeat("d", n)) + `}}`)
	case "note":
		f.say(`{"jsonrpc":"2.0","method":"_auth/status_update","params":{"ok":true}}`, `{"jsonrpc":"2.0","method":"_bare"}`, result(c.ID, "true"))
	case "crash":
		f.say(update("last words"))
		fmt.Fprintln(os.Stderr, "panic: oh no\x07")
		os.Exit(n)
	case "deaf": // neither reads nor obeys
		signal.Ignore(syscall.SIGTERM)
		f.say(result(c.ID, "true"))
		forever()
	case "close-stdout":
		_ = os.Stdout.Close()
	case "fork":
		argv := roleOf("helper")
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdout = os.Stdout
		_ = cmd.Start()
		f.asked = string(c.ID) // answered with the next request
	case "leave":
		os.Exit(0)
	case "env":
		b, _ := json.Marshal(os.Environ())
		f.say(result(c.ID, string(b)))
	default:
		f.say(result(c.ID, string(c.Params)))
	}
}

func (f *fake) initialize(c call) {
	if f.refuses {
		f.say(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"error":{"code":-32000,"message":"log in\nfirst"}}`)
		return
	}
	version := f.version
	if version == "" {
		version = "1"
	}
	if f.early {
		f.say(`{"jsonrpc":"2.0","method":"_auth/status_update","params":{"early":true}}`)
	}
	name := "fake"
	if f.longInfo {
		name = strings.Repeat("n", 2<<20)
	}
	f.say(result(c.ID, `{"protocolVersion":`+version+`,"agentInfo":{"name":"`+name+`","version":"1.2\u001b"},"agentCapabilities":{"loadSession":true,"x":{"unknown":1}},"given":`+string(c.Params)+`}`))
	if f.crashAfterInitialize {
		os.Exit(5)
	}
}
