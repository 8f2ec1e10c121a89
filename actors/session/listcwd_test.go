package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAListFindsAFolderByTheNameThatOpenedIt(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		root := p.s.cfg.Workdir
		inner, link := filepath.Join(root, "inner"), filepath.Join(root, "link")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(inner, link); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []byte{0, 1} {
			c := p.client("k", secret)
			c.open("[]")
			c.openAt(link, "[]")
			list := func(cwd string) (there, below bool) {
				p.req++
				if err := p.sessions.Tell(List{Client: c, Req: p.req, Params: fmt.Appendf(nil, `{"cwd":%q}`, cwd)}); err != nil {
					t.Fatal(err)
				}
				p.settle()
				got := c.answer(p.req)
				if got == nil || got.err != nil {
					t.Fatalf("%+v", got)
				}
				return strings.Contains(got.result, root+`"`), strings.Contains(got.result, inner+`"`)
			}
			for cwd, want := range map[string][2]bool{"/": {true, false}, root: {true, false}, link: {false, true}, inner: {false, true}, inner + "/../inner/": {false, true}, "/nowhere": {}} {
				if there, below := list(cwd); there != want[0] || below != want[1] {
					t.Errorf("secret %d, %s: %v, %v", secret, cwd, there, below)
				}
			}
			if err := os.Remove(inner); err != nil {
				t.Fatal(err)
			}
			if _, below := list(inner); !below {
				t.Errorf("secret %d: a folder that is gone hides its sessions", secret)
			}
			if err := os.Mkdir(inner, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	})
}
