package bridge

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// stale leaves a socket that nobody serves, as a process that was killed does.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestTheSocketIsItsUsersAloneAndGoneWithItsPod(t *testing.T) {
	dir := filepath.Join(folder(t), "new", "er")
	path := filepath.Join(dir, "s")
	s, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if mode(t, path) != 0o600 || mode(t, dir) != 0o700 || mode(t, filepath.Dir(dir)) != 0o700 {
		t.Errorf("%o in %o", mode(t, path), mode(t, dir))
	}
	if _, err := Open(path, false); !errors.Is(err, ErrInUse) {
		t.Errorf("the socket of a living pod was taken: %v", err)
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the living pod lost its socket: %v", err)
	} else {
		_ = conn.Close()
	}
	_ = s.Close()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestAStaleSocketIsReplacedAndOneThatWasReplacedIsNotRemoved(t *testing.T) {
	path := filepath.Join(folder(t), "s")
	stale(t, path)
	first, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil { // somebody tidies up
		t.Fatal(err)
	}
	second, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the end of the first removed the second's: %v", err)
	} else {
		_ = conn.Close()
	}
	_ = second.Close()
}

func TestOfPodsThatStartAtOnceOneGetsTheSocket(t *testing.T) {
	path := filepath.Join(folder(t), "s")
	stale(t, path)
	var pods sync.WaitGroup
	got := make(chan *Socket, 8)
	for range cap(got) {
		pods.Go(func() {
			s, err := Open(path, false)
			if err != nil && !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
			got <- s
		})
	}
	pods.Wait()
	close(got)
	n := 0
	for s := range got {
		if s != nil {
			n++
			t.Cleanup(func() { _ = s.Close() })
		}
	}
	if n != 1 {
		t.Errorf("%d pods have the socket", n)
	}
}

func TestAFolderIsMadePrivateOnlyWhereItIsTheSocketsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		mode  os.FileMode
		own   bool
		other bool // it holds something else
		want  os.FileMode
		bad   string
	}{
		"empty":                             {0o755, false, false, 0o700, ""},
		"OpenAB's own":                      {0o755, true, true, 0o700, ""},
		"another's, readable":               {0o755, false, true, 0o755, ""},
		"another's, private":                {0o700, false, true, 0o700, ""},
		"another's, writable by the group":  {0o775, false, true, 0o775, "chmod go-w"},
		"another's, writable by everybody":  {0o777, false, true, 0o777, "chmod go-w"},
		"OpenAB's own, writable by a group": {0o770, true, true, 0o700, ""},
	} {
		dir := filepath.Join(folder(t), "d")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.other {
			if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		stale(t, filepath.Join(dir, "s"))
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		s, err := Open(filepath.Join(dir, "s"), c.own)
		if (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			_ = s.Close()
		}
		if got := mode(t, dir); got != c.want {
			t.Errorf("%s: the folder has %o", name, got)
		}
	}
}

func TestWhatIsNoSocketOrNoPathForOneIsLeftAndSaid(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a file":            {file, "no socket and is left"},
		"below a file":      {filepath.Join(file, "s"), "not a directory"},
		"a folder":          {filepath.Join(dir, "sub"), "no socket and is left"},
		"too long":          {filepath.Join(dir, strings.Repeat("x", 120)), "at most 107"},
		"relative":          {"browser.sock", "not absolute"},
		"one that none may": {"/proc/s", "/proc"},
	} {
		s, err := Open(c.path, false)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "agent.bridge_socket") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			_ = s.Close()
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
}
