package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// fileBytes bounds a configuration file that is read: one at a time, so that is what all of this may hold, some times over.
const fileBytes = 1 << 20

// folder is agent.workdir. Nothing outside it is opened through it: a link that leads out is an error.
type folder struct {
	root *os.Root
	path string // real and absolute
	// unsynced are the folders below it in which a name is not on the disk yet.
	unsynced map[string]bool
}

func openFolder(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &folder{root: root, path: dir, unsynced: map[string]bool{}}, nil
}

func (f *folder) close() { _ = f.root.Close() }

// found is a file as it was read.
type found struct {
	name string // where it really is, behind links
	text []byte
	info fs.FileInfo // nil: there is none
}

var (
	errLinkOut  = errors.New("is a link that leads out of agent.workdir")
	errNoFile   = errors.New("is no regular file")
	errTooLarge = fmt.Errorf("has more than %d bytes", fileBytes)
	errBusy     = errors.New("was changed by somebody else again and again")
)

// load reads a file that may be absent.
func (f *folder) load(name string) (found, error) {
	name, err := f.follow(name)
	if err != nil {
		return found{}, err
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // nobody may hold us up with a pipe
	if errors.Is(err, fs.ErrNotExist) {
		return found{name: name}, nil
	}
	if err != nil {
		return found{}, plainly(err)
	}
	defer file.Close()
	info, text, err := slurp(file)
	return found{name, text, info}, err
}

func slurp(file *os.File) (fs.FileInfo, []byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, plainly(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNoFile
	}
	text, err := io.ReadAll(io.LimitReader(file, fileBytes+1))
	if err != nil {
		return nil, nil, plainly(err)
	}
	if len(text) > fileBytes {
		return nil, nil, errTooLarge
	}
	return info, text, nil
}

// follow finds what links inside the folder lead to, so that a rename replaces that and not a link. As for the system, ".." is the folder
// above the one that a link leads to, and not above the one that the link stands in.
func (f *folder) follow(name string) (string, error) {
	at, rest := ".", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", errLinkOut
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, step)
		info, err := f.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && slices.Contains(rest, ".."):
			return "", fs.ErrNotExist
		case errors.Is(err, fs.ErrNotExist):
			return path.Join(next, path.Join(rest...)), nil
		case err != nil:
			return "", plainly(err)
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		to, err := f.root.Readlink(next)
		if err != nil {
			return "", plainly(err)
		}
		if links++; path.IsAbs(to) || links > 16 {
			return "", errLinkOut
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, nil
}

// store replaces a file by that text, whole or not at all, if it is still what was read; it is on the disk then. made are the folders
// that it had to make, the outermost first.
func (f *folder) store(was found, text []byte, mode fs.FileMode) (made []string, err error) {
	if made, err = f.replace(was, text, mode); err != nil {
		return nil, err
	}
	return made, f.sync()
}

// replace is store for one of many files: that it is this file which has the name is on the disk after the next sync.
func (f *folder) replace(was found, text []byte, mode fs.FileMode) (made []string, err error) {
	dir := path.Dir(was.name)
	if made, err = f.makeFolders(dir); err != nil {
		return nil, plainly(err)
	}
	beside := path.Join(dir, temporary(path.Base(was.name)))
	defer func() {
		if err != nil {
			_ = f.root.Remove(beside)
			f.unmake(made)
		}
	}()
	if err = f.write(beside, text, mode, was.info); err != nil {
		return nil, plainly(err)
	}
	if f.moved(was) {
		return nil, errBusy
	}
	if err = f.root.Rename(beside, was.name); err != nil {
		return nil, plainly(err)
	}
	f.unsynced[dir] = true
	return made, nil
}

// sync puts on the disk what was replaced.
func (f *folder) sync() error {
	for dir := range f.unsynced {
		if err := f.syncFolder(dir); err != nil {
			return plainly(err)
		}
		delete(f.unsynced, dir)
	}
	return nil
}

// temporary is a name that no other process has: the first of every container has the same pid, and one that was killed leaves its file.
func temporary(of string) string { return "." + of + ".openab-tmp." + rand.Text() }

// write makes a file, in the place of that one, if there is one.
func (f *folder) write(name string, text []byte, mode fs.FileMode, instead fs.FileInfo) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	giveTo(file, instead)
	if err == nil && mode != 0o600 {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// giveTo leaves a file to the owner and the group of the one that it replaces. Whoever may not do that owns what it writes, as every editor does.
func giveTo(file *os.File, instead fs.FileInfo) {
	if instead == nil {
		return
	}
	info, err := file.Stat()
	if err != nil {
		return
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	was, ok2 := instead.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || is.Uid == was.Uid && is.Gid == was.Gid {
		return
	}
	if file.Chown(int(was.Uid), int(was.Gid)) != nil {
		_ = file.Chown(-1, int(was.Gid)) // any of its own groups everybody may give
	}
}

var errReadOnly = errors.New("it is read-only")

// readOnly tells whether a file, or the folder that it would be made in, is marked so: somebody means it, also where root could write.
func (f *folder) readOnly(was found) bool {
	if was.info != nil && was.info.Mode().Perm()&0o200 == 0 {
		return true
	}
	for dir := path.Dir(was.name); ; dir = path.Dir(dir) {
		if info, err := f.root.Stat(dir); err == nil || dir == "." {
			return err == nil && info.Mode().Perm()&0o200 == 0
		}
	}
}

// moved tells whether a file is not what was read any more.
func (f *folder) moved(was found) bool {
	info, err := f.root.Lstat(was.name)
	if was.info == nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return err != nil || !os.SameFile(info, was.info) || info.Size() != was.info.Size() || !info.ModTime().Equal(was.info.ModTime())
}

func (f *folder) makeFolders(dir string) (made []string, err error) {
	if dir == "." {
		return nil, nil
	}
	var missing []string
	for at := dir; at != "."; at = path.Dir(at) {
		if _, err := f.root.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := f.root.Mkdir(missing[i], 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			f.unmake(made)
			return nil, err
		}
		made = append(made, missing[i])
	}
	return made, nil
}

// unmake takes folders away again that were made, and are empty.
func (f *folder) unmake(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		_ = f.root.Remove(made[i])
	}
}

// discard removes a file that was made for nothing but what is gone now, with the folders made for it.
func (f *folder) discard(was found, made []string) error {
	if f.moved(was) {
		return errBusy
	}
	if err := f.root.Remove(was.name); err != nil {
		return plainly(err)
	}
	err := f.syncFolder(path.Dir(was.name))
	f.unmake(made)
	return plainly(err)
}

func (f *folder) syncFolder(dir string) error {
	file, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// matches lists the files of a pattern whose last element alone has a "*", in their order; the hidden ones, of macOS and of our own, are none.
func (f *folder) matches(pattern string) ([]string, error) {
	dir, err := f.root.OpenFile(path.Dir(pattern), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, plainly(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, plainly(err)
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%s has more than %d files", path.Dir(pattern), maxFiles)
	}
	list := slices.DeleteFunc(names, func(name string) bool {
		fits, err := path.Match(path.Base(pattern), name)
		return err != nil || !fits || strings.HasPrefix(name, ".")
	})
	slices.Sort(list)
	for i := range list {
		list[i] = path.Join(path.Dir(pattern), list[i])
	}
	return list, nil
}

// maxFiles bounds a folder of agents' files.
const maxFiles = 4096

// edit reads a file, lets make say what becomes of it, and stores that; from the start again when somebody else was faster. A nil text
// leaves the file as it is, and its permissions stay in any case.
func (f *folder) edit(ctx context.Context, name string, make func(found) ([]byte, error)) (made []string, err error) {
	for range 8 {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		was, err := f.load(name)
		if err != nil {
			return nil, err
		}
		text, err := make(was)
		if err != nil || text == nil {
			return nil, err
		}
		if made, err = f.store(was, text, asItWas(was)); !errors.Is(err, errBusy) {
			return made, err
		}
	}
	return nil, errBusy
}

func asItWas(was found) fs.FileMode {
	if was.info == nil {
		return 0o600
	}
	return was.info.Mode().Perm()
}

// plainly is an error of the file system without its path, which the caller names; nil for nil.
func plainly(err error) error {
	if err == nil {
		return nil
	}
	if broken, ok := errors.AsType[*fs.PathError](err); ok {
		err = broken.Err
	} else if broken, ok := errors.AsType[*os.LinkError](err); ok {
		err = broken.Err
	}
	if err.Error() == "path escapes from parent" {
		return errLinkOut
	}
	return err
}
