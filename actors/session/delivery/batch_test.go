package delivery

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// recorded is what the record on the disk has.
func (b *bed) recorded() (list []written) {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.state, "delivery.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var file recordFile
	if err := json.Unmarshal(text, &file); err != nil {
		b.t.Fatal(err)
	}
	return file.Written
}

// However many files a delivery writes, what it may write is on the disk before the first of them is changed, and what it wrote after the last.
func TestManyFilesAreRecordedAtOnceBeforeAnyIsWritten(t *testing.T) {
	b := newBed(t)
	const many, text = 40, `{"allowedTools":["read"]}`
	for i := range many {
		b.write(fmt.Sprintf(".kiro/agents/%03d.json", i), text)
	}
	d := b.pod(File, "kiro")
	f, err := openFolder(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	jobs, _ := d.jobs(f, profileNamed("kiro"), File, ".", "")
	for _, j := range jobs {
		for range j.wants {
			j.known = append(j.known, nil)
		}
		d.plan(f, j, "chosen")
	}
	d.note(jobs)
	if n := len(b.recorded()); n != 2*many+1 {
		t.Errorf("%d places are recorded", n)
	}
	b.wants(".kiro/agents/000.json", text)
	for _, j := range jobs[:many/2] { // and it is killed
		if err := d.write(t.Context(), f, j, "chosen"); err != nil {
			t.Fatal(err)
		}
	}
	if text := b.read(".kiro/agents/000.json"); !strings.Contains(text, `"@openab"`) || !strings.Contains(text, facadeURL) {
		t.Error(text)
	}
	ready(t, b.prepare(b.pod(ACP, "kiro")))
	for i := range many {
		b.wants(fmt.Sprintf(".kiro/agents/%03d.json", i), text)
	}
	b.wants(".kiro/settings/mcp.json", "absent")
	if list := b.recorded(); len(list) != 0 {
		t.Errorf("%d places are still recorded", len(list))
	}
}

// The record is a file that is replaced and synced: as often for many files as for one.
func TestTheRecordIsWrittenAsOftenForManyFilesAsForOne(t *testing.T) {
	for _, many := range []int{1, 20} {
		b := newBed(t)
		for i := range many {
			b.write(fmt.Sprintf(".kiro/agents/%03d.json", i), `{}`)
		}
		watch, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Close(watch) }()
		// With both ends of each rename, no event is like the one before it, which would make them one.
		if _, err := syscall.InotifyAddWatch(watch, b.state, syscall.IN_MOVED_FROM|syscall.IN_MOVED_TO); err != nil {
			t.Fatal(err)
		}
		d := b.pod(File, "kiro")
		for i, row := range []struct {
			mode  Mode
			saves int
		}{{File, 2}, {File, 0}, {ACP, 1}, {ACP, 0}} {
			d.cfg.Mode = row.mode
			ready(t, b.prepare(d))
			events := make([]byte, 64<<10)
			n, err := syscall.Read(watch, events)
			if err != nil && !errors.Is(err, syscall.EAGAIN) {
				t.Fatal(err)
			}
			if saves := bytes.Count(events[:max(n, 0)], []byte("delivery.json\x00")); saves != row.saves {
				t.Errorf("%d files, step %d: the record was written %d times, not %d", many, i, saves, row.saves)
			}
		}
	}
}

// A file that is changed between the look and the writing is written as it is then, and what was put into it is cut out of that.
func TestAFileThatChangesAfterTheLookIsRecordedAnew(t *testing.T) {
	b := newBed(t)
	b.write(".cursor/mcp.json", "{}")
	d := b.pod(File, "cursor")
	f, err := openFolder(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	jobs, _ := d.jobs(f, profileNamed("cursor"), File, ".", "")
	jobs[0].known = [][]written{nil}
	d.plan(f, jobs[0], "chosen")
	d.note(jobs)
	const theirs = "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n"
	b.write(".cursor/mcp.json", theirs)
	if err := d.write(t.Context(), f, jobs[0], "chosen"); err != nil {
		t.Fatal(err)
	}
	if text := b.read(".cursor/mcp.json"); !strings.Contains(text, facadeURL) || !strings.Contains(text, `"a": {}`) {
		t.Error(text)
	}
	if list := b.recorded(); len(list) != 2 || list[0].Inserted == list[1].Inserted {
		t.Errorf("%+v is recorded, not both ways to write it", list)
	}
	if err := d.record.settled(jobs[0].outcomes...); err != nil {
		t.Fatal(err)
	}
	if n := len(b.recorded()); n != 1 {
		t.Errorf("%d places are recorded", n)
	}
	ready(t, b.prepare(b.pod(ACP, "cursor")))
	b.wants(".cursor/mcp.json", theirs)
}

func TestAFileKeepsItsOwnerAndItsGroup(t *testing.T) {
	b := newBed(t)
	const text = `{"mcpServers":{}}`
	b.write(".cursor/mcp.json", text)
	name := filepath.Join(b.dir, ".cursor/mcp.json")
	uid, gids := os.Getuid(), []int{os.Getgid()}
	if more, err := os.Getgroups(); err == nil && len(more) > 0 {
		gids = more
	}
	gid := gids[len(gids)-1]
	if uid == 0 {
		uid, gid = 12345, 23456
	}
	if os.Chown(name, uid, gid) != nil { // not here: then they are this process's own
		uid, gid = os.Getuid(), os.Getgid()
	}
	is := func(mode os.FileMode) {
		t.Helper()
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(s.Uid) != uid || int(s.Gid) != gid || info.Mode().Perm() != mode {
			t.Errorf("%d:%d %v, not %d:%d %v", s.Uid, s.Gid, info.Mode(), uid, gid, mode)
		}
	}
	is(0o644)
	ready(t, b.prepare(b.pod(File, "cursor")))
	is(0o600)
	ready(t, b.prepare(b.pod(ACP, "cursor")))
	is(0o644)
	b.wants(".cursor/mcp.json", text)
}
