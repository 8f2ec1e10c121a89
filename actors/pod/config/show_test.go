package config

import (
	"bytes"
	"encoding/json/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShownConfigurationReadsBack(t *testing.T) {
	loaded, err := load(t, "[acp]\nallowed_origins = [\"https://a.example\"]\n[mcp]\n[[mcp.acp_servers]]\nname = \"a\"\ntools = [\"*\"]\n[agent]\ncommand = [\"x \\\"y\\\\\", \"\\u001b[31m\\n\"]\n[[agent.permission]]\nserver = \"a\"\ntool = \"b\"\ndecision = \"deny\"\n")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := loaded.WriteTOML(&text); err != nil {
		t.Fatal(err)
	}
	again, err := LoadBytes("shown.toml", text.Bytes(), Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, &text)
	}
	if diff := cmp.Diff(loaded.Config, again.Config); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	for _, want := range []string{"keepalive = \"20s\"  # default\n", "allowed_origins = [\"https://a.example\"]  # acpod.toml:2\n", "session_ttl = \"4h\"  # default"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	loaded, err := load(t, "[acp]\nauth_key = \"hush-1\"\n[[acp.keys]]\nname = \"a\"\nkey = \"hush-2\"\n[agent]\nenv = { TOKEN = \"hush-3\" }\n[debug]\nauth_key = \"hush-4\"\n")
	if err != nil {
		t.Fatal(err)
	}
	var text, list bytes.Buffer
	if err := loaded.WriteTOML(&text); err != nil {
		t.Fatal(err)
	}
	if err := loaded.WriteJSON(&list); err != nil {
		t.Fatal(err)
	}
	if all := text.String() + list.String(); strings.Contains(all, "hush") || strings.Count(all, mask) != 8 {
		t.Errorf("a secret is shown, or one is not masked:\n%s", all)
	}
	for _, bad := range []string{"[acp]\nauth_key = \"hush\\u0007\"\n", "[agent]\nenv = { \"TO=KEN\" = \"hush\" }\n", "[agent]\nenv = { T = \"hush\\u0000\" }\n"} {
		if _, err := load(t, bad); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestShownListHasKeyValueAndOrigin(t *testing.T) {
	loaded, err := LoadBytes("", nil, Options{Environ: []string{"ACPOD_LIMITS__FRAME_BYTES=1MiB"}})
	if err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if err := loaded.WriteJSON(&list); err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	if err := json.Unmarshal(list.Bytes(), &entries, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	byKey := map[string]Entry{}
	for _, e := range entries {
		byKey[e.Key] = e
	}
	if e := byKey["limits.frame_bytes"]; e.Value != "1MiB" || e.Origin != "env ACPOD_LIMITS__FRAME_BYTES" {
		t.Errorf("%+v", e)
	}
	if e := byKey["acp.playground"]; e.Value != true || e.Origin != "default" {
		t.Errorf("%+v", e)
	}
	if _, ok := byKey["mcp.tunnel_timeout_seconds"]; ok {
		t.Error("a former name is shown")
	}
}

func TestShownTableSaysWhoSetItsNames(t *testing.T) {
	for want, c := range map[string]Options{
		"default":                               {},
		"acpod.toml:2":                          {File: "[agent]\nenv = { A = \"1\" }\n"},
		"env ACPOD_AGENT__ENV__B":               {Environ: []string{"ACPOD_AGENT__ENV__B=2"}},
		"acpod.toml:2, env ACPOD_AGENT__ENV__B": {File: "[agent]\nenv = { A = \"1\" }\n", Environ: []string{"ACPOD_AGENT__ENV__B=2"}},
	} {
		loaded, err := load(t, c.File, c.Environ...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range loaded.Entries() {
			if e.Key == "agent.env" && e.Origin != want {
				t.Errorf("%q, want %q", e.Origin, want)
			}
		}
		var text bytes.Buffer
		if err := loaded.WriteTOML(&text); err != nil || !strings.Contains(text.String(), "# "+want+"\n") {
			t.Errorf("%v: %s", err, &text)
		}
	}
}

func FuzzLoaderAnswersEveryText(f *testing.F) {
	for _, text := range []string{
		"", "[acp]\nlisten = \"127.0.0.1:0\"\n", "[[mcp.acp_servers]]\nname = \"a\"\ntools = [\"*\"]\n", "acp = 1", "[a.b]\n[[a.b.c]]\n", "[limits]\nframe_bytes = \"${env:X}\"",
		"[agent]\nenv = { a = \"b\", \"c.d\" = \"e\" }", "[[acp.keys]]\nname = \"x\"\nkey = \"y\"", "mcp.acp_servers = [{name = \"a\", tools = []}, {}]", "[acp]\nkeepalive = 1979-05-27", "x = [[[[{a=[{}]}]]]]", "[agent.permission]\n[[agent.permission]]",
	} {
		f.Add([]byte(text), "ACPOD_ACP__KEEPALIVE", "1s")
	}
	f.Add([]byte("[mcp]"), "ACPOD_AGENT__ENV__", "1s")
	f.Add([]byte("[mcp]"), "ACPOD_AGENT__ENV__A__B", "")
	f.Add([]byte("[mcp]"), "ACPOD___", "x")
	f.Fuzz(func(t *testing.T, text []byte, name, value string) {
		loaded, err := LoadBytes("fuzz.toml", text, Options{Environ: []string{name + "=" + value}})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Errorf("an error of more than one line: %q", err)
			}
			return
		}
		var shown bytes.Buffer
		if err := loaded.WriteTOML(&shown); err != nil {
			t.Error(err)
		}
		if len(loaded.Secrets.ACP) > 0 || len(loaded.Agent.Env) > 0 {
			return // what is masked does not read back
		}
		if _, err := LoadBytes("shown.toml", shown.Bytes(), Options{}); err != nil {
			t.Errorf("what was shown does not read back: %v\n%s", err, &shown)
		}
	})
}
