package pins

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is what was logged.
type log struct{ kerneltest.Log }

func (l *log) has(part string) bool { return strings.Contains(l.String(), part) }

func (l *log) count(part string) int { return strings.Count(l.String(), part) }

// bench is a state folder and a clock.
type bench struct {
	t   *testing.T
	dir string
	log *log
	mu  sync.Mutex
	now time.Time
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, dir: t.TempDir(), log: &log{}, now: time.Unix(1_800_000_000, 0)}
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) config() Config {
	return Config{Dir: b.dir, Log: slog.New(slog.NewTextHandler(b.log, nil)), Now: b.clock}
}

func (b *bench) pins() *Pins { return b.with(b.config()) }

func (b *bench) with(cfg Config) *Pins {
	b.t.Helper()
	p, err := New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) sync(p *Pins) {
	b.t.Helper()
	if err := p.sync(context.Background(), true); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) path() string { return filepath.Join(b.dir, fileName) }

func (b *bench) file() string {
	b.t.Helper()
	text, err := os.ReadFile(b.path())
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bench) write(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) list() Listing {
	b.t.Helper()
	l, err := List(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// tools are what a server lists: "name" or "name=description".
func tools(texts ...string) []*capability.Tool {
	var list []mcp.Tool
	for _, text := range texts {
		name, description, _ := strings.Cut(text, "=")
		raw := fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{}}`, name, description)
		parsed, _, err := mcp.ParseTools([]byte("["+raw+"]"), 1)
		if err != nil || len(parsed) != 1 {
			panic(raw)
		}
		list = append(list, parsed[0])
	}
	return capability.NewList(list, false).All()
}

var (
	files = capability.PinOwner{Server: "files"}
	anna  = capability.PinOwner{Scope: "0a-anna", Server: "katashiro"}
	bert  = capability.PinOwner{Scope: "0a-bert", Server: "katashiro"}
)

// seen admits what a server lists and tells what of each tool is held back.
func seen(p *Pins, owner capability.PinOwner, texts ...string) string {
	list := tools(texts...)
	p.Admit(owner, list)
	var held []string
	for _, t := range list {
		if changed := p.Changed(owner, t); changed != nil {
			held = append(held, t.Name+": "+strings.Join(changed, ", "))
		}
	}
	return strings.Join(held, "; ")
}

func TestAToolThatChangesIsHeldBackWhoeverAsksAndWhenever(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	if got := p.Changed(files, tools("read=a")[0]); got != nil {
		t.Errorf("a tool that was never admitted: %q", got)
	}
	if got := seen(p, files, "read=a", "write=b"); got != "" {
		t.Errorf("at first: %q", got)
	}
	for range 2 {
		if got := seen(p, files, "read=a\u200b", "write=b", "list=c"); got != "read: description" {
			t.Errorf("changed: %q", got)
		}
	}
	if got := seen(p, files, "read2=a"); got != "" {
		t.Errorf("a renamed tool is a new one: %q", got)
	}
	if got := seen(p, anna, "read=a\u200b"); got != "" {
		t.Errorf("the same name of another owner: %q", got)
	}
	b.sync(p)
	p = b.pins()
	if got := seen(p, files, "read=other", "write=b", "list=changed"); got != "read: description; list: description" {
		t.Errorf("after a restart: %q", got)
	}
	if got := seen(p, files, "read=a", "write=b", "list=c"); got != "" {
		t.Errorf("back to what was pinned: %q", got)
	}
	b.sync(p)
	for _, e := range b.list().Entries {
		if e.Changed != nil {
			t.Errorf("%+v is still held back", e)
		}
	}
	if !b.log.has("tool=read") || !b.log.has("changed=[description]") {
		t.Errorf("nobody was told: %s", b.log.String())
	}
	info, err := os.Stat(b.path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
}

func TestOffAndWithoutAFolder(t *testing.T) {
	b := newBench(t)
	off := b.with(Config{Dir: b.dir, Off: true})
	if got := seen(off, files, "read=a") + seen(off, files, "read=b"); got != "" {
		t.Errorf("off: %q", got)
	}
	b.sync(off)
	if _, err := os.Stat(b.path()); err == nil {
		t.Error("off writes a file")
	}
	memory := b.with(Config{})
	if got := seen(memory, files, "read=a") + seen(memory, files, "read=b"); got != "read: description" {
		t.Errorf("in memory: %q", got)
	}
	b.sync(memory)
	if !memory.table.dirty.none() {
		t.Error("what nobody writes is kept to be written")
	}
}

func TestAcceptingPinsWhatWasSeenAndNotWhatComesNext(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, "read=a", "write=a")
	seen(p, files, "read=b", "write=b")
	b.sync(p)
	done, err := Accept(b.dir, Choice{Server: "files", Tool: "read"})
	if err != nil || len(done) != 1 || done[0].Tool != "read" || !slices.Equal(done[0].Changed, []string{"description"}) {
		t.Fatalf("%+v, %v", done, err)
	}
	b.sync(p)
	if got := seen(p, files, "read=b", "write=b"); got != "write: description" {
		t.Errorf("after read was accepted: %q", got)
	}
	if got := seen(p, files, "read=c"); got != "read: description" {
		t.Errorf("what came next: %q", got)
	}
	if done, err := Accept(b.dir, Choice{Server: "files"}); err != nil || len(done) != 1 || done[0].Tool != "write" {
		t.Errorf("the rest of the server: %+v, %v", done, err)
	}
	for _, c := range []Choice{{Server: "files", Tool: "write"}, {Server: "none"}, {Server: "files", Tool: "none"}, {Server: "files", Scope: "0a"}} {
		if done, err := Accept(b.dir, c); err == nil || done != nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %+v, %v", c, done, err)
		}
	}
}

func TestOneActAcceptsOneDefinition(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	for _, owner := range []capability.PinOwner{anna, bert} {
		seen(p, owner, "click=1", "type=1")
	}
	seen(p, anna, "click=2", "type=2")
	seen(p, bert, "click=2", "type=3")
	b.sync(p)
	if _, err := Accept(b.dir, Choice{Server: "katashiro"}); err == nil || !strings.Contains(err.Error(), "0a-anna") || !strings.Contains(err.Error(), "type") {
		t.Errorf("two definitions at once: %v", err)
	}
	if done, err := Accept(b.dir, Choice{Server: "katashiro", Tool: "click"}); err != nil || len(done) != 2 {
		t.Errorf("one definition of two clients: %+v, %v", done, err)
	}
	if done, err := Accept(b.dir, Choice{Server: "katashiro", Scope: "0a-a"}); err != nil || len(done) != 1 || done[0].Scope != anna.Scope {
		t.Errorf("one client: %+v, %v", done, err)
	}
	b.sync(p)
	if got := seen(p, anna, "click=2", "type=2") + seen(p, bert, "click=2", "type=3"); got != "type: description" {
		t.Errorf("afterwards %q", got)
	}
}

func TestWhatIsForgottenIsPinnedAnew(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, "read=a", "write=a")
	b.sync(p)
	if done, err := Forget(b.dir, Choice{Server: "files", Tool: "read"}); err != nil || len(done) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	b.sync(p)
	if got := seen(p, files, "read=b", "write=b"); got != "write: description" {
		t.Errorf("%q", got)
	}
	if got := seen(p, files, "read=c"); got != "read: description" {
		t.Errorf("%q", got)
	}
	b.sync(p)
	if got := seen(b.pins(), files, "read=b", "write=b"); got != "write: description" {
		t.Errorf("after a restart: %q", got)
	}
}

// What is written by one is taken in by all, and nobody's word is lost.
func TestPodsAndTheOperatorWriteOneFile(t *testing.T) {
	b := newBench(t)
	one, two := b.pins(), b.pins()
	seen(one, files, "read=a")
	b.sync(one)
	seen(two, files, "read=b", "write=b") // has not heard of it yet
	b.sync(two)
	if got := seen(two, files, "read=b", "write=b"); got != "read: description" {
		t.Errorf("who came second: %q", got)
	}
	b.sync(two)
	b.sync(one)
	if got := seen(one, files, "read=a", "write=a"); got != "write: description" {
		t.Errorf("who came first: %q", got)
	}
	if _, err := Accept(b.dir, Choice{Server: "files", Tool: "read"}); err != nil {
		t.Fatal(err)
	}
	if err := one.file.rewriteNow(); err != nil { // while the other has not read the operator's word
		t.Fatal(err)
	}
	b.sync(two)
	if got := seen(two, files, "read=b"); got != "" {
		t.Errorf("an accepted tool: %q", got)
	}
	if _, err := Forget(b.dir, Choice{Server: "files", Tool: "write"}); err != nil {
		t.Fatal(err)
	}
	if err := one.file.rewriteNow(); err != nil {
		t.Fatal(err)
	}
	b.sync(two)
	if got := seen(two, files, "write=new"); got != "" {
		t.Errorf("a forgotten tool: %q", got)
	}
}

// rewriteNow takes in what others wrote and writes the file anew.
func (j *journal) rewriteNow() error {
	j.table.rewrite()
	return j.sync(context.Background())
}

func TestNothingIsLostInACrowd(t *testing.T) {
	b := newBench(t)
	first := b.pins()
	seen(first, files, "accepted=a")
	seen(first, files, "accepted=b")
	b.sync(first)
	var all sync.WaitGroup
	for n := range 4 {
		p := b.pins()
		all.Go(func() {
			for i := range 20 {
				p.Admit(files, tools(fmt.Sprintf("t-%d-%d=x", n, i)))
				if i%5 == n {
					p.table.rewrite()
				}
				if err := p.sync(context.Background(), true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		if _, err := Accept(b.dir, Choice{Server: "files", Tool: "accepted"}); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	if n := len(b.list().Entries); n != 81 {
		t.Errorf("%d tools are pinned, want 81", n)
	}
	if got := seen(b.pins(), files, "accepted=b"); got != "" {
		t.Errorf("the accepted one: %q", got)
	}
}
