package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Examine looks for what leads around the pod's policy in agent.workdir, and in folders below it in which a session may be opened. It changes
// nothing.
func Examine(cfg Config) ([]Leftover, error) {
	workdir, err := filepath.EvalSymlinks(cfg.Workdir)
	if err != nil {
		return nil, plainly(err)
	}
	f, err := openFolder(workdir)
	if err != nil {
		return nil, plainly(err)
	}
	defer f.close()
	return leftovers(context.Background(), f, f.below(), false, &seen{now: time.Now}), nil
}

// How far Examine looks: a project, and what stands in it, of some dozens of projects.
const (
	examinedDepth   = 3
	examinedFolders = 2000
)

// below lists the folder and those below it, the nearest first; hidden ones, and what package managers fill, hold no sessions.
func (f *folder) below() []string {
	list := []string{"."}
	for i := 0; i < len(list) && len(list) < examinedFolders; i++ {
		if list[i] != "." && strings.Count(list[i], "/")+1 >= examinedDepth {
			break
		}
		entries, err := fs.ReadDir(f.root.FS(), list[i])
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if name := entry.Name(); entry.IsDir() && name[0] != '.' && name != "node_modules" && name != "vendor" && len(list) < examinedFolders {
				list = append(list, path.Join(list[i], name))
			}
		}
	}
	return list
}

// Obstacle tells what would keep the delivery from being set up for a session in agent.workdir; nil = nothing. It changes nothing.
func Obstacle(cfg Config) error {
	d := New(cfg)
	profile := d.Profile(nil)
	mode := choose(cfg.Mode, profile, nil)
	if !d.inFiles(mode, profile) || cfg.FacadeURL == "" {
		return nil
	}
	workdir, err := filepath.EvalSymlinks(cfg.Workdir)
	if err != nil {
		return plainly(err)
	}
	f, err := openFolder(workdir)
	if err != nil {
		return plainly(err)
	}
	defer f.close()
	place := &profile.Files[0]
	names, err := place.names(f, ".")
	if err != nil {
		return err
	}
	was, err := f.load(names[0])
	if err == nil && was.info != nil && len(was.text) > 0 {
		_, err = read(place.TOML, was.text)
	}
	if err != nil {
		return fmt.Errorf("%s %w", names[0], told(err))
	}
	if f.readOnly(was) {
		return fmt.Errorf("%s %w", names[0], told(errReadOnly))
	}
	return f.writable(path.Dir(was.name))
}

// writable tries to make a file in a folder, or in the nearest one above it that is there.
func (f *folder) writable(dir string) error {
	for dir != "." {
		if _, err := f.root.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = path.Dir(dir)
	}
	name := path.Join(dir, temporary("acpod-doctor"))
	if err := f.write(name, nil, 0o600, nil); err != nil {
		return fmt.Errorf("%s cannot be written: %w; make it writable, or set another agent.delivery", dir, plainly(err))
	}
	return f.root.Remove(name)
}
