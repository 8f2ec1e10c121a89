package pins

import (
	"os"
	"strings"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func attrs(k *kernel.Kernel) map[string]any {
	for _, n := range k.Tree().Children {
		if n.Name == "pins" {
			return n.Attrs
		}
	}
	return nil
}

func TestTheActorWritesAndNoticesWhatTheOperatorAccepts(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	ref := kerneltest.Spawn(t, root, p.Spec())
	seen(p, files, "read=a")
	seen(p, files, "read=b")
	kerneltest.Eventually(t, "the operator sees what is held", func() bool {
		l, err := List(b.dir)
		return err == nil && len(l.Entries) == 1 && l.Entries[0].Changed != nil
	})
	kerneltest.Eventually(t, "the tree shows it", func() bool { a := attrs(k); return a["pins"] == int64(1) && a["held"] == int64(1) })
	if _, err := Accept(b.dir, Choice{Server: "files"}); err != nil {
		t.Fatal(err)
	}
	kerneltest.Eventually(t, "it is accepted", func() bool { return p.Changed(files, tools("read=b")[0]) == nil })
	kerneltest.Eventually(t, "the tree shows that", func() bool { return attrs(k)["held"] == int64(0) })
	if used := ref.Account().Used(); used != 0 {
		t.Errorf("%d bytes are charged at rest", used)
	}
	// What was pinned a moment before the end is written at the end.
	seen(p, files, "last=a")
	root.Stop(kernel.ErrShutdown)
	<-ref.Done()
	kerneltest.Eventually(t, "the last pin is written", func() bool {
		text, err := os.ReadFile(b.path())
		return err == nil && strings.Contains(string(text), `"tool":"last"`)
	})
}

func TestTheActorOutlivesItsCrash(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	ref := kerneltest.Spawn(t, root, p.Spec())
	kerneltest.Eventually(t, "it has started", func() bool { return !p.actor().IsZero() })
	ref.Stop(kernel.ErrGoexit)
	<-ref.Done()
	seen(p, files, "read=a")
	kerneltest.Eventually(t, "the next generation writes", func() bool {
		l, err := List(b.dir)
		return err == nil && len(l.Entries) == 1
	})
}

func TestWhatFindsNoRoomIsCountedInTheTree(t *testing.T) {
	b := newBench(t)
	p := b.pins()
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	ref := kerneltest.Spawn(t, root, p.Spec())
	kerneltest.Eventually(t, "it has started", func() bool { return !p.actor().IsZero() })
	seen(p, anna, names("t", ClientTools+3)...)
	kerneltest.Eventually(t, "three refusals", func() bool {
		for _, n := range k.Tree().Children {
			if n.Name == ref.Name() {
				return n.Refused["pins"] == 3
			}
		}
		return false
	})
}
