package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/machine"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/prompter"
	"github.com/acpod/acpod/actors/chaos/server"
)

// diskBed is a pod without agents whose state and audit records are on a disk that can be attacked.
type diskBed struct {
	*agentBed
	disk *machine.Disk
	next int
}

// onDisk gives the config of a pod that keeps what it has at that place. state "" = the disk's.
func onDisk(place machine.Place) string {
	return "[acp]\nlisten = \"127.0.0.1:0\"\n[agent]\ndriver = \"none\"\n[mcp]\nlisten = \"127.0.0.1:0\"\n[debug]\nlisten = \"127.0.0.1:0\"\n" +
		"[audit]\npath = \"" + place.Audit + "\"\n[state]\ndir = \"" + place.State + "\"\n"
}

func newDiskBed(t *testing.T, readonly bool) *diskBed {
	t.Helper()
	disk, err := machine.NewDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &diskBed{agentBed: &agentBed{t: t, folder: t.TempDir()}, disk: disk}
	b.use(b.start(readonly))
	return b
}

func (b *diskBed) start(readonly bool) *pod.Pod {
	b.t.Helper()
	program, err := b.disk.Wrap(acpodBinary, readonly)
	if err != nil {
		b.t.Fatal(err)
	}
	p := startProgram(b.t, program, onDisk(b.disk.Place()))
	b.disk.Bind(p.PID())
	return p
}

// caller opens a session whose facade is called.
func (b *diskBed) caller(t *testing.T) *prompter.Session {
	t.Helper()
	s := b.session(t)
	open(t, s)
	if s.Facade.Token == "" {
		t.Fatal("the session was told no facade")
	}
	return s
}

// call calls a tool that changes something, once, and gives the refusal, "" for a result. key "" = none.
func (b *diskBed) call(t *testing.T, s *prompter.Session, number int, key string) string {
	t.Helper()
	arguments := fmt.Sprintf(`{"n":%d}`, number)
	params := fmt.Sprintf(`{"name":"execute_capability","arguments":{"name":"%s.click","arguments":%s`, server.Name, arguments)
	if key != "" {
		params += fmt.Sprintf(`,"idempotency_key":%q`, key)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Facade.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	request.Header.Set("Authorization", "Bearer "+s.Facade.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("the facade does not answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result *struct {
			IsError bool
			Meta    struct {
				Refusal string `json:"acpod.dev/refusal"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Result == nil {
		t.Fatalf("a call was answered %d %.300q, %v", response.StatusCode, body, err)
	}
	if answer.Result.IsError && answer.Result.Meta.Refusal == "" {
		t.Fatalf("a call failed: %.300q", body)
	}
	return answer.Result.Meta.Refusal
}

// fresh enters a new call of a session and gives its number.
func (b *diskBed) fresh() int {
	b.next++
	number := b.next
	b.world.Calls.Begin(ledger.Call{Number: number, Session: b.count, Sum: ledger.Sum(fmt.Appendf(nil, `{"n":%d}`, number)), Place: "sessions"})
	return number
}

// auditRecords counts the ends of calls in a text, how they came out or that they were refused. A line that the disk has cut is none.
func auditRecords(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		var record struct{ Event string }
		if json.Unmarshal(line, &record) == nil && (record.Event == "exit" || record.Event == "refused") {
			n++
		}
	}
	return n
}

func (b *diskBed) log(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.pod.Dir(), "pod.log"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// steady wants no actor of the pod to have been started anew.
func (b *diskBed) steady(t *testing.T) {
	t.Helper()
	root, err := b.pod.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root.Each(func(n *pod.Node) {
		if n.Restarts > 0 || n.State == "abandoned" {
			t.Errorf("%s is %s and was restarted %d times", n.Path, n.State, n.Restarts)
		}
	})
}

// audited wants each call's end to stand in the file or in the log.
func (b *diskBed) audited(t *testing.T, calls int) {
	t.Helper()
	inFile, inLog := 0, 0
	for end := time.Now().Add(patience); inFile+inLog != calls; time.Sleep(10 * time.Millisecond) {
		file, err := b.disk.Audit()
		if err != nil {
			t.Fatal(err)
		}
		inFile, inLog = auditRecords(file), auditRecords(b.log(t))
		if time.Now().After(end) {
			t.Fatalf("of %d calls %d have a record in the file and %d in the log", calls, inFile, inLog)
		}
	}
}

// While the disk is full, calls go on, their audit records stand in the log, and a key that cannot be written down is refused and its
// call not made, however often it comes. When there is room again, so is everything else.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	b := newDiskBed(t, false)
	whole, _, why := b.disk.Supported()
	if !whole {
		t.Logf("only the audit file can be attacked on this machine: %s", why)
	}
	s := b.caller(t)
	calls := 0
	must := func(key, want string) {
		t.Helper()
		calls++
		if got := b.call(t, s, b.fresh(), key); got != want {
			t.Errorf("call %d with key %q: refusal %q, want %q", calls, key, got, want)
		}
	}
	must("", "")
	must("first", "")
	b.audited(t, calls)
	if err := b.disk.Fill(); err != nil {
		t.Fatal(err)
	}
	refused := map[int]string{}
	for i := range 40 { // the page that is written on has room for some
		number, key := b.fresh(), fmt.Sprintf("full-%d", i)
		calls++
		switch got := b.call(t, s, number, key); {
		case got == "overloaded" && whole:
			refused[number] = key
		case got != "":
			t.Errorf("with a full disk, key %s: refusal %q", key, got)
		}
	}
	if whole && len(refused) < 10 {
		t.Errorf("only %d of 40 keys were refused: the disk is not full, or they are not written down", len(refused))
	}
	for number, key := range refused {
		calls++
		if got := b.call(t, s, number, key); got != "overloaded" {
			t.Errorf("key %s again: refusal %q", key, got)
		}
	}
	if executed := b.world.Calls.Executed(); executed != int64(2+40-len(refused)) {
		t.Errorf("%d calls were executed; 42 were made and %d of them refused", executed, len(refused))
	}
	must("", "")
	if !bytes.Contains(b.log(t), []byte("the audit file cannot be written")) {
		t.Error("the log says nothing of the audit file")
	}
	b.steady(t)
	if err := b.disk.Drain(); err != nil {
		t.Fatal(err)
	}
	for number, key := range refused { // never sent, so it may be now
		calls++
		if got := b.call(t, s, number, key); got != "" {
			t.Errorf("key %s with room: refusal %q", key, got)
		}
	}
	must("well", "")
	b.audited(t, calls)
	if before, err := b.disk.Audit(); err != nil || auditRecords(before) < 3 || !bytes.Contains(b.log(t), []byte("takes records again")) {
		t.Errorf("%d records stand in the file, %v; the log tells of it: %t", auditRecords(before), err, bytes.Contains(b.log(t), []byte("takes records again")))
	}
	b.steady(t)
	closed(t, s)
}

// While nothing can be made on the disk, calls go on and audit records stand in the log; afterwards they go to the file again.
func TestADiskThatBecomesReadOnly(t *testing.T) {
	t.Parallel()
	b := newDiskBed(t, false)
	s := b.caller(t)
	for range 3 {
		b.call(t, s, b.fresh(), "")
	}
	b.audited(t, 3)
	if err := b.disk.ReadOnly(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if got := b.call(t, s, b.fresh(), ""); got != "" {
			t.Errorf("a call was refused: %q", got)
		}
		if got := b.call(t, s, b.fresh(), fmt.Sprintf("ro-%d", i)); got != "" && got != "overloaded" {
			t.Errorf("a call with a key was refused: %q", got)
		}
	}
	awaitThat(t, "the records in the log", func() bool { return auditRecords(b.log(t)) == 10 })
	b.steady(t)
	if err := b.disk.Writable(); err != nil {
		t.Fatal(err)
	}
	b.call(t, s, b.fresh(), "after")
	b.audited(t, 14)
	if file, err := b.disk.Audit(); err != nil || auditRecords(file) != 4 {
		t.Errorf("%d records stand in the file, %v", auditRecords(file), err)
	}
	b.steady(t)
	closed(t, s)
}

// A pod that cannot write its state at start says so in one line and serves; a key that it cannot write down is refused, because after
// a restart nobody would know of its call.
func TestAStateFolderThatCannotBeWrittenAtStart(t *testing.T) {
	t.Parallel()
	inTheWay := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(inTheWay, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, start := range map[string]func(b *diskBed) *pod.Pod{
		"a read-only disk":     func(b *diskBed) *pod.Pod { return b.start(true) },
		"a file in the way":    func(b *diskBed) *pod.Pod { return b.at(machine.Place{State: inTheWay}) },
		"below a file":         func(b *diskBed) *pod.Pod { return b.at(machine.Place{State: filepath.Join(inTheWay, "x")}) },
		"below a full device":  func(b *diskBed) *pod.Pod { return b.at(machine.Place{State: "/dev/full/state", Audit: "/dev/full"}) },
		"no file can be there": func(b *diskBed) *pod.Pod { return b.at(machine.Place{State: "/proc/acpod-chaos"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, err := machine.NewDisk(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if _, readonly, why := disk.Supported(); !readonly && name == "a read-only disk" {
				t.Logf("not on this machine: %s", why)
				return
			}
			b := &diskBed{agentBed: &agentBed{t: t, folder: t.TempDir()}, disk: disk}
			b.use(start(b))
			told := 0
			for line := range strings.Lines(string(b.log(t))) {
				if strings.Contains(line, "state folder") {
					told++
				}
			}
			if told != 1 {
				t.Errorf("the log has %d lines about the state folder", told)
			}
			s := b.caller(t)
			if got := b.call(t, s, b.fresh(), ""); got != "" {
				t.Errorf("a call was refused: %q", got)
			}
			for range 2 {
				if got := b.call(t, s, b.fresh(), "key"); got != "overloaded" {
					t.Errorf("a key that cannot be written down: refusal %q", got)
				}
			}
			if executed := b.world.Calls.Executed(); executed != 1 {
				t.Errorf("%d calls were executed", executed)
			}
			b.steady(t)
			closed(t, s)
		})
	}
}

// at starts the pod with its state and audit records there.
func (b *diskBed) at(place machine.Place) *pod.Pod {
	return startProgram(b.t, acpodBinary, onDisk(place))
}

// A pod that stood still, as on a laptop that was closed, goes on: no session is lost, what was asked is answered once, and keep-alives
// come again.
func TestAPodThatStoodStill(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := &agentBed{t: t, folder: folder}
	config := strings.Replace(bedConfig(t, folder, `session_ttl = "5s"`, `turn_idle_timeout = "5s"`, `permission_timeout = "5s"`, `cancel_timeout = "5s"`), "[acp]\n",
		"[acp]\nkeepalive = \"500ms\"\npong_timeout = \"3s\"\nwrite_timeout = \"3s\"\n", 1)
	b.plan("")
	b.use(startPod(t, config))
	var sessions []*prompter.Session
	for range 6 {
		s := b.session(t)
		open(t, s)
		b.sound(t, s, "before", false)
		sessions = append(sessions, s)
	}
	for jump := range 2 {
		type running struct {
			s    *prompter.Session
			turn *prompter.Turn
			end  <-chan string
		}
		var turns []running
		for i, s := range sessions {
			key := fmt.Sprintf("jump-%d-%d", jump, i)
			turn := &prompter.Turn{Key: key, Cancel: -1, Drop: -1, Ends: []string{"end_turn"}, Script: agent.Script{{Do: "turn", Text: key}, {Do: "chunks", N: 20, Bytes: 100},
				{Do: "sleep", For: time.Duration(i) * 100 * time.Millisecond}, {Do: "ask"}, {Do: "chunks", N: 20, Bytes: 100}}}
			answer := s.Prompt(turn)
			end := make(chan string, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				word, err := s.Wait(ctx, answer)
				end <- fmt.Sprint(word, " ", err)
			}()
			turns = append(turns, running{s, turn, end})
		}
		if err := machine.Jump(t.Context(), b.pod.PID(), 7*time.Second); err != nil {
			t.Fatal(err)
		}
		for _, r := range turns {
			if end := <-r.end; end != "end_turn <nil>" {
				t.Errorf("turn %s ended with %s", r.turn.Key, end)
			}
			book := r.s.Heard(r.turn.Key, false)
			book.End(40)
			if wrong := book.Wrong(); len(wrong) > 0 {
				t.Errorf("turn %s: %q", r.turn.Key, wrong)
			}
		}
	}
	for _, s := range sessions {
		if !s.Peer().Living() {
			t.Errorf("a socket was closed: %v", s.Peer().Cause())
			continue
		}
		alive := s.Alive()
		awaitThat(t, "the keep-alive after the jump", func() bool { return s.Alive() > alive })
		closed(t, s)
	}
}

// An agent that stands still for a while goes on with its turn; one that stands still for longer than the pod waits is ended, its turn is
// answered once, and the next prompt has another.
func TestAnAgentThatStoodStill(t *testing.T) {
	t.Parallel()
	b := newAgentBed(t, `turn_idle_timeout = "3s"`, `cancel_timeout = "1s"`, `stop_grace = "200ms"`)
	for name, row := range map[string]struct {
		jump time.Duration
		ends []string
	}{
		"for a moment": {time.Second, []string{"end_turn"}},
		"for too long": {20 * time.Second, []string{"idle"}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitThat(t, "the end of all agents before", func() bool { left, err := b.records().Living(); return err == nil && len(left) == 0 })
			s := b.session(t)
			open(t, s)
			living, err := b.records().Living()
			if err != nil || len(living) != 1 {
				t.Fatalf("%v, %v live", err, living)
			}
			turn := prompter.NewTurn("stopped", agent.Strike{}, 10, 100, 0)
			turn.Script, turn.Ends = append(turn.Script, agent.Step{Do: "sleep", For: 200 * time.Millisecond}), row.ends
			jumping, over := context.WithCancel(t.Context())
			jumped := make(chan error, 1)
			go func() { jumped <- machine.Jump(jumping, living[0].PID, row.jump) }()
			b.take(t, s, turn)
			over()
			if err := <-jumped; err != nil && row.jump < 2*time.Second {
				t.Error(err)
			}
			b.sound(t, s, "after", false)
			closed(t, s)
		})
	}
}
