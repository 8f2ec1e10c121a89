package pod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
)

func TestStartedKeysAreKnownAfterARestart(t *testing.T) {
	folder, now := t.TempDir(), time.Unix(1e9, 0)
	open := func() *fileLedger {
		t.Helper()
		l, err := openLedger(folder, time.Hour, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	start := func(l *fileLedger, r capability.KeyRecord) *capability.KeyRecord {
		t.Helper()
		seen, err := l.Start(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	first := capability.KeyRecord{Session: "12b9377c" + strings.Repeat("0", 56), Server: "katashiro", Tool: "katashiro.click", Key: "k\n1", ArgsSHA: [32]byte{1}}
	other := first
	other.Session = "-"
	unsent := first
	unsent.Key = "never sent"

	l := open()
	if seen := start(l, first); seen != nil {
		t.Errorf("a new key was seen: %v", seen)
	}
	if seen := start(l, other); seen != nil {
		t.Errorf("a key belongs to one session: %v", seen)
	}
	start(l, unsent)
	if err := l.Forget(t.Context(), unsent); err != nil {
		t.Fatal(err)
	}
	l.close()

	if f, err := os.OpenFile(filepath.Join(folder, ledgerName), os.O_APPEND|os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	} else {
		_, _ = f.WriteString("not ours\n{\"v\":9}\n" + strings.Repeat("x", 3*ledgerLine) + "\n{\"v\":1,\"at\":\"20") // the last line of a pod that was killed
		_ = f.Close()
	}

	l = open()
	changed := first
	changed.ArgsSHA = [32]byte{2}
	if seen := start(l, changed); seen == nil || *seen != first {
		t.Errorf("a repeat must tell the arguments of its start: %v", seen)
	}
	if seen := start(l, unsent); seen != nil {
		t.Errorf("what was taken back is remembered: %v", seen)
	}
	now = now.Add(2 * time.Hour)
	if seen := start(l, first); seen != nil {
		t.Errorf("a key outlives its retention: %v", seen)
	}
	l.close()
	text, err := os.ReadFile(filepath.Join(folder, ledgerName))
	if err != nil || strings.Contains(string(text), "not ours") {
		t.Errorf("the file was not written anew: %v", err)
	}
	if info, err := os.Stat(filepath.Join(folder, ledgerName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestLedgerIsBoundedAndSharesItsFile(t *testing.T) {
	folder := t.TempDir()
	one, err := openLedger(folder, time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer one.close()
	two, err := openLedger(folder, time.Hour, time.Now) // must not write the file anew under the first
	if err != nil {
		t.Fatal(err)
	}
	defer two.close()
	a, b := capability.KeyRecord{Key: "a"}, capability.KeyRecord{Key: "b"}
	for l, r := range map[*fileLedger]capability.KeyRecord{one: a, two: b} {
		if _, err := l.Start(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	three, err := openLedger(folder, time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer three.close()
	for _, r := range []capability.KeyRecord{a, b} {
		if seen, err := three.Start(t.Context(), r); err != nil || seen == nil {
			t.Errorf("%s was lost: %v", r.Key, err)
		}
	}
	for n := range ledgerKeys + 10 {
		three.remember(capability.KeyRecord{Key: strings.Repeat("x", n%100) + string(rune('0'+n%10)) + time.Duration(n).String()}, ledgerEntry{at: time.Now()})
	}
	if len(three.known) > ledgerKeys || len(three.order) != len(three.known) {
		t.Errorf("%d keys are remembered, in an order of %d", len(three.known), len(three.order))
	}
}

// A session is known by the whole hash of its id: another with the same tag has keys of its own. What stands in a file of before
// is known by the tag.
func TestAKeyBelongsToASessionAndNotToItsTag(t *testing.T) {
	folder := t.TempDir()
	line := `{"v":1,"at":"` + time.Now().UTC().Format(time.RFC3339) + `","session":"#12b9377c","server":"s","tool":"t","key":"old","args_sha256":"` + strings.Repeat("01", 32) + `"}` + "\n"
	if err := os.WriteFile(filepath.Join(folder, ledgerName), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for life := range 2 {
		l, err := openLedger(folder, time.Hour, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for i, session := range []string{"12b9377c" + strings.Repeat("a", 56), "12b9377c" + strings.Repeat("b", 56), "ffff" + strings.Repeat("a", 60)} {
			r := capability.KeyRecord{Session: session, Server: "s", Tool: "t", Key: "new", ArgsSHA: [32]byte{byte(i)}}
			if seen := l.Seen(t.Context(), r); (seen != nil) != (life == 1) || seen != nil && *seen != r {
				t.Errorf("life %d, session %.10s, looked at: %v", life, session, seen)
			}
			if seen, err := l.Start(t.Context(), r); err != nil || (seen != nil) != (life == 1) || seen != nil && *seen != r {
				t.Errorf("life %d, session %.10s: %v, %v", life, session, seen, err)
			}
			r.Key = "old"
			if seen, err := l.Start(t.Context(), r); err != nil || (seen != nil) != (i < 2 || life == 1) {
				t.Errorf("life %d, session %.10s, a key of before: %v, %v", life, session, seen, err)
			}
		}
		l.close()
	}
}

// What cannot be read of the record was somebody's key: it is told of and kept, not passed over. The cut last line of a pod that was killed
// is no such thing.
func TestLinesOfTheLedgerThatCannotBeReadAreToldOf(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, ledgerName)
	first, err := openLedger(folder, time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	record := capability.KeyRecord{Session: "s", Server: "a", Tool: "t", Key: "k"}
	if _, err := first.Start(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	first.close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		more    string
		damaged int
	}{
		"sound":           {"", 0},
		"a cut last line": {`{"v":2,"at":"20`, 0},
		"cut in between":  {`{"v":2,"at":"20` + "\n", 1},
		"a newer version": {`{"v":99,"session":"x"}` + "\n", 1},
		"no hash":         {`{"v":2,"at":"2026-01-01T00:00:00Z","session":"x","server":"a","tool":"t","key":"k","args_sha256":"zz"}` + "\n", 1},
		"too long":        {strings.Repeat("x", 3*ledgerLine) + "\n", 1},
	} {
		if err := os.WriteFile(path, append(text[:len(text):len(text)], row.more...), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := openLedger(folder, time.Hour, time.Now)
		if err != nil {
			t.Fatal(name, err)
		}
		if l.damaged != row.damaged || l.Seen(t.Context(), record) == nil {
			t.Errorf("%s: %d damaged lines; the sound one is known: %v", name, l.damaged, l.Seen(t.Context(), record) != nil)
		}
		if kept, err := os.ReadFile(l.aside); row.damaged > 0 && (err != nil || !strings.Contains(string(kept), row.more)) {
			t.Errorf("%s: what could not be read is not kept: %v", name, err)
		}
		l.close()
		_ = os.Remove(l.aside)
	}
}
