package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An MCP server written for these tests, with nothing of the pod's code, that does what real servers do badly. Over stdio it is this test
// binary, started once more; over HTTP it lives in the test. Both speak through the same evil and write what they see into a journal.

// evilVariable makes a process of this test binary an evil server: its one argument is the file of its script.
const evilVariable = "ACPOD_TEST_EVIL"

func init() {
	if os.Getenv(evilVariable) != "" {
		os.Exit(evilProcess(os.Args[len(os.Args)-1]))
	}
}

// evilScript is how one server misbehaves. Durations are in nanoseconds, as JSON has them.
type evilScript struct {
	Name    string
	Journal string            // file
	Offer   []string          // names of behaviours that stand in its list; "read_" before one gives it the readOnlyHint; nil = echo
	Raw     []json.RawMessage // further tools, as written
	Later   []json.RawMessage // what Raw is after a call of `change`
	Count   int               // further plain tools, "plain_0" and on
	Paging  string            // "three" pages, "repeated" cursor, "endless" cursors; "" = one page

	Banner     bool          // junk on stdout before the first answer
	StartAfter time.Duration // before it reads anything
	ListAfter  time.Duration // before it answers tools/list
	HangIn     string        // a method that it never answers
	FailIn     string        // a method that it answers with an error
	Exit       int           // ends at once with this code, after Stderr
	Stderr     string        // written at its start
	Lock       string        // a file that only one living process may have
	StormEvery time.Duration // tools/list_changed for ever
	StormLists bool          // tools/list_changed with each answer to tools/list

	IgnoreTerm bool
	IgnoreEOF  bool
	Children   int  // stubborn ones that hold its stdout
	Sleeper    bool // it is such a child

	// Over HTTP only.
	Plain    bool // answers are application/json, never streams
	Sessions bool // gives session ids, and answers 404 to one that it does not know
	OldSSE   bool // the older transport: a stream of events at /, messages at /message
}

// evilServer is one server as a test sees it.
type evilServer struct {
	t      testing.TB
	script evilScript
	entry  object // of mcp.json
	web    *evilWeb
}

// newEvil is a server over stdio; further members of its entry may be set before the pod is started.
func newEvil(t testing.TB, script evilScript) *evilServer {
	t.Helper()
	script.Journal = filepath.Join(t.TempDir(), "journal")
	s := &evilServer{t: t, script: script}
	s.entry = object{"command": testBinary(t), "args": []string{s.argument()}, "env": object{evilVariable: "1"}}
	return s
}

// newEvilWeb is a server over HTTP.
func newEvilWeb(t testing.TB, script evilScript) *evilServer {
	t.Helper()
	script.Journal = filepath.Join(t.TempDir(), "journal")
	s := &evilServer{t: t, script: script}
	s.web = serveEvil(t, script)
	s.entry = object{"type": "http", "url": s.web.server.URL + "/mcp"}
	if script.OldSSE {
		s.entry = object{"type": "sse", "url": s.web.server.URL + "/"}
	}
	return s
}

// set changes members of its entry in mcp.json.
func (s *evilServer) set(member string, value any) *evilServer {
	s.entry[member] = value
	return s
}

// wrapped has it started as npx starts a server: by a shell that a shell started, both waiting for it.
func (s *evilServer) wrapped() *evilServer {
	s.entry["command"] = "sh"
	s.entry["args"] = []string{"-c", `sh -c '"$@"; exit $?' inner "$@"; exit $?`, "outer", testBinary(s.t), s.argument()}
	return s
}

// argument writes the script and gives its file.
func (s *evilServer) argument() string {
	file := s.script.Journal + ".script"
	if err := s.script.save(file); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s evilScript) save(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func testBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// note is one line of a journal: whose process, what, and about what.
type note struct {
	pid          int
	event, about string
}

// write appends one line; lines of several processes stay whole.
func (s evilScript) write(event, about string) {
	file, err := os.OpenFile(s.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // the test is over and its folder gone
	}
	defer file.Close()
	fmt.Fprintf(file, "%d %s %s\n", os.Getpid(), event, strings.ReplaceAll(about, "\n", " "))
}

// journal gives what the server has noted of an event, in order; "" is everything.
func (s *evilServer) journal(event string) []note {
	s.t.Helper()
	text, err := os.ReadFile(s.script.Journal)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var notes []note
	for line := range strings.Lines(string(text)) {
		var n note
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(words) < 3 {
			continue // still being written
		}
		fmt.Sscan(words[0], &n.pid)
		n.event, n.about = words[1], words[2]
		if event == "" || n.event == event {
			notes = append(notes, n)
		}
	}
	return notes
}

// calls counts the calls of one tool that reached the server.
func (s *evilServer) calls(tool string) (n int) {
	s.t.Helper()
	for _, call := range s.journal("call") {
		if name, _, _ := strings.Cut(call.about, " "); name == tool {
			n++
		}
	}
	return n
}

// starts counts its processes.
func (s *evilServer) starts() int { s.t.Helper(); return len(s.journal("start")) }

// pid is its newest process.
func (s *evilServer) pid() int {
	s.t.Helper()
	notes := s.journal("start")
	if len(notes) == 0 {
		s.t.Fatal("the server never ran")
	}
	return notes[len(notes)-1].pid
}

// kill ends its newest process as the kernel's out-of-memory killer does.
func (s *evilServer) kill() {
	s.t.Helper()
	if err := syscall.Kill(s.pid(), syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// plainTool is a tool as a good server publishes it.
func plainTool(name string) json.RawMessage {
	hints := ""
	if strings.HasPrefix(name, "read_") {
		hints = `,"annotations":{"readOnlyHint":true}`
	}
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object"}%s}`, name, name, hints))
}
