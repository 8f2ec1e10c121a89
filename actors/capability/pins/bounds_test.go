package pins

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
)

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%d=x", prefix, i)
	}
	return list
}

func TestAClientThatMakesUpToolsHasABoundAndIsHeldBackBeyondIt(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	if got := seen(p, anna, names("t", ClientTools)...); got != "" {
		t.Fatalf("%.80s", got)
	}
	if got := seen(p, anna, "t-0=x", "more=x"); got != "more: "+capability.PinNoRoom {
		t.Errorf("one more: %q", got)
	}
	if got := seen(p, anna, "t-0=changed"); got != "t-0: description" {
		t.Errorf("what is pinned: %q", got)
	}
	if got := seen(p, bert, "more=x"); got != "" {
		t.Errorf("another client: %q", got)
	}
	if p.refused.Load() != 1 {
		t.Errorf("%d refusals are counted", p.refused.Load())
	}
	b.sync(p)
	if _, err := Forget(b.dir, Choice{Server: "katashiro", Scope: anna.Scope}); err != nil {
		t.Fatal(err)
	}
	b.sync(p)
	if got := seen(p, anna, "more=x"); got != "" {
		t.Errorf("after the operator had them forgotten: %q", got)
	}
}

func TestTheClientSeenLongestAgoMakesRoomAndTheOperatorNever(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.limit = 64 << 10
	p := b.with(cfg)
	client := func(key string, n int) capability.PinOwner {
		return capability.PinOwner{Scope: fmt.Sprintf("%s-%d", key, n), Server: "katashiro"}
	}
	seen(p, files, names("f", 20)...)
	seen(p, client("0a", 0), "click=mine")
	for i := range 60 { // of another key, which has the most from now on
		b.pass(time.Second)
		seen(p, client("0b", i), "click=1", "type=1")
	}
	if got := seen(p, client("0a", 0), "click=other"); got != "click: description" {
		t.Errorf("a client of a key that has little: %q", got)
	}
	if got := seen(p, client("0b", 59), "click=other"); got != "click: description" {
		t.Errorf("the client seen last: %q", got)
	}
	p.table.mu.Lock()
	operator, clients := p.table.bytes[0], p.table.bytes[1]
	_, first := p.table.scopes["0b-0"]
	p.table.mu.Unlock()
	if first || clients > cfg.limit || operator > cfg.limit {
		t.Errorf("the first of them is there: %v; %d and %d bytes", first, operator, clients)
	}
	b.sync(p)
	again := b.with(cfg)
	if a, b := p.figures(false), again.figures(false); a.pins != b.pins {
		t.Errorf("%d pins, and after a restart %d", a.pins, b.pins)
	}
	// The operator's own half is full: what cannot be pinned is held back, and nothing that is pinned goes.
	more := names("g", 200)
	if got := seen(p, files, more...); !strings.HasPrefix(got, "g-1") || !strings.Contains(got, "g-199: "+capability.PinNoRoom) {
		t.Errorf("%.200s", got)
	}
	if got := seen(p, client("0b", 59), "type=other"); got != "type: description" {
		t.Errorf("a client, after the operator's half was full: %q", got)
	}
	other := capability.PinOwner{Server: "other"}
	if got := seen(p, other, "read=x"); got != "read: "+capability.PinNoRoom {
		t.Errorf("another server: %q", got)
	}
	if got := seen(p, files, "f-3=changed"); got != "f-3: description" {
		t.Errorf("what is pinned: %q", got)
	}
}

// All that is counted comes back to nothing when all is forgotten.
func TestTheBookOfBytesIsRight(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, names("f", 30)...)
	seen(p, files, "f-1=y", "f-2=y")
	seen(p, anna, "click=1")
	b.sync(p)
	again := b.pins()
	p.table.mu.Lock()
	want := p.table.bytes
	p.table.mu.Unlock()
	again.table.mu.Lock()
	got := again.table.bytes
	again.table.mu.Unlock()
	if got != want {
		t.Errorf("%v bytes, and read again %v", want, got)
	}
	if _, err := Forget(b.dir, Choice{Server: "files"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Forget(b.dir, Choice{Server: "katashiro"}); err != nil {
		t.Fatal(err)
	}
	b.sync(p)
	f := p.figures(false)
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	shelves := p.table.bytes[0] + p.table.bytes[1]
	if f.pins != 0 || f.held != 0 || shelves > 2*(shelfBytes+64) {
		t.Errorf("%+v, %d bytes", f, shelves)
	}
}

func TestAFullTableTakesNoMoreMemoryThanItIsCharged(t *testing.T) {
	const limit = 2 << 20
	p, err := New(Config{limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	for server := 0; p.refused.Load() == 0; server++ {
		owner := capability.PinOwner{Server: fmt.Sprintf("server-%d", server)}
		p.Admit(owner, tools(names("some-tool-with-a-name", 500)...))
	}
	p.table.take()
	if used := heap() - before; used > limit {
		t.Errorf("%d pins take %d bytes, and are charged %d", p.table.pins.Load(), used, limit)
	}
	runtime.KeepAlive(p)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAToolThatChangesAllTheTimeDoesNotKeepTheDiskBusy(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	write := func() {
		if err := p.sync(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	seen(p, files, "read=a")
	for i := range 100 {
		seen(p, files, fmt.Sprintf("read=%d", i))
		write()
	}
	if n := strings.Count(b.file(), `"op":"pin"`); n > 3 {
		t.Errorf("%d lines", n)
	}
	if n := b.log.count("held back"); n > 1 {
		t.Errorf("it was told %d times", n)
	}
	b.pass(restlessEvery * time.Second)
	write()
	if _, err := Accept(b.dir, Choice{Server: "files"}); err != nil {
		t.Fatal(err)
	}
	write()
	if got := seen(p, files, "read=99"); got != "" {
		t.Errorf("the last that was seen was not what was accepted: %q", got)
	}
}

func TestTheFileDoesNotGrowWithoutEnd(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, names("f", 100)...)
	for i := range 40 {
		b.pass(restlessEvery * time.Second)
		var list []string
		for n := range 100 {
			list = append(list, fmt.Sprintf("f-%d=%d", n, i))
		}
		seen(p, files, list...)
		if err := p.sync(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.file()); n > 1600<<10 {
		t.Errorf("100 tools take %d bytes", n)
	}
}

func TestReadersAndWritersMeet(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			owner := capability.PinOwner{Scope: fmt.Sprintf("0a-%d", n%2), Server: "s"}
			for i := range 50 {
				if got := seen(p, owner, "one=x", fmt.Sprintf("n-%d=x", i)); got != "" {
					t.Errorf("%q", got)
				}
				if n == 0 && i%10 == 0 { // one goroutine writes the file
					if err := p.sync(t.Context(), true); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}
