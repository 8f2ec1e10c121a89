package pod

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/door"
)

func TestReadyFileIsWholeAndGoesAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	file := readyFile{path: path}
	if err := file.write(Addresses{Public: "127.0.0.1:1", Debug: "127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != `{"public":"127.0.0.1:1","facade":"","debug":"127.0.0.1:2"}`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	file.remove()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 0 {
		t.Errorf("something is left beside it: %v, %v", entries, err)
	}
	file.remove() // again
	if err := (&readyFile{path: filepath.Join(path, "nowhere")}).write(Addresses{}); err == nil {
		t.Error("a folder that does not exist was no error")
	}
	none := readyFile{}
	none.clear()
	if err := none.write(Addresses{}); err != nil {
		t.Error(err)
	}
	none.remove()
}

func TestReadyFileOfAnotherPodIsLeftToIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	former, latter := readyFile{path: path}, readyFile{path: path}
	if err := former.write(Addresses{Public: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if err := latter.write(Addresses{Public: "127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	former.remove()
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "127.0.0.1:2") {
		t.Errorf("a pod that drains took its successor's file: %q, %v", text, err)
	}
	unwritten := readyFile{path: path}
	unwritten.remove()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a pod that never was ready took the file: %v", err)
	}
	unwritten.clear()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a stale file outlived the start: %v", err)
	}
}

// What the resolver makes of a name is known only once it is bound.
func TestABoundAddressBeyondLoopbackNeedsAKey(t *testing.T) {
	open := func(addr string) *door.Socket {
		socket, err := openSocket(addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = socket.Close() })
		return socket
	}
	inside, outside := open("127.0.0.1:0"), open("0.0.0.0:0")
	keyless, keyed := &config.Loaded{}, &config.Loaded{Secrets: config.Secrets{ACP: []config.NamedKey{{Key: "k"}}, Debug: "k"}}
	for name, c := range map[string]struct {
		loaded  *config.Loaded
		sockets sockets
		says    string
	}{
		"inside":             {keyless, sockets{public: inside, debug: inside}, ""},
		"debug off":          {keyless, sockets{public: inside}, ""},
		"public outside":     {keyless, sockets{public: outside}, "acp.listen"},
		"debug outside":      {keyless, sockets{public: inside, debug: outside}, "debug.listen"},
		"outside with a key": {keyed, sockets{public: outside, debug: outside}, ""},
	} {
		err := boundDoorsHaveKeys(c.loaded, &c.sockets)
		if (err == nil) != (c.says == "") || err != nil && (!strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSocketsAreOpenedAllOrNone(t *testing.T) {
	c := config.Default()
	c.ACP.Listen, c.MCP.Listen, c.Debug.Listen = "127.0.0.1:0", "127.0.0.1:0", ""
	s, err := openSockets(&c, false)
	if err != nil {
		t.Fatal(err)
	}
	at := s.addresses()
	if at.Public == "" || at.Facade == "" || at.Debug != "" || strings.HasSuffix(at.Public, ":0") {
		t.Errorf("%+v", at)
	}
	s.close()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c.ACP.Listen, c.Debug.Listen = at.Public, taken.Addr().String()
	if s, err = openSockets(&c, false); err == nil {
		s.close()
		t.Fatal("a taken port was no error")
	}
	if text := err.Error(); !strings.HasPrefix(text, "debug.listen: ") || !strings.Contains(text, "another process has it") || strings.Contains(text, "\n") {
		t.Errorf("%v", err)
	}
	again, err := net.Listen("tcp", at.Public)
	if err != nil {
		t.Fatalf("the first socket was left open: %v", err)
	}
	_ = again.Close()
}
