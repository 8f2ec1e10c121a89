package delivery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file that was looked at and is as it was is not read again; any change has it looked at, also one that leaves its size and its time.
func TestAFileThatWasLookedAtIsReadAgainWhenItIsTouched(t *testing.T) {
	const name, plain, granted = ".kiro/agents/one.json", `{"allowedTools":["@openab-reader-"]}`, `{"allowedTools":["@openab-browser"]}`
	for how, touch := range map[string]func(b *bed, full string){
		"written in place": func(b *bed, _ string) { b.write(name, granted) },
		"replaced": func(b *bed, full string) {
			b.write("new", granted)
			if err := os.Rename(filepath.Join(b.dir, "new"), full); err != nil {
				t.Fatal(err)
			}
		},
		"its time set back": func(b *bed, full string) {
			info, err := os.Stat(full)
			if err != nil {
				t.Fatal(err)
			}
			b.write(name, granted)
			if err := os.Chtimes(full, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		b := newBed(t)
		b.write(name, plain)
		d := b.pod(ACP, "kiro")
		later := time.Now().Add(time.Hour)
		d.seen.now = func() time.Time { return later }
		full := filepath.Join(b.dir, name)
		f, err := openFolder(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		ready(t, b.prepare(d))
		if !d.seen.has(f, name, hasNoServer) || !d.seen.has(f, name, hasNoGrant) {
			t.Errorf("%s: it would be read again", how)
		}
		b.tick(full)
		touch(b, full)
		if d.seen.has(f, name, hasNoServer) || d.seen.has(f, name, hasNoGrant) {
			t.Errorf("%s: it would not be read again", how)
		}
		ready(t, b.prepare(d))
		b.wants(name, `{"allowedTools":[]}`)
		b.write(name, strings.Replace(servers(leftEntry), "{\n", `{"allowedTools":["\u0040open\u0061b-browser"],`, 1))
		ready(t, b.prepare(d))
		if text := b.read(name); strings.Contains(text, "browser\"]") || strings.Contains(text, `"openab-browser":`) {
			t.Errorf("%s: %s", how, text)
		}
	}
}

// tick waits until the file system's clock has gone on since a file was touched.
func (b *bed) tick(full string) {
	b.t.Helper()
	info, err := os.Stat(full)
	if err != nil {
		b.t.Fatal(err)
	}
	then, _ := sightOf(info)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		b.write("clock", "")
		if info, err = os.Stat(filepath.Join(b.dir, "clock")); err != nil {
			b.t.Fatal(err)
		}
		if now, _ := sightOf(info); now.status != then.status && now.modified != then.modified {
			return
		}
	}
	b.t.Fatal("the file system has no clock")
}

// The clock of a file system may be too coarse for two changes: a file that was touched just now is read again.
func TestAFileOfThisMomentIsNotRemembered(t *testing.T) {
	b := newBed(t)
	b.write(".kiro/agents/one.json", `{}`)
	d := b.pod(ACP, "kiro")
	written := time.Now()
	d.seen.now = func() time.Time { return written }
	ready(t, b.prepare(d))
	if len(d.seen.files) != 0 {
		t.Error(d.seen.files)
	}
}
