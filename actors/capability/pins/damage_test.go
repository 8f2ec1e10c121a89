package pins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
)

func (b *bench) aside() []string {
	b.t.Helper()
	found, err := filepath.Glob(b.path() + ".damaged-*")
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func TestADamagedFileApprovesNothing(t *testing.T) {
	good := newBench(t)
	p := good.pins()
	seen(p, files, "read=a", "write=a")
	good.sync(p)
	text := good.file()
	lines := strings.SplitAfter(text, "\n") // the header, two tools, and nothing
	for name, damaged := range map[string]string{
		"empty": "", "no header": lines[1] + lines[2], "zeros": strings.Repeat("\x00", 4096), "a line of another": lines[0] + `{"op":"else","at":"2027-01-15T08:00:00Z"}` + "\n" + lines[1],
		"a member that nobody knows": lines[0] + strings.Replace(lines[1], `"op"`, `"x":1,"op"`, 1), "a digest cut short": lines[0] + strings.Replace(lines[2], `"input_schema":"`, `"input_schema":"A`, 1) + lines[1],
		"two lines in one": lines[0] + strings.TrimSuffix(lines[2], "\n") + lines[2] + lines[1], "a line too long": lines[0] + strings.Repeat("x", 3*lineBytes) + "\n" + lines[1], "a cut header": lines[0][:5],
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write(damaged)
			p := b.pins()
			whole := strings.Contains(damaged, lines[1]) && !strings.HasPrefix(damaged, lines[1])
			want := "read: " + capability.PinUnreadable + "; write: " + capability.PinUnreadable
			if whole {
				want = "read: description; write: " + capability.PinUnreadable
			}
			if got := seen(p, files, "read=other", "write=a"); got != want {
				t.Errorf("a tool that changed, and one without a readable pin: %q, want %q", got, want)
			}
			if got := seen(p, files, "read=a"); whole && got != "" {
				t.Errorf("what could be read is not in force: %q", got)
			}
			kept := b.aside()
			if len(kept) != 1 {
				t.Fatalf("moved aside: %q", kept)
			}
			if text, err := os.ReadFile(kept[0]); err != nil || string(text) != damaged {
				t.Errorf("what was moved aside is not what was there: %v", err)
			}
			if !b.log.has("level=ERROR") {
				t.Error("nobody was told")
			}
			b.sync(p)
			p = b.pins() // the doubt outlives the pod
			if got := seen(p, files, "new=a"); got != "new: "+capability.PinUnreadable {
				t.Errorf("after a restart: %q", got)
			}
			if len(b.aside()) != 1 || !b.list().Unreadable {
				t.Errorf("the file that was written is damaged, too, or does not say so: %q", b.aside())
			}
			b.sync(p)
			if _, err := Accept(b.dir, Choice{Server: "files", Tool: "write"}); err != nil {
				t.Fatal(err)
			}
			b.sync(p)
			if got := seen(p, files, "write=a", "new=a"); got != "new: "+capability.PinUnreadable {
				t.Errorf("after one was accepted: %q", got)
			}
			if got := seen(p, files, "write=b"); got != "write: description" {
				t.Errorf("what was accepted is not pinned: %q", got)
			}
			if err := Trust(b.dir); err != nil {
				t.Fatal(err)
			}
			b.sync(p)
			if got := seen(p, files, "write=a", "new=a", "newer=a"); got != "" {
				t.Errorf("after the operator said that all is well: %q", got)
			}
			if got := seen(p, files, "new=b"); got != "new: description" {
				t.Errorf("what was trusted is not pinned: %q", got)
			}
			if err := Trust(b.dir); err == nil {
				t.Error("there is nothing left to trust")
			}
		})
	}
}

func TestALineThatWasCutByACrashIsNoDamage(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, "read=a", "write=a")
	b.sync(p)
	text := b.file()
	b.write(text[:len(text)-7])
	p = b.pins()
	if len(b.aside()) != 0 {
		t.Fatal("it was moved aside")
	}
	if got := seen(p, files, "read=b", "write=b"); got != "read: description" {
		t.Errorf("%q", got)
	}
	b.sync(p)
	if got := seen(b.pins(), files, "read=a", "write=c"); got != "write: description" || len(b.aside()) != 0 {
		t.Errorf("after it was written on: %q, %q", got, b.aside())
	}
	text = b.file()
	b.write(text[:len(text)-7])
	if _, err := Forget(b.dir, Choice{Server: "files", Tool: "read"}); err != nil {
		t.Fatal(err)
	}
	if b.pins(); len(b.aside()) != 0 {
		t.Errorf("the operator wrote behind a cut line: %s", b.file())
	}
}

func TestAFileThatCannotBeOpenedIsMovedAside(t *testing.T) {
	b := newBench(t)
	if err := os.Mkdir(b.path(), 0o700); err != nil { // what stands there is not even a file
		t.Fatal(err)
	}
	p := b.pins()
	if got := seen(p, files, "read=a"); got != "read: "+capability.PinUnreadable || len(b.aside()) != 1 {
		t.Errorf("%q, %q", got, b.aside())
	}
}

func TestAFileOfANewerProgramStopsTheStartAndStays(t *testing.T) {
	b := newBench(t)
	const newer = `{"pins":2}` + "\n" + `{"anything":1}` + "\n"
	b.write(newer)
	if _, err := New(b.config()); err == nil || !strings.Contains(err.Error(), "newer") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if b.file() != newer || len(b.aside()) != 0 {
		t.Error("it was touched")
	}
	if _, err := List(b.dir); err == nil {
		t.Error("it is listed")
	}
}

func TestAFileThatIsDamagedWhileThePodRunsIsNoticed(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, "read=a")
	b.sync(p)
	b.write(b.file() + "garbage\n")
	if _, err := List(b.dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a listing of it: %v", err)
	}
	b.sync(p)
	if got := seen(p, files, "read=b", "new=a"); got != "read: description; new: "+capability.PinUnreadable || len(b.aside()) != 1 {
		t.Errorf("%q, %q", got, b.aside())
	}
}

// The file system may give a new file all that it knew the old one by.
func TestAFileThatWasWrittenAnewIsReadAnewWhateverTheFileSystemCallsIt(t *testing.T) {
	b, other := newBench(t), newBench(t)
	p := b.pins()
	seen(p, files, "read=a")
	b.sync(p)
	q := other.pins()
	seen(q, files, "read=b", "write=b", "more=b")
	other.sync(q)
	b.write(other.file()) // in its place, and longer
	b.sync(p)
	if got := seen(p, files, "read=b", "write=c", "more=c"); got != "write: description; more: description" || len(b.aside()) != 0 {
		t.Errorf("%q, %q", got, b.aside())
	}
}

func TestAFileThatIsTakenAwayIsWrittenAnew(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, "read=a")
	b.sync(p)
	if err := os.Remove(b.path()); err != nil {
		t.Fatal(err)
	}
	b.sync(p)
	b.sync(p)
	if got := seen(b.pins(), files, "read=b"); got != "read: description" {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	seen(p, files, "read=a")
	p.file.dir = filepath.Join(b.dir, "gone")
	if err := p.sync(t.Context(), false); err == nil {
		t.Fatal("a folder that is not there takes a file")
	}
	if got := seen(p, files, "read=b"); got != "read: description" {
		t.Errorf("meanwhile: %q", got)
	}
	p.file.dir = b.dir
	b.sync(p)
	if got := seen(b.pins(), files, "read=b"); got != "read: description" {
		t.Errorf("later: %q", got)
	}
}

func FuzzFile(f *testing.F) {
	b := &bench{t: &testing.T{}, dir: f.TempDir(), log: &log{}}
	p := b.pins()
	seen(p, files, "read=a", "write=a")
	seen(p, anna, "click=a")
	seen(p, anna, "click=b")
	if err := p.sync(f.Context(), true); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(b.path())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"pins":1,"id":"x"}` + "\n" + `{"op":"doubt","at":"2027-01-15T08:00:00Z"}` + "\n" + `{"op":"drop","at":"2027-01-15T08:00:00Z","scope":"a"}` + "\n"))
	f.Add([]byte(`{"pins":1,"id":"x"}` + "\n" + `{"op":"trust","at":"2027-01-15T08:00:00Z"}` + "\n" + `{"op":"used","at":"2027-01-15T08:00:00Z","scope":"a"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := newBench(t)
		b.write(string(text))
		p, err := New(b.config())
		if err != nil {
			if !strings.Contains(err.Error(), "newer") {
				t.Fatal(err)
			}
			return
		}
		// Whatever stood there: what is written of it is whole, and says the same.
		if err := p.file.rewriteNow(); err != nil {
			t.Fatal(err)
		}
		before, again := len(b.aside()), b.pins()
		if len(b.aside()) != before {
			t.Fatalf("what was written of %q is damaged: %s", text, b.file())
		}
		if a, b := p.figures(false), again.figures(false); a != b {
			t.Fatalf("%q: %+v, and read again %+v", text, a, b)
		}
	})
}
