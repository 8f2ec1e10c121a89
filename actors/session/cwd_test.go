package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// tree makes a folder with everything that a client might name: workdir/{a/b, file, in→a, out→outside, loop→loop, dead→nowhere},
// workdir-2, outside.
func tree(t *testing.T) (base, workdir string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workdir = filepath.Join(base, "workdir")
	for _, dir := range []string{"workdir/a/b", "workdir-2", "outside/deep"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workdir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"in": "a", "out": "../outside", "loop": "loop", "dead": "nowhere", "a/up": "../../outside/deep"} {
		if err := os.Symlink(to, filepath.Join(workdir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return base, workdir
}

func TestAnAgentWorksInsideTheWorkdirOnly(t *testing.T) {
	base, workdir := tree(t)
	at := func(path string) string { return base + "/" + path } // not cleaned
	for name, c := range map[string]struct {
		asked string
		want  string // "" = refused
	}{
		"a slash is the workdir itself":        {"/", workdir},
		"the workdir by its path":              {workdir, workdir},
		"with a slash behind":                  {workdir + "/", workdir},
		"a folder inside":                      {at("workdir/a/b"), at("workdir/a/b")},
		"a link that stays inside":             {at("workdir/in/b"), at("workdir/a/b")},
		"dots that stay inside":                {at("workdir/a/../a"), at("workdir/a")},
		"relative":                             {"a", ""},
		"only dots":                            {"..", ""},
		"empty":                                {"", ""},
		"a tilde":                              {"~", ""},
		"the system":                           {"/etc", ""},
		"the folder above":                     {base, ""},
		"dots that lead out":                   {workdir + "/../outside", ""},
		"a link that leads out":                {at("workdir/out"), ""},
		"through a link that leads out":        {at("workdir/out/deep"), ""},
		"back in after a link that leads out":  {at("workdir/a/up/.."), ""},
		"a neighbour with the same beginning":  {at("workdir-2"), ""},
		"a file":                               {at("workdir/file"), ""},
		"below a file":                         {at("workdir/file/x"), ""},
		"missing":                              {at("workdir/none"), ""},
		"a dead link":                          {at("workdir/dead"), ""},
		"a loop of links":                      {at("workdir/loop"), ""},
		"a zero byte":                          {workdir + "\x00", ""},
		"longer than any path":                 {workdir + strings.Repeat("/.", maxPath), ""},
		"a url":                                {"file://" + workdir, ""},
		"another user's process, via the proc": {"/proc/self/cwd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, bad := resolveFolders(workdir, &Params{SessionParams: acp.SessionParams{Cwd: c.asked}})
			if c.want == "" {
				if bad == nil || bad.Code != jsonrpc.InvalidParams || bad.Reason() != "cwd" {
					t.Fatalf("%q became %q, error %v; want -32602 with the reason cwd", c.asked, got.Cwd, bad)
				}
				if strings.Contains(bad.Message, base) {
					t.Errorf("the error tells a path: %s", bad.Message)
				}
				return
			}
			if bad != nil || got.Cwd != c.want {
				t.Errorf("%q became %q, %v; want %q", c.asked, got.Cwd, bad, c.want)
			}
		})
	}
}

func TestAdditionalFoldersFollowTheSameRule(t *testing.T) {
	base, workdir := tree(t)
	p := &Params{SessionParams: acp.SessionParams{Cwd: "/", AdditionalDirectories: []string{filepath.Join(workdir, "in"), "/"}}}
	got, bad := resolveFolders(workdir, p)
	if want := []string{filepath.Join(workdir, "a"), workdir}; bad != nil || !slices.Equal(got.Additional, want) {
		t.Errorf("got %q, %v; want %q", got.Additional, bad, want)
	}
	for _, dir := range []string{"/etc", "a", filepath.Join(base, "outside")} {
		p.AdditionalDirectories[1] = dir
		if _, bad := resolveFolders(workdir, p); bad == nil || bad.Reason() != "cwd" {
			t.Errorf("%q was let in: %v", dir, bad)
		}
	}
}

func TestAWorkdirThatIsItselfALinkIsFollowedFirst(t *testing.T) {
	base, workdir := tree(t)
	link := filepath.Join(base, "link")
	if err := os.Symlink(workdir, link); err != nil {
		t.Fatal(err)
	}
	got, bad := resolveFolders(link, &Params{SessionParams: acp.SessionParams{Cwd: filepath.Join(link, "a")}})
	if bad != nil || got.Cwd != filepath.Join(workdir, "a") {
		t.Errorf("got %q, %v", got.Cwd, bad)
	}
}
