package delivery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const proxyURL = "http://127.0.0.1:4444/mcp"

// each switch of delivery, both ways: what the former wrote is gone, what stood there before is there to the byte.
func TestEachSwitchOfDeliveryCleansUpWhatTheFormerWrote(t *testing.T) {
	const mine = "{\n  \"mcpServers\": {\n    \"mine\": {\"command\": \"x\"} // mine\n  }\n}\n"
	modes := []Mode{ACP, File, Bridge, Proxy, Auto}
	for _, profile := range []string{"generic", "claude", "codex", "gemini", "opencode", "cursor", "kiro"} {
		for _, from := range modes {
			for _, to := range modes {
				b := newBed(t)
				b.write(".cursor/mcp.json", mine)
				b.write(".kiro/settings/mcp.json", mine)
				b.write(".kiro/agents/a.json", `{"allowedTools":["x"]}`)
				use := func(m Mode) map[string]string {
					ready(t, b.prepare(b.pod(m, profile), func(a *Ask) {
						a.Agent = &Agent{"x", true}
						if m == Proxy {
							a.URL = proxyURL
						}
					}))
					now := map[string]string{}
					for _, name := range b.files() {
						if info, err := os.Stat(filepath.Join(b.dir, name)); err == nil && !info.IsDir() {
							now[name] = b.read(name)
						}
					}
					return now
				}
				first := use(from)
				use(to)
				again := use(from)
				for name, text := range first {
					if again[name] != text {
						t.Errorf("%s, %s to %s and back: %s was\n%s and is\n%s", profile, from, to, name, text, again[name])
					}
				}
				if len(again) != len(first) {
					t.Errorf("%s, %s to %s and back: %d files, then %d", profile, from, to, len(first), len(again))
				}
				b.prepare(b.pod(File, profile, func(c *Config) { c.FacadeURL = "" })) // no facade: nothing is left
				b.wants(".cursor/mcp.json", mine)
				b.wants(".kiro/settings/mcp.json", mine)
				b.wants(".kiro/agents/a.json", `{"allowedTools":["x"]}`)
				if left := b.files(); len(left) != 7 {
					t.Errorf("%s, %s, %s: %v are left", profile, from, to, left)
				}
			}
		}
	}
}

// A pod that lives relies on what it wrote: another one with the same state folder leaves that alone. A dead one's goes.
func TestWhatALivingPodReliesOnStays(t *testing.T) {
	b := newBed(t)
	living := b.pod(File, "cursor")
	living.pod = thisPod()
	ready(t, b.prepare(living))
	other := b.pod(ACP, "cursor")
	ready(t, b.prepare(other))
	if !strings.Contains(b.read(".cursor/mcp.json"), EntryName) {
		t.Error("the entry of a living pod was removed")
	}
	ready(t, living.Prepare(t.Context(), Ask{Cwd: b.dir}))
	living.cfg.Mode = ACP // its own it may remove
	ready(t, living.Prepare(t.Context(), Ask{Cwd: b.dir}))
	b.wants(".cursor/mcp.json", "absent")
}

func TestTheEntryOfAProxyEndsWithItsSessionAndOnlyIfItIsStillItsOwn(t *testing.T) {
	b := newBed(t)
	d := b.pod(Proxy, "cursor")
	ready(t, b.prepare(d, func(a *Ask) { a.URL = proxyURL }))
	first := b.read(".cursor/mcp.json")
	if !strings.Contains(first, proxyURL) || !strings.Contains(first, "Bearer ${env:OPENAB_SESSION_TOKEN}") {
		t.Error(first)
	}
	ready(t, b.prepare(d, func(a *Ask) { a.URL = "http://127.0.0.1:5555/mcp" }))
	second := b.read(".cursor/mcp.json")
	d.Withdraw(t.Context(), proxyURL)
	b.wants(".cursor/mcp.json", second)
	d.Withdraw(t.Context(), "http://127.0.0.1:5555/mcp")
	b.wants(".cursor/mcp.json", "absent")

	ready(t, b.prepare(d, func(a *Ask) { a.URL = proxyURL }))
	changed := strings.Replace(first, "4444", "1", 1)
	b.write(".cursor/mcp.json", changed)
	d.Withdraw(t.Context(), proxyURL)
	b.wants(".cursor/mcp.json", changed)

	b = newBed(t)
	ready(t, b.prepare(b.pod(Proxy, "cursor"), func(a *Ask) { a.URL = proxyURL })) // and its pod is killed
	ready(t, b.prepare(b.pod(Proxy, "cursor"), func(a *Ask) { a.URL = "http://127.0.0.1:5555/mcp" }))
	if text := b.read(".cursor/mcp.json"); strings.Contains(text, "4444") {
		t.Errorf("the address of a dead pod stands there: %s", text)
	}
	if p := b.prepare(b.pod(Proxy, "cursor")); p.State != Failed || !strings.Contains(p.Reason, "own address") {
		t.Errorf("%+v", p)
	}
}

// A record that cannot be read is set aside, said once, and what it named stays.
func TestARecordThatCannotBeReadIsSetAside(t *testing.T) {
	for name, text := range map[string]string{"torn": `{"version":1,"wri`, "of a later version": `{"version":2,"written":[]}`, "too large": strings.Repeat(" ", recordBytes+1)} {
		b := newBed(t)
		ready(t, b.prepare(b.pod(File, "cursor")))
		if err := os.WriteFile(filepath.Join(b.state, "delivery.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		entry := b.read(".cursor/mcp.json")
		ready(t, b.prepare(b.pod(ACP, "cursor")))
		ready(t, b.prepare(b.pod(ACP, "cursor")))
		b.wants(".cursor/mcp.json", entry)
		if n := strings.Count(b.log.String(), "delivery.json.unreadable"); n != 1 {
			t.Errorf("%s: said %d times", name, n)
		}
		if aside, err := os.ReadFile(filepath.Join(b.state, "delivery.json.unreadable")); err != nil || string(aside) != text {
			t.Errorf("%s: %v", name, err)
		}
		ready(t, b.prepare(b.pod(File, "cursor"))) // the very entry is there: nobody's, and good
	}
}

// A folder that takes no files, or has no room, is a failure that says so: no token is minted by it.
func TestAFolderThatTakesNoFilesIsAFailure(t *testing.T) {
	b := newBed(t)
	b.write(".cursor", "a file where the folder should be")
	before := b.files()
	if p := b.prepare(b.pod(File, "cursor")); p.State != Failed || !strings.Contains(p.Reason, ".cursor/mcp.json cannot be written: not a directory") {
		t.Errorf("%+v", p)
	}
	if after := b.files(); len(after) != len(before) {
		t.Errorf("%v are left", after)
	}
	d := b.pod(File, "cursor", func(c *Config) { c.Workdir = filepath.Join(b.dir, "gone") })
	if p := b.prepare(d); p.State != Failed || !strings.Contains(p.Reason, "agent.workdir") {
		t.Errorf("%+v", p)
	}
	d = b.pod(File, "cursor")
	if p := b.prepare(d, func(a *Ask) { a.Cwd = filepath.Dir(b.dir) }); p.State != Failed {
		t.Errorf("a folder outside: %+v", p)
	}
	for _, read := range []string{".", ".cursor", ".cursor/mcp.json"} {
		b := newBed(t)
		b.write(".cursor/mcp.json", "{}")
		if read == "." {
			if err := os.RemoveAll(filepath.Join(b.dir, ".cursor")); err != nil {
				t.Fatal(err)
			}
		}
		before := b.read(".cursor/mcp.json")
		full := filepath.Join(b.dir, read)
		info, err := os.Stat(full)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, info.Mode().Perm()&^0o222); err != nil {
			t.Fatal(err)
		}
		d := b.pod(File, "cursor")
		if p := b.prepare(d); p.State != Failed || !strings.Contains(p.Reason, ".cursor/mcp.json cannot be written: it is read-only") {
			t.Errorf("%s: %+v", read, p)
		}
		if err := Obstacle(d.cfg); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s: the doctor says %v", read, err)
		}
		b.wants(".cursor/mcp.json", before)
		if err := os.Chmod(full, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
		ready(t, b.prepare(d))
	}
	for _, dir := range []string{"/proc", "/proc/sys"} { // nobody makes a file there, not even root
		d := b.pod(File, "cursor", func(c *Config) { c.Workdir = dir })
		if p := b.prepare(d, func(a *Ask) { a.Cwd = dir }); p.State != Failed || !strings.Contains(p.Reason, ".cursor/mcp.json cannot be written") {
			t.Errorf("%+v", p)
		}
	}
	b = newBed(t)
	noState := func(c *Config) { c.State = filepath.Join(b.state, "gone") }
	if p := b.prepare(b.pod(File, "cursor", noState)); p.State != Failed || !strings.Contains(p.Reason, "state folder") {
		t.Errorf("%+v", p)
	}
	if text := b.read(".cursor/mcp.json"); text != "absent" {
		t.Error("it was written, and nobody will know")
	}
	ready(t, b.prepare(b.pod(ACP, "cursor", noState))) // nothing is to be written
	ready(t, b.prepare(b.pod(File, "cursor", func(c *Config) { c.State = "" })))
}
