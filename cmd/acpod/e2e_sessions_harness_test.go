package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the tests about sessions share: a scripted agent, and looks at what an operator sees of a session.

// scriptedMode makes this test binary an agent of that mode: some start badly, some open no session, some are odd.
const scriptedMode = "ACPOD_E2E_AGENT"

// scriptedRecord names the file to which it appends each line that it reads.
const scriptedRecord = "ACPOD_E2E_RECORD"

func init() {
	if mode := os.Getenv(scriptedMode); mode != "" {
		os.Exit(runScripted(mode))
	}
}

// scripted is a config whose agent is this test binary in that mode; record may be "".
func scripted(t *testing.T, config, mode, record string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return with(config, "agent.delivery", `"acp"`, "agent.command", fmt.Sprintf("[%q]", self), "agent.env", fmt.Sprintf("{%s = %q, %s = %q}", scriptedMode, mode, scriptedRecord, record))
}

// runScripted is one life of the scripted agent; it gives the exit status.
func runScripted(mode string) int {
	if mode == "exits at start" {
		return 4
	}
	say := func(format string, values ...any) { fmt.Printf(format+"\n", values...) }
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if path := os.Getenv(scriptedRecord); path != "" {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 90
			}
			fmt.Fprintln(file, lines.Text())
			_ = file.Close()
		}
		var f frame
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			return 91
		}
		switch f.Method + ": " + mode {
		case "initialize: exits at initialize":
			return 5
		case "initialize: is silent":
			continue
		case "initialize: refuses initialize":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no licence"}}`, f.ID)
			continue
		case "session/new: exits at session/new":
			return 6
		case "session/new: is silent at session/new":
			continue
		case "session/new: wants a login":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"log in first","data":{"theirs":1.50}}}`, f.ID)
			continue
		case "session/new: names no session":
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID)
			continue
		case "session/new: refuses the entry", "session/new: hangs with the entry":
			if strings.Contains(lines.Text(), `"openab"`) {
				if mode == "refuses the entry" {
					say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no http\u001b[31m servers"}}`, f.ID)
				}
				continue
			}
		case "session/prompt: exits in a prompt":
			return 7
		}
		switch f.Method {
		case "initialize":
			if mode == "starts slowly" {
				time.Sleep(time.Second) // what it is about: an agent that takes its time
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":%q,"version":"1"},"agentCapabilities":{"mcpCapabilities":{"http":%v},"promptCapabilities":{"image":%v}}}}`,
				f.ID, map[bool]string{true: "@agentclientprotocol/claude-agent-acp", false: "scripted"}[mode == "calls itself claude"], mode != "takes no http", mode == "takes images")
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"theirs"}}`, f.ID)
		case "session/prompt":
			say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"theirs","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"here"}}}}`)
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, f.ID)
			if mode == "leaves after a turn" {
				return 0
			}
		}
	}
	return 0
}

// treeName is how a session is called in the tree.
func treeName(session string) string { return "sess-" + tagOf(session) }

// tagOf is what stands for a session in logs.
func tagOf(session string) string {
	sum := sha256.Sum256([]byte(strings.TrimPrefix(session, "sess_")))
	return hex.EncodeToString(sum[:4])
}

// agentOf waits for the agent of a session and gives its pid.
func (p *pod) agentOf(session string) (pid int) {
	p.t.Helper()
	p.await("the agent of the session", func() bool {
		node, ok := p.tree().find(treeName(session) + "/agent")
		n, _ := node.Attrs["pid"].(float64)
		pid = int(n)
		return ok && pid > 0
	})
	return pid
}

// environ is the environment of a process.
func environ(t testing.TB, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	entries := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	slices.Sort(entries)
	return entries
}

// callerOf is the facade as the agent of a session may use it: with the token in its environment.
func (p *pod) callerOf(session string) agentClient {
	p.t.Helper()
	for _, entry := range environ(p.t, p.agentOf(session)) {
		if token, ok := strings.CutPrefix(entry, "OPENAB_SESSION_TOKEN="); ok {
			return agentClient{p.t, "http://" + p.Facade + "/mcp", token}
		}
	}
	p.t.Fatal("the agent has no token")
	return agentClient{}
}

// turn waits until the tree shows a session in that phase of its turn, with or without a client.
func (p *pod) turn(session, phase string, attached bool) {
	p.t.Helper()
	p.await("the turn "+phase, func() bool {
		node, ok := p.tree().find("/" + treeName(session))
		_, has := node.Attrs["client"]
		return ok && node.Attrs["turn"] == phase && has == attached
	})
}

// account is what a resume tells of the session.
type account struct {
	State, Agent  string
	MissedUpdates int `json:"missed_updates"`
	MissedBytes   int `json:"missed_bytes"`
	LastTurn      *struct {
		StopReason string
		Error      *rpcError
	} `json:"last_turn"`
}

// resume takes up a session and wants it granted.
func (e *extension) resume(session string, servers ...*mcpServer) account {
	e.t.Helper()
	result := e.call("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": e.declare(servers...)})
	var body struct {
		Meta struct {
			Session *account `json:"acpod.dev/session"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &body); err != nil || body.Meta.Session == nil {
		e.t.Fatalf("session/resume: %v in %s", err, result)
	}
	return *body.Meta.Session
}

// told counts the frames of a method that are about a session.
func (e *extension) told(method, session string) (n int) {
	for _, f := range e.received(method) {
		if strings.Contains(f.raw, session) {
			n++
		}
	}
	return n
}

// heldCall is a tool call that is never answered.
func heldCall(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }

// scan reads the number at the beginning of a text.
func scan(text string, n *int) error {
	_, err := fmt.Sscanf(text, "%d", n)
	return err
}

// agentLives tells whether a process of that number runs.
func agentLives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
