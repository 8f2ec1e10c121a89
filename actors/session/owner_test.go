package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestPinsOfAClientHaveAScopeThatOnlyItGetsAndThatTellsNothing(t *testing.T) {
	secret := sha256.Sum256([]byte("a secret that an extension made up"))
	other := sha256.Sum256([]byte("another one"))
	mine := owner{"laptop", secret}.pinScope()
	if again := (owner{"laptop", secret}).pinScope(); again != mine {
		t.Errorf("%s, then %s for the same client", mine, again)
	}
	if got := (owner{key: "laptop"}).pinScope(); got != "" {
		t.Errorf("a client without a secret has the scope %q", got)
	}
	for name, o := range map[string]owner{"another client": {"laptop", other}, "another key": {"phone", secret}} {
		if got := o.pinScope(); got == "" || got[9:] == mine[9:] {
			t.Errorf("%s has the scope %q", name, got)
		}
	}
	key, _, _ := strings.Cut(mine, "-")
	if sibling, _, _ := strings.Cut(owner{"laptop", other}.pinScope(), "-"); sibling != key {
		t.Errorf("two clients of one key begin with %s and %s", key, sibling)
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(mine, "-", ""))
	if err != nil || len(mine) != 41 {
		t.Fatalf("%q is no hash: %v", mine, err)
	}
	if strings.Contains(mine, "laptop") || bytes.Contains(secret[:], raw[4:]) || bytes.Contains(raw, secret[:8]) {
		t.Errorf("%q shows of what it is made", mine)
	}
}
