package capability

import (
	"testing"
	"time"
)

func TestRevokedTokensAreRememberedForAMinuteAndAreBounded(t *testing.T) {
	token := func(n int) [32]byte { return [32]byte{byte(n), byte(n >> 8), 1} }
	now := time.Unix(1_000_000, 0)
	var d deadTokens
	if d.has(token(0)) || d.add(token(0), now) || !d.has(token(0)) {
		t.Error("the first is not remembered")
	}
	if d.add(token(1), now.Add(deadFor)) || !d.has(token(0)) {
		t.Error("the first was forgotten within its minute")
	}
	if d.add(token(2), now.Add(deadFor+1)) || d.has(token(0)) || !d.has(token(1)) {
		t.Error("the first is remembered past its minute")
	}
	d = nil
	for n := range 10_000 {
		if full := d.add(token(n), now); full != (n >= mostDead) || len(d) > mostDead {
			t.Fatalf("%d: full is %v, %d are remembered", n, full, len(d))
		}
	}
	if !d.has(token(9_999)) || d.has(token(9_999-mostDead)) || cap(d) > 2*mostDead {
		t.Error("not the last ones are remembered")
	}
}
