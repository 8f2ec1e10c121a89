package delivery

import (
	"io/fs"
	"path"
	"syscall"
	"time"
)

// seen is what is known of files that were looked at and had no leftover: as long as the system says that one was not touched, it has none.
// It is used under its deliverer's turn.
type seen struct {
	files map[string]sight
	now   func() time.Time
}

// sight is a file as it was when it was looked at, and what it has not.
type sight struct {
	device, inode    uint64
	size             int64
	modified, status syscall.Timespec // the second is set by the system alone, whatever a program makes of the first
	lacks            lack
}

// lack is what a file has not.
type lack uint8

const (
	hasNoServer lack = 1 << iota
	hasNoGrant
)

// seenFiles bounds what is kept in memory: with path and all some 300 bytes each. With more, it begins anew.
const seenFiles = 8 << 10

// settledFor is how long a file has to have been untouched before it is believed to be told from a later one: clocks of file systems
// tick as seldom as every two seconds.
const settledFor = 4 * time.Second

// sightOf is how a file looks; false when the system does not say enough.
func sightOf(info fs.FileInfo) (sight, bool) {
	if info == nil || !info.Mode().IsRegular() {
		return sight{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return sight{}, false
	}
	return sight{device: s.Dev, inode: s.Ino, size: s.Size, modified: s.Mtim, status: s.Ctim}, true
}

// has tells whether the file is known not to have that.
func (s *seen) has(f *folder, name string, what lack) bool {
	was, known := s.files[path.Join(f.path, name)]
	if !known || was.lacks&what == 0 {
		return false
	}
	info, err := f.root.Stat(name)
	if err != nil {
		return false
	}
	is, ok := sightOf(info)
	is.lacks = was.lacks
	return ok && is == was
}

// add says that the file was read after it looked so, and has not that.
func (s *seen) add(f *folder, name string, info fs.FileInfo, what lack) {
	is, ok := sightOf(info)
	name = path.Join(f.path, name)
	youngest := s.now().Add(-settledFor)
	if !ok || time.Unix(is.status.Unix()).After(youngest) || time.Unix(is.modified.Unix()).After(youngest) {
		delete(s.files, name)
		return
	}
	was, known := s.files[name]
	if is.lacks = was.lacks; is != was {
		is.lacks = 0
	}
	is.lacks |= what
	if s.files == nil || !known && len(s.files) >= seenFiles {
		s.files = map[string]sight{}
	}
	s.files[name] = is
}
