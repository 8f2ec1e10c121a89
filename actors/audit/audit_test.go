package audit

import (
	"context"
	"crypto/sha256"
	"encoding/json/v2"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is a log that tests read.
type page struct{ kerneltest.Log }

func (p *page) lines() []string { return strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n") }

func (p *page) count(part string) int {
	n := 0
	for _, line := range p.lines() {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// quiet is a JSON log that is set to errors only.
func quiet(p *page) slog.Handler {
	return slog.NewJSONHandler(p, &slog.HandlerOptions{Level: slog.LevelError})
}

func start(t *testing.T, cfg Config) (*Recorder, kernel.Ref, kernel.Ref) {
	t.Helper()
	k := kerneltest.Start(t, kernel.Options{Logger: slog.New(cfg.Log)})
	root, _ := kerneltest.Root(t, k)
	recorder, spec := New(cfg)
	ref := kerneltest.Spawn(t, root, spec)
	kerneltest.Eventually(t, "the actor has started", func() bool { return recorder.ref.Load() != nil })
	return recorder, ref, root
}

func entry(event capability.Event) capability.Entry {
	return capability.Entry{Time: time.Unix(1_800_000_000, 0).UTC(), Event: event, Call: 7, Provider: "openab-browser", Server: "katashiro", Tool: "katashiro.click",
		Session: "#12b9377c", ArgsSHA: sha256.Sum256([]byte("{}")), Outcome: capability.OutcomeOK, IsError: true, Duration: 1500 * time.Millisecond, Bytes: 42}
}

func TestEachEventHasItsFieldsAndNoOthers(t *testing.T) {
	want := map[capability.Event]string{
		capability.EventCall:    `"event":"call","call":7,"provider":"openab-browser","tool":"katashiro.click","session":"#12b9377c","args_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","server":"katashiro"}`,
		capability.EventExit:    `"event":"exit","call":7,"provider":"openab-browser","tool":"katashiro.click","session":"#12b9377c","args_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","server":"katashiro","outcome":"ok","is_error":true,"duration_ms":1500,"bytes":42}`,
		capability.EventRefused: `"event":"refused","call":7,"provider":"openab-browser","tool":"katashiro.click","session":"#12b9377c","args_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","server":"katashiro","outcome":"ok","is_error":true,"duration_ms":1500}`,
	}
	for event, fields := range want {
		log := &page{}
		s := &sink{log: quiet(log)}
		s.write([]slog.Record{record(entry(event))})
		if got, want := log.lines()[0], `{"time":"2027-01-15T08:00:00Z","level":"INFO","msg":"mcp.audit",`+fields; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	filtered := entry(capability.EventRefused)
	filtered.Filtered = true
	log := &page{}
	(&sink{log: quiet(log)}).write([]slog.Record{record(filtered)})
	if got := log.lines()[0]; !strings.HasSuffix(got, `"duration_ms":1500,"filtered":true}`) {
		t.Errorf("what the filter leaves out is not told from what is not there: %s", got)
	}
}

func TestRecordsReachTheLogWhateverItsLevel(t *testing.T) {
	log := &page{}
	recorder, ref, _ := start(t, Config{Log: quiet(log)})
	for _, event := range []capability.Event{capability.EventCall, capability.EventExit, capability.EventRefused} {
		recorder.Record(entry(event))
	}
	kerneltest.Eventually(t, "three records", func() bool { return log.count(`"msg":"mcp.audit"`) == 3 })
	kerneltest.Eventually(t, "the account is at zero", func() bool { return ref.Account().Used() == 0 })
}

// A name that a peer chose cannot end a line, start another record, or send an escape sequence to a terminal.
func TestWhatAPeerWroteStaysOnOneLineInBothFormats(t *testing.T) {
	hostile := "x\n{\"msg\":\"mcp.audit\"}\x1b[31m\u202e\u0085<b>\xff\" outcome=ok " + strings.Repeat("long", 100)
	path := filepath.Join(t.TempDir(), "audit")
	text := &page{}
	for _, s := range []*sink{{log: slog.NewTextHandler(text, nil)}, {path: path, log: quiet(&page{})}} {
		e := entry(capability.EventExit)
		e.Tool, e.Provider, e.Server, e.Session = hostile, hostile, hostile, hostile
		s.write([]slog.Record{record(e)})
		s.close()
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"text": strings.Join(text.lines(), "\n") + "\n", "file": string(file)} {
		if strings.Count(out, "\n") != 1 || len(out) > 2000 {
			t.Errorf("%s: %d lines, %d bytes", name, strings.Count(out, "\n"), len(out))
		}
		for _, c := range strings.TrimSuffix(out, "\n") {
			if c < 0x20 || c > 0x7e {
				t.Errorf("%s: %U stands in %q", name, c, out)
				break
			}
		}
	}
	var parsed map[string]any
	if err := json.Unmarshal(file, &parsed); err != nil {
		t.Fatalf("%v in %s", err, file)
	}
	if tool := parsed["tool"].(string); !strings.HasPrefix(tool, `x\n{\"msg\"`) || !strings.HasSuffix(tool, "...") {
		t.Errorf("tool is shown as %q", tool)
	}
	bare := regexp.MustCompile(`"(\\.|[^"\\])*"`).ReplaceAllString(text.lines()[0], "")
	if fields := strings.Count(bare, " outcome="); fields != 1 {
		t.Errorf("%d fields outcome outside of quotes: %s", fields, bare)
	}
}

func TestAFileIsAppendOnlyAndItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte("{\"kept\":true}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	log := &page{}
	recorder, _, _ := start(t, Config{Path: path, Log: quiet(log)})
	recorder.Record(entry(capability.EventCall))
	recorder.Record(entry(capability.EventExit))
	lines := func() []string {
		b, _ := os.ReadFile(path)
		return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	}
	kerneltest.Eventually(t, "two records behind what stood there", func() bool { return len(lines()) == 3 })
	if lines()[0] != `{"kept":true}` {
		t.Errorf("the file was not appended to: %q", lines())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// Rotation: the file is moved away, and the next record makes a new one.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	recorder.Record(entry(capability.EventExit))
	kerneltest.Eventually(t, "a new file", func() bool { l := lines(); return len(l) == 1 && strings.Contains(l[0], "mcp.audit") })
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if log.count("mcp.audit") != 0 {
		t.Errorf("records went to the log as well: %q", log.lines())
	}
}

// /dev/full is a disk without room.
func TestAFullDiskIsToldOnceAndLosesNothing(t *testing.T) {
	log := &page{}
	s := &sink{path: "/dev/full", log: quiet(log)}
	for range 3 {
		s.write([]slog.Record{record(entry(capability.EventCall)), record(entry(capability.EventExit))})
	}
	if n := log.count(`"msg":"mcp.audit"`); n != 6 {
		t.Errorf("%d of 6 records are in the log", n)
	}
	if n := log.count("cannot be written"); n != 1 || log.count("no space left") != 1 {
		t.Errorf("told %d times: %q", n, log.lines())
	}
	path := filepath.Join(t.TempDir(), "audit")
	s.path = path // the disk has room again
	s.write([]slog.Record{record(entry(capability.EventCall))})
	s.close()
	if b, err := os.ReadFile(path); err != nil || strings.Count(string(b), "\n") != 1 {
		t.Errorf("%q %v", b, err)
	}
	if log.count("takes records again") != 1 || log.count(`"msg":"mcp.audit"`) != 6 {
		t.Errorf("%q", log.lines())
	}
}

func TestAPathThatCannotBeOpenedIsNoReasonToFail(t *testing.T) {
	dir := t.TempDir()
	log := &page{}
	recorder, ref, _ := start(t, Config{Path: dir, Log: quiet(log)})
	recorder.Record(entry(capability.EventCall))
	kerneltest.Eventually(t, "the record is in the log", func() bool { return log.count(`"msg":"mcp.audit"`) == 1 && log.count("cannot be written") == 1 })
	if ref.Cause() != nil {
		t.Errorf("the actor ended: %v", ref.Cause())
	}
}

func TestAStopWritesWhatIsQueuedAndACrashLosesNothing(t *testing.T) {
	log := &page{}
	recorder, ref, root := start(t, Config{Log: quiet(log)})
	const each = 500
	for range each {
		recorder.Record(entry(capability.EventCall))
	}
	ref.Stop(context.DeadlineExceeded) // a permanent actor comes back
	<-ref.Done()
	for range each {
		recorder.Record(entry(capability.EventExit))
	}
	kerneltest.Eventually(t, "another generation has begun", func() bool { return *recorder.ref.Load() != ref })
	current := *recorder.ref.Load()
	kerneltest.Do(t, root, func(c *kernel.Ctx) { c.Stop(current, kernel.ErrShutdown) })
	<-current.Done()
	if calls, exits, dropped := log.count(`"event":"call"`), log.count(`"event":"exit"`), recorder.Dropped(); calls != each || int64(exits)+dropped != each {
		t.Errorf("%d calls, %d exits, %d dropped of %d each", calls, exits, dropped, each)
	}
}

// stuck is a sink that takes nothing until it is let go.
type stuck struct {
	slog.Handler
	gate    chan struct{}
	entered chan struct{}
	once    sync.Once
}

func (s *stuck) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == message {
		s.once.Do(func() { close(s.entered) })
		<-s.gate
	}
	return s.Handler.Handle(ctx, r)
}

func TestASinkThatStandsStillBlocksNobodyAndWhatIsDroppedIsTold(t *testing.T) {
	log := &page{}
	h := &stuck{Handler: quiet(log), gate: make(chan struct{}), entered: make(chan struct{})}
	k := kerneltest.Start(t, kernel.Options{Logger: slog.New(quiet(log))})
	root, _ := kerneltest.Root(t, k)
	recorder, spec := New(Config{Log: h})
	ref := kerneltest.Spawn(t, root, spec)
	kerneltest.Eventually(t, "the actor has started", func() bool { return recorder.ref.Load() != nil })
	recorder.Record(entry(capability.EventCall))
	<-h.entered
	const all = QueueRecords + 500
	for range all {
		recorder.Record(entry(capability.EventExit))
	}
	kerneltest.Eventually(t, "the loss is told", func() bool { return log.count("audit records were dropped") > 0 })
	if used := ref.Account().Used(); used > ref.Account().Limit() {
		t.Errorf("%d bytes wait, over the limit of %d", used, ref.Account().Limit())
	}
	node := k.Tree().Children[0]
	refused := node.Refused["audit_queue"]
	if refused < 500 || refused > 600 {
		t.Errorf("%d drops are counted in the tree", refused)
	}
	close(h.gate)
	kerneltest.Eventually(t, "the rest is written", func() bool { return int64(log.count(`"event":"exit"`)) == all-refused })
	kerneltest.Eventually(t, "the account is at zero", func() bool { return ref.Account().Used() == 0 })
}

func TestRecordsBeforeTheActorWaitForIt(t *testing.T) {
	log := &page{}
	recorder, spec := New(Config{Log: quiet(log)})
	recorder.Record(entry(capability.EventCall))
	root, _ := kerneltest.Root(t, kerneltest.Start(t, kernel.Options{}))
	kerneltest.Spawn(t, root, spec)
	kerneltest.Eventually(t, "the record is written", func() bool { return log.count(`"event":"call"`) == 1 })
}

// A name may be a piece of a request of a MiB, which must not be kept while a record waits.
func TestAWaitingRecordKeepsNothingButItself(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	e := entry(capability.EventRefused)
	e.Provider, e.Server, e.Tool = body[10:20], body[20:30], body[:1<<19]
	kept := own(e)
	for name, pair := range map[string][2]string{"provider": {e.Provider, kept.Provider}, "server": {e.Server, kept.Server}, "tool": {e.Tool, kept.Tool}} {
		if unsafe.StringData(pair[0]) == unsafe.StringData(pair[1]) || len(pair[1]) > longestName+1 || !strings.HasPrefix(pair[0], pair[1]) {
			t.Errorf("%s: %d bytes are kept", name, len(pair[1]))
		}
	}
	if shown(kept.Tool) != shown(e.Tool) {
		t.Errorf("it is shown as %s", shown(kept.Tool))
	}
}
