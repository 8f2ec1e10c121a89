package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const exampleFile = "../../../docs/acpod.example.toml"

func TestExampleFileStatesEveryDefault(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadBytes("acpod.example.toml", text, Options{})
	if err != nil {
		t.Fatalf("the documented configuration must load: %v", err)
	}
	if diff := cmp.Diff(Default(), loaded.Config); diff != "" {
		t.Errorf("a documented default is not the built-in one (-built-in +documented):\n%s", diff)
	}
	loaded.walk(func(path string, _ *key, _ any) {
		if origin := loaded.Origin(path); origin.Layer != FromFile && path != "acp.keys" && path != "agent.permission" {
			t.Errorf("%s is not in the example: its value would change unseen", path)
		}
	})
}

// What is only shown in a comment has to be right as well.
func TestExampleFileLoadsWithItsCommentsTurnedOn(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	on := regexp.MustCompile(`(?m)^# (\[\[.*\]\]|[a-z_]+ = .*)$`).ReplaceAllString(string(text), "$1")
	keyFile := t.TempDir() + "/laptop.key"
	if err := os.WriteFile(keyFile, []byte("its key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	on = strings.ReplaceAll(on, "/etc/acpod/laptop.key", keyFile)
	loaded, err := LoadBytes("example", []byte(on), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Secrets.ACP) != 1 || loaded.Secrets.ACP[0] != (NamedKey{"laptop", "its key"}) {
		t.Errorf("keys: %v", loaded.Secrets.ACP)
	}
	if len(loaded.Agent.Permission) != 1 {
		t.Errorf("permission rules: %v", loaded.Agent.Permission)
	}
}
