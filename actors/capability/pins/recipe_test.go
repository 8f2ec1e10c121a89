package pins

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/mcp"
)

// next is a program whose recipe is version 2: it digests what version 1 did in another way.
func (b *bench) next() *Pins {
	cfg := b.config()
	cfg.version = 2
	cfg.digestBy = func(version uint8, t *mcp.Tool) (capability.Digest, bool) {
		if version != 2 {
			return capability.DigestBy(version, t)
		}
		d, _ := capability.DigestBy(1, t)
		for _, part := range []*[32]byte{&d.Title, &d.Description, &d.InputSchema, &d.OutputSchema, &d.Annotations} {
			*part = sha256.Sum256(part[:])
		}
		d.Version = 2
		return d, true
	}
	cfg.sum = func(t *capability.Tool) [32]byte { d, _ := cfg.digestBy(2, &t.Tool); return d.Sum() }
	return b.with(cfg)
}

func TestANewRecipeNeitherApprovesNorHoldsBackBySelf(t *testing.T) {
	b := newBench(t)
	old := b.pins()
	seen(old, files, "same=a", "changed=a", "later=a")
	b.sync(old)

	p := b.next()
	if got := seen(p, files, "same=a", "changed=b"); got != "changed: description" {
		t.Errorf("after the upgrade: %q", got)
	}
	b.sync(p)
	if got := strings.Count(b.file(), `"v":2`); got != 2 { // the one that is what it was, and the held definition
		t.Errorf("%d digests by the new recipe: %s", got, b.file())
	}
	p = b.next()
	if got := seen(p, files, "same=b", "changed=b", "later=b"); got != "same: description; changed: description; later: description" {
		t.Errorf("after another restart: %q", got)
	}
	if got := seen(p, files, "same=a", "changed=a", "later=a"); got != "" {
		t.Errorf("what was pinned by either recipe: %q", got)
	}
	b.sync(p)
	// A program that goes back cannot compare, and says so.
	if got := seen(b.pins(), files, "same=a"); got != "same: "+capability.PinNewer {
		t.Errorf("the old program: %q", got)
	}
}
