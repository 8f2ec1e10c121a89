package store

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session"
)

var (
	start = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	anna  = [32]byte{1}
	bert  = [32]byte{2}
)

func id(n int) string { return fmt.Sprintf("sess_%08x-0000-4000-8000-000000000000", n) }

// durable is a record with something in each of its members.
func durable(n int) session.Durable {
	return session.Durable{
		ID: id(n), Key: "laptop", Client: anna, Agent: "agent-" + fmt.Sprint(n), Cwd: "/work/ä \"<&\u2028", Additional: []string{"/work/b"}, Servers: []string{"katashiro", "x"},
		Pins: []byte(`{"a":1,"a":"\ud800"}`), LastTurn: []byte(`{ "stopReason":"end_turn"}`), Missed: 3, MissedB: 1 << 40, Created: start, Updated: start.Add(time.Duration(n) * time.Second),
	}
}

// note collects what a store logs.
type note struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *note) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *note) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func (n *note) logger() *slog.Logger { return slog.New(slog.NewTextHandler(n, nil)) }

func open(t *testing.T, dir string, opts Options) *Files {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func create(t *testing.T, s session.Store, d session.Durable) session.Lease {
	t.Helper()
	l, err := s.Create(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// idle puts a record there that nobody holds.
func idle(t *testing.T, s session.Store, d session.Durable) {
	t.Helper()
	if err := s.Release(t.Context(), create(t, s, d), d); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, s session.Store, n int) (session.Durable, session.Lease) {
	t.Helper()
	d, l, err := s.Take(t.Context(), id(n))
	if err != nil {
		t.Fatal(err)
	}
	return d, l
}

// listed are the numbers of the records that a client is shown.
func listed(t *testing.T, s session.Store, key string, client [32]byte) string {
	t.Helper()
	list, err := s.List(t.Context(), key, client, 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range list {
		ids = append(ids, cmp.Or(strings.TrimLeft(d.ID[len("sess_"):len("sess_")+8], "0"), "0"))
	}
	return strings.Join(ids, " ")
}

// inFolder are the names in the folder of sessions that match.
func inFolder(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, folderName, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
