package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var wholeStored = []cmp.Option{cmp.AllowUnexported(stored{}), cmpopts.EquateEmpty()}

// FuzzDecode: whatever is in a file, it is refused, or it is a record that is written as it was read.
func FuzzDecode(f *testing.F) {
	whole, err := encode(stored{durable(1), 7, "pod"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte(`"v":1`), []byte(`"v":2,"more":[]`), 1))
	f.Add([]byte(`{"v":1,"id":"a","generation":1,"cwd":"","created":"2027-01-15T08:00:00Z","updated":"2027-01-15T08:00:00Z"}`))
	f.Add([]byte(`{"v":1,"v":1}`))
	f.Add([]byte("null"))
	f.Add(bytes.Repeat([]byte{0}, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(r)
		if err != nil {
			return // longer than it was, or a time that cannot be written
		}
		if back, err := decode(again); err != nil || !cmp.Equal(r, back, wholeStored...) {
			t.Errorf("%v\n%s", err, cmp.Diff(r, back, wholeStored...))
		}
	})
}

func TestWhatCannotBeReadIsSetAsideAndTheRestIsThere(t *testing.T) {
	good, err := encode(stored{durable(1), 1, ""})
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for what, damaged := range map[string]string{
		"empty": "", "zeros": strings.Repeat("\x00", 4096), "cut": text[:len(text)/2], "two records": text + text, "another record": strings.Replace(text, id(1), id(3), 1),
		"a member that nobody knows": strings.Replace(text, `"cwd"`, `"x":1,"cwd"`, 1), "a member twice": strings.Replace(text, `"cwd"`, `"cwd":"/a","cwd"`, 1),
		"no generation": strings.Replace(text, `"generation":1`, `"generation":0`, 1), "a short hash": strings.Replace(text, `"client_sha256":"01`, `"client_sha256":"`, 1),
		"no version": strings.Replace(text, `"v":1`, `"v":0`, 1), "too long": text + strings.Repeat(" ", 1<<20), "no UTF-8": strings.Replace(text, "laptop", "l\xffptop", 1),
	} {
		t.Run(what, func(t *testing.T) {
			if damaged == text {
				t.Fatal("it is not damaged")
			}
			dir, log := t.TempDir(), &note{}
			s := open(t, dir, Options{Log: log.logger()})
			idle(t, s, durable(1))
			idle(t, s, durable(2))
			path := s.path(nameOf(id(1)))
			write(t, path, damaged)
			// The pod that runs finds it when it is asked for …
			if _, _, err := s.Take(t.Context(), id(1)); err == nil || err.Error() != "no such session" {
				t.Errorf("%v", err)
			}
			judge := func(s *Files) {
				t.Helper()
				kept := inFolder(t, dir, "*"+aside+"*")
				if len(kept) != 1 {
					t.Fatalf("set aside: %q", kept)
				}
				if b, err := os.ReadFile(kept[0]); err != nil || string(b) != damaged {
					t.Errorf("it was changed: %v", err)
				}
				if got := listed(t, s, "laptop", anna); got != "2" {
					t.Errorf("%q", got)
				}
				if f := s.Figures(); f.Aside != 1 || f.Records != 1 || strings.Count(log.String(), "level=ERROR") != 1 || strings.Contains(log.String(), id(1)) {
					t.Errorf("%+v\n%s", f, log)
				}
				if err := os.Remove(kept[0]); err != nil {
					t.Fatal(err)
				}
			}
			judge(s)
			// … and one that starts when it starts.
			write(t, path, damaged)
			log = &note{}
			judge(open(t, dir, Options{Log: log.logger()}))
		})
	}
}

func TestARecordOfANewerAcpodComesBackWithIt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	idle(t, s, durable(1))
	path := s.path(nameOf(id(1)))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(whole), `"v":1`, `"v":2,"more":{}`, 1))
	log := &note{}
	s = open(t, dir, Options{Log: log.logger()})
	if f := s.Figures(); f.Records != 0 || f.Aside != 1 || strings.Count(log.String(), "newer acpod") != 1 {
		t.Errorf("%+v\n%s", f, log)
	}
	kept := inFolder(t, dir, "*"+newerSuffix)
	if len(kept) != 1 {
		t.Fatalf("%q", kept)
	}
	write(t, kept[0], string(whole)) // as the newer one reads it
	s = open(t, dir, Options{})
	if d, _ := take(t, s, 1); cmp.Diff(durable(1), d) != "" {
		t.Errorf("%+v", d)
	}
}

func TestWhatIsNoFileStopsNobody(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	idle(t, s, durable(2))
	for n, plant := range map[int]func(path string) error{
		3: func(path string) error { return os.Mkdir(path, 0o700) },
		4: func(path string) error { return os.Symlink("/etc/passwd", path) },
		5: mkfifo,
	} {
		if err := plant(s.path(nameOf(id(n)))); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, folderName, "notes.txt"), "of the operator")
	s = open(t, dir, Options{})
	if f := s.Figures(); f.Aside != 3 || f.Records != 1 {
		t.Errorf("%+v", f)
	}
	if len(inFolder(t, dir, "notes.txt")) != 1 {
		t.Error("what is not ours was touched")
	}
	take(t, s, 2)
}

func TestARecordThatIsDamagedUnderItsHolderIsWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	l := create(t, s, durable(1))
	write(t, s.path(nameOf(id(1))), "damaged")
	if err := s.Put(t.Context(), l, durable(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.path(nameOf(id(1)))); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), l, durable(1)); err != nil {
		t.Fatal(err)
	}
	if d, _ := take(t, s, 1); cmp.Diff(durable(1), d) != "" || len(inFolder(t, dir, "*"+aside+"*")) != 1 {
		t.Errorf("%+v", d)
	}
}

func TestARecordThatCannotBeWrittenDownIsRefused(t *testing.T) {
	each := durable(1)
	each.Cwd = "/a\xffb"
	if _, err := encode(stored{each, 1, ""}); err == nil {
		t.Error("what is no UTF-8 is written")
	}
	if _, err := decode([]byte(`{"v":9}`)); !errors.Is(err, errNewer) {
		t.Errorf("%v", err)
	}
}

// A member that is added to a record is written, too: the tests here compare what has all of them.
func TestTheRecordOfTheTestsHasEveryMember(t *testing.T) {
	for field, v := range reflect.ValueOf(durable(1)).Fields() {
		if v.IsZero() {
			t.Errorf("%s is not in what is compared", field.Name)
		}
	}
}
