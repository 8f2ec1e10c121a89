package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// auditRecord is one record of mcp.audit as JSON.
type auditRecord struct {
	Msg, Event, Provider, Tool, Session, Outcome string
	ArgsSHA                                      string `json:"args_sha256"`
	IsError                                      *bool  `json:"is_error"`
	DurationMS                                   *int64 `json:"duration_ms"`
	Bytes                                        *int64
}

// audited picks the records of mcp.audit out of lines of JSON.
func audited(t *testing.T, text string) (found []auditRecord) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("not JSON: %q", line)
		}
		if r.Msg == "mcp.audit" {
			found = append(found, r)
		}
	}
	return found
}

func sum(text string) string {
	sha := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sha[:])
}

// Every call leaves its records whatever the level of the log: what was asked, by whom, of whom, and how it ended.
func TestEveryCallIsAuditedWhateverTheLevelOfTheLog(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig, arguments("--log-level", "error", "--log-format", "json"))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click", "katashiro.secret")
	server.run = func(_ string, arguments json.RawMessage) (any, *rpcError, bool) {
		if strings.Contains(string(arguments), "fail") {
			return object{"content": []any{object{"type": "text", "text": "no"}}, "isError": true}, nil, false
		}
		return textResult("done"), nil, false
	}
	session := e.open(server)
	tag := "#" + strings.TrimPrefix(treeName(session), "sess-")
	caller := p.callerOf(session)
	odd := `{ "b" : 1.50, "a":"é\u0041" }`
	for _, row := range []struct {
		caller                    agentClient
		name, arguments           string
		events                    []string
		provider, tool, sha, says string
		isError                   bool
	}{
		{caller, "katashiro.click", "", []string{"call", "exit"}, "openab-browser", "katashiro.click", sum("{}"), "ok", false},
		{caller, "katashiro.click", "{}", []string{"call", "exit"}, "openab-browser", "katashiro.click", sum("{}"), "ok", false},
		{caller, "katashiro.click", odd, []string{"call", "exit"}, "openab-browser", "katashiro.click", sum(odd), "ok", false},
		{caller, "katashiro.click", `{"fail":1}`, []string{"call", "exit"}, "openab-browser", "katashiro.click", sum(`{"fail":1}`), "", true},
		{caller, "katashiro.secret", "{}", []string{"refused"}, "", "katashiro.secret", sum("{}"), "tool_not_granted", true},
		{caller, "nobody.knows", "{}", []string{"refused"}, "", "nobody.knows", sum("{}"), "", true},
		{anonymous(t, p), "katashiro.click", "{}", []string{"refused"}, "", "katashiro.click", sum("{}"), "unknown", true},
	} {
		before := len(audited(t, p.log.String()))
		row.caller.execute(row.name, row.arguments)
		var records []auditRecord
		p.await("the records of "+row.name, func() bool {
			records = audited(t, p.log.String())[before:]
			return len(records) >= len(row.events)
		})
		var events []string
		for _, r := range records {
			events = append(events, r.Event)
			want := tag
			if row.caller.token == "" {
				want = "-"
			}
			if r.Session != want || r.Tool != row.tool || row.provider != "" && r.Provider != row.provider || r.ArgsSHA != row.sha {
				t.Errorf("%s %s: %+v", row.name, row.arguments, r)
			}
			switch r.Event {
			case "call":
				if r.IsError != nil || r.DurationMS != nil || r.Bytes != nil || r.Outcome != "" {
					t.Errorf("%s %s: a call has an end: %+v", row.name, row.arguments, r)
				}
			case "exit":
				if r.Bytes == nil || *r.Bytes <= 0 {
					t.Errorf("%s %s: an exit without bytes: %+v", row.name, row.arguments, r)
				}
				fallthrough
			default:
				if r.IsError == nil || *r.IsError != row.isError || r.DurationMS == nil || *r.DurationMS < 0 || r.Outcome == "" || row.says != "" && r.Outcome != row.says {
					t.Errorf("%s %s: %+v", row.name, row.arguments, r)
				}
			}
		}
		if !slices.Equal(events, row.events) {
			t.Errorf("%s %s left %v, not %v", row.name, row.arguments, events, row.events)
		}
	}
	if sum("{}")[:16] != "44136fa355b3678a" {
		t.Error("the hash of {} is another")
	}
	for line := range strings.Lines(p.log.String()) {
		if !strings.Contains(line, `"msg":"mcp.audit"`) && !strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("at level error the log says %s", line)
		}
	}
}

// A file of records is the operator's alone, is only ever added to, and may be moved away under the pod.
func TestTheAuditFileIsAppendedToAndMayBeMovedAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	config := with(baseConfig, "audit.path", fmt.Sprintf("%q", path), "agent.driver", `"none"`)
	lines := func(path string) int {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0
		}
		return len(audited(t, string(text)))
	}
	for life := range 2 {
		p := startPod(t, config)
		e := dial(t, p)
		caller := e.facadeOf(e.open(newServer("katashiro", genA, "katashiro.click")))
		for n := range 3 {
			caller.execute("katashiro.click", "{}")
			p.await("the records", func() bool { return lines(path) == life*6+2*(n+1) })
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if strings.Contains(p.log.String(), "mcp.audit") {
			t.Errorf("a record is in the log as well:\n%s", p.log)
		}
		if life == 1 {
			moved := path + ".1"
			if err := os.Rename(path, moved); err != nil {
				t.Fatal(err)
			}
			caller.execute("katashiro.click", "{}")
			p.await("a new file", func() bool { return lines(path) == 2 })
			if n := lines(moved); n != 12 {
				t.Errorf("%d records are in the file that was moved away", n)
			}
		}
		p.stop()
	}
}

// When the file cannot be written the calls go on, their records go to the log, and the operator is told once.
func TestAnAuditFileThatFailsIsToldOnceAndLosesNoRecord(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a full disk": "/dev/full", "no such folder": "/nowhere/at/all/audit", "a folder": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, with(baseConfig, "audit.path", fmt.Sprintf("%q", path), "agent.driver", `"none"`), arguments("--log-level", "error", "--log-format", "json"))
			e := dial(t, p)
			caller := e.facadeOf(e.open(newServer("katashiro", genA, "katashiro.click")))
			for n := range 3 {
				if text := caller.execute("katashiro.click", "{}").text(); text != "katashiro.click {}" {
					t.Errorf("call %d: %q", n, text)
				}
				p.await("the records", func() bool { return len(audited(t, p.log.String())) == 2*(n+1) })
			}
			if n := strings.Count(p.log.String(), "the audit file cannot be written"); n != 1 {
				t.Errorf("told %d times:\n%s", n, p.log)
			}
		})
	}
}
