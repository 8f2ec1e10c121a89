package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// maxPath is the longest path that is looked up, in bytes: Linux takes no longer one.
const maxPath = 4096

// maxFolders bounds additionalDirectories, which are kept for the life of the session.
const maxFolders = 64

// Folders are the folders that an agent gets: real paths inside agent.workdir.
type Folders struct {
	Cwd        string
	Additional []string
}

func (f Folders) same(o Folders) bool {
	return f.Cwd == o.Cwd && slices.Equal(f.Additional, o.Additional)
}

// resolveFolders checks what a client asked for. It reads the file system and may block: never on an actor's turn. The
// error is -32602 with data.reason "cwd". It is the same for every cause, so that nobody can learn from it what exists
// outside the workdir.
func resolveFolders(workdir string, p *Params) (Folders, *jsonrpc.Error) {
	root, err := filepath.Abs(workdir)
	if err == nil {
		root, err = realFolder(root)
	}
	if err != nil {
		return Folders{}, jsonrpc.InternalError(jsonrpc.ReasonInternal, "agent.workdir cannot be read: ask the operator of this pod")
	}
	cwd, ok := resolveFolder(root, p.Cwd)
	if !ok {
		return Folders{}, badFolder("cwd")
	}
	if len(p.AdditionalDirectories) > maxFolders {
		return Folders{}, badFolder("each of at most 64 additionalDirectories")
	}
	f := Folders{Cwd: cwd}
	for _, asked := range p.AdditionalDirectories {
		dir, ok := resolveFolder(root, asked)
		if !ok {
			return Folders{}, badFolder("each of additionalDirectories")
		}
		f.Additional = append(f.Additional, dir)
	}
	return f, nil
}

// resolveFolder gives the real path of the folder asked for: absolute, links followed, an existing folder that is root
// or lies inside it. "/" means root itself. root is a real path.
func resolveFolder(root, asked string) (string, bool) {
	if asked == "/" {
		return root, true
	}
	if !filepath.IsAbs(asked) || len(asked) > maxPath || strings.IndexByte(asked, 0) >= 0 {
		return "", false
	}
	dir, err := realFolder(asked)
	if err != nil || !inside(root, dir) {
		return "", false
	}
	return dir, true
}

// realFolder follows all links and insists on a folder.
func realFolder(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(path) // physical: what follows a link is looked up where the link leads
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &os.PathError{Op: "open", Path: dir, Err: os.ErrInvalid}
	}
	return dir, nil
}

// inside compares whole path elements: /work-2 is not inside /work.
func inside(root, dir string) bool {
	if root == dir || root == "/" {
		return true
	}
	return strings.HasPrefix(dir, root+"/")
}

func badFolder(which string) *jsonrpc.Error {
	return jsonrpc.BadParamsReason(jsonrpc.ReasonCwd,
		`%s must be the absolute path of an existing folder inside agent.workdir; "/" means agent.workdir itself`, which)
}
