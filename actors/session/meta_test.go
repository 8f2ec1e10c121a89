package session

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestWhatIsKeptOfAClientsMetaIsBounded(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	kerneltest.Do(t, root, func(c *kernel.Ctx) {
		if kept := keepMeta(c, []byte(`{"baggage":"a=1","other":1}`), nil); string(kept) != `{"baggage":"a=1"}` {
			t.Errorf("kept %s", kept)
		}
		if kept := keepMeta(c, []byte(`{"baggage":"`+strings.Repeat("b", maxMeta)+`"}`), nil); kept != nil {
			t.Errorf("%d bytes are kept", len(kept))
		}
	})
	if n := k.Refusals(); len(n) != 1 || n[0].Scope != "meta" || n[0].Count != 1 {
		t.Errorf("counted %v", n)
	}
}

func TestMoreFoldersThanAreKeptAreRefused(t *testing.T) {
	root := t.TempDir()
	for n, ok := range map[int]bool{0: true, maxFolders: true, maxFolders + 1: false, 100_000: false} {
		p := &Params{SessionParams: acp.SessionParams{Cwd: "/"}}
		for range n {
			p.AdditionalDirectories = append(p.AdditionalDirectories, "/")
		}
		if f, bad := resolveFolders(root, p); (bad == nil) != ok || ok && len(f.Additional) != n {
			t.Errorf("%d folders: %d, %v", n, len(f.Additional), bad)
		}
	}
}
