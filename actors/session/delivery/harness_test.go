package delivery

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	facadeURL = "http://127.0.0.1:8848/mcp"
	leftProxy = `{"url":"http://127.0.0.1:4711/mcp","headers":{"Authorization":"Bearer 2f1c7a52-9a5e-4b0f-8c7e-0d6f0c4b7a11"}}`
	leftEntry = `{"command":"openab","args":["browser-bridge"]}`
)

// bed is a workdir and a state folder, and pods over them.
type bed struct {
	t          *testing.T
	dir, state string
	log        lockedLog
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newBed(t *testing.T) *bed {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &bed{t: t, dir: dir, state: t.TempDir()}
}

// pod is a deliverer of a pod that is gone when the next one comes.
func (b *bed) pod(mode Mode, profile string, set ...func(*Config)) *Deliverer {
	cfg := Config{Mode: mode, Profile: profile, Workdir: b.dir, State: b.state, FacadeURL: facadeURL,
		Bridge: BridgeCommand{Program: "/opt/acpod", Socket: "/run/acpod.sock"}, Log: slog.New(slog.NewTextHandler(&b.log, nil))}
	for _, s := range set {
		s(&cfg)
	}
	d := New(cfg)
	d.pod.PID = -1 - len(b.log.String()) // a process that no longer lives, as far as the next one can see
	return d
}

func (b *bed) prepare(d *Deliverer, ask ...func(*Ask)) Prepared {
	b.t.Helper()
	a := Ask{Cwd: b.dir}
	for _, s := range ask {
		s(&a)
	}
	return d.Prepare(b.t.Context(), a)
}

func (b *bed) write(name, text string) {
	b.t.Helper()
	full := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// read gives the text of a file; "absent" when there is none.
func (b *bed) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if os.IsNotExist(err) {
		return "absent"
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bed) wants(name, text string) {
	b.t.Helper()
	if got := b.read(name); got != text {
		b.t.Errorf("%s is\n%s\nnot\n%s", name, got, text)
	}
}

// files lists what is below the workdir.
func (b *bed) files() (list []string) {
	b.t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, err error) error {
		if path != b.dir {
			list = append(list, strings.TrimPrefix(path, b.dir+"/"))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func ready(t *testing.T, p Prepared) {
	t.Helper()
	if p.State != Ready {
		t.Errorf("%+v", p)
	}
}
