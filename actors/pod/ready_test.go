package pod

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/pod/config"
)

func TestReadyFileIsWholeAndGoesAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	if err := writeReady(path, Addresses{Public: "127.0.0.1:1", Debug: "127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != `{"public":"127.0.0.1:1","facade":"","debug":"127.0.0.1:2"}`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	removeReady(path)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 0 {
		t.Errorf("something is left beside it: %v, %v", entries, err)
	}
	removeReady(path) // again, or never written
	if err := writeReady(filepath.Join(path, "nowhere"), Addresses{}); err == nil {
		t.Error("a folder that does not exist was no error")
	}
	if err := writeReady("", Addresses{}); err != nil {
		t.Error(err)
	}
}

func TestSocketsAreOpenedAllOrNone(t *testing.T) {
	c := config.Default()
	c.ACP.Listen, c.MCP.Listen, c.Debug.Listen = "127.0.0.1:0", "127.0.0.1:0", ""
	s, err := openSockets(&c)
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
	if s, err = openSockets(&c); err == nil {
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
