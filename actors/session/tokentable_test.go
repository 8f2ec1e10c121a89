package session

import (
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/acpod/acpod/actors/capability"
)

func resolves(table *Tokens, token string) (string, bool) {
	caller, ok := table.Resolve(sha256.Sum256([]byte(token)))
	return caller.Tag, ok
}

func TestATokenStandsForItsCallerUntilItIsRevoked(t *testing.T) {
	var table Tokens
	a, b := table.Mint(capability.Caller{Tag: "a"}), table.Mint(capability.Caller{Tag: "b"})
	for token, tag := range map[string]string{a: "a", b: "b"} {
		if got, ok := resolves(&table, token); !ok || got != tag {
			t.Errorf("a token of %s resolves to %q, %v", tag, got, ok)
		}
		if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != 32 {
			t.Errorf("a token has %d bytes, %v; want 32 in base64url without padding", len(raw), err)
		}
	}
	if caller, _ := table.Resolve(sha256.Sum256([]byte(a))); caller.Token != sha256.Sum256([]byte(a)) {
		t.Error("the caller does not know its token's hash")
	}
	if !table.Revoke(a) || table.Revoke(a) {
		t.Error("a revocation must change something once")
	}
	if minted, revoked := table.Counts(); minted != 2 || revoked != 1 {
		t.Errorf("%d minted, %d revoked, want 2 and 1", minted, revoked)
	}
	if _, ok := resolves(&table, a); ok {
		t.Error("a revoked token still works")
	}
	if _, ok := resolves(&table, b); !ok || table.Live() != 1 {
		t.Errorf("revoking one token took another; %d live", table.Live())
	}
	if _, ok := table.Resolve([32]byte{}); ok {
		t.Error("nothing resolves to somebody")
	}
}

// The release of an old generation and the mint of its successor come in every order: the successor's token works, the
// old one does not.
func TestALateReleaseLeavesTheSuccessorsToken(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var table Tokens
		old := table.Mint(capability.Caller{Tag: "s"})
		var successor string
		steps := []func(){
			func() { table.Revoke(old) },                                   // synchronously, before the process is stopped
			func() { table.Revoke(old) },                                   // by the generation's release
			func() { successor = table.Mint(capability.Caller{Tag: "s"}) }, // of the next generation
		}
		rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			step()
		}
		if _, ok := resolves(&table, successor); !ok {
			t.Fatalf("seed %d: the successor's token does not work", seed)
		}
		if _, ok := resolves(&table, old); ok || table.Live() != 1 {
			t.Fatalf("seed %d: the old token works, %d are live", seed, table.Live())
		}
	}
}

// The same from many goroutines at once, as releases do it: nothing is lost in a shard that others change.
func TestMintAndRevokeFromManyGoroutines(t *testing.T) {
	var table Tokens
	var wg sync.WaitGroup
	kept := make([]string, 16)
	for g := range kept {
		wg.Go(func() {
			for range 200 {
				gone := table.Mint(capability.Caller{Tag: "gone"})
				if _, ok := resolves(&table, gone); !ok {
					t.Error("a token does not work right after its mint")
				}
				if !table.Revoke(gone) {
					t.Error("a token was not there to be revoked")
				}
			}
			kept[g] = table.Mint(capability.Caller{Tag: "kept"})
		})
	}
	wg.Wait()
	for _, token := range kept {
		if _, ok := resolves(&table, token); !ok {
			t.Error("a token was lost")
		}
	}
	if table.Live() != len(kept) {
		t.Errorf("%d are live, want %d", table.Live(), len(kept))
	}
}
