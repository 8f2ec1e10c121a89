package bridge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acpod/acpod/runtime/door"
)

// Socket is the open Unix socket. It is opened once, by pod, and outlives the generations that serve it.
type Socket struct {
	*door.Socket
	path string
	node node
}

// node tells a file from another one of the same name.
type node struct {
	dev uint64
	ino uint64
}

// Path is where the socket is.
func (s *Socket) Path() string { return s.path }

// ErrInUse says that another process serves the socket.
var ErrInUse = errors.New("another process serves it: stop that one, or set agent.bridge_socket to another path")

const (
	longestPath = 107 // sun_path, with a zero behind it
	probeTime   = time.Second
	folderTime  = 5 * time.Second // how long another pod may be at the same point
)

// Open makes the socket: 0600, in a folder of mode 0700. A folder that there is not yet is made so; one that holds nothing else, or is
// own (OpenAB's), becomes it; any other is left as it is and must be writable by nobody else. A socket that nobody serves any more is
// replaced; one that somebody serves is left, with ErrInUse, and so is a file that is no socket. The new one takes its place in one step.
func Open(path string, own bool) (*Socket, error) {
	if len(path) > longestPath {
		return nil, fmt.Errorf("the path %q has %d bytes, and a socket's at most %d: set agent.bridge_socket to a shorter one", path, len(path), longestPath)
	}
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the path %q is not absolute: write an absolute one into agent.bridge_socket", path)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, advise(err)
	}
	folder, err := lock(dir)
	if err != nil {
		return nil, advise(err)
	}
	defer folder.Close() // and with it the lock
	if err := private(folder, filepath.Base(path), own); err != nil {
		return nil, err
	}
	if err := free(path); err != nil {
		return nil, err
	}
	return listen(path)
}

// advise says what can be done about what the system says.
func advise(err error) error {
	return fmt.Errorf("%w: set agent.bridge_socket to a path that can be written", err)
}

// lock holds the folder while its socket is looked at and replaced, so that two pods that start do not take it for free both.
func lock(dir string) (*os.File, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(folderTime); ; {
		err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Now().After(end) {
			break
		}
		<-time.After(10 * time.Millisecond) // nothing tells the end of another's lock but waiting for it without a bound
	}
	if err != nil {
		_ = folder.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return folder, nil
}

// private makes sure that nobody else can put another socket into the place of ours.
func private(folder *os.File, name string, own bool) error {
	info, err := folder.Stat()
	if err != nil {
		return advise(err)
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("the folder %s belongs to another user: set agent.bridge_socket to a path in a folder of your own", folder.Name())
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if !own {
		names, _ := folder.Readdirnames(2) // none: it is empty
		own = len(names) == 0 || len(names) == 1 && names[0] == name
	}
	switch {
	case own:
		if err := folder.Chmod(0o700); err != nil {
			return advise(err)
		}
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write into the folder %s: run `chmod go-w %s`, or set agent.bridge_socket to a path in a folder of its own", folder.Name(), folder.Name())
	}
	return nil
}

// free says why the path cannot be taken. A socket that refuses connections is one that a process left when it was killed.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return advise(err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is no socket and is left as it is: remove it, or set agent.bridge_socket to another path", path)
	}
	conn, err := net.DialTimeout("unix", path, probeTime)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%s: %w", path, ErrInUse)
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT):
		return nil
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
		return advise(err)
	default: // it does not answer, or has no room for one more
		return fmt.Errorf("%s: %w", path, ErrInUse)
	}
}

// listen opens the socket beside its place and moves it there, so that no moment is without a whole one.
func listen(path string) (*Socket, error) {
	beside := filepath.Join(filepath.Dir(path), "."+rand.Text()[:8])
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: beside, Net: "unix"})
	if err != nil {
		return nil, advise(err)
	}
	l.SetUnlinkOnClose(false)
	fail := func(err error) (*Socket, error) {
		_ = l.Close()
		_ = os.Remove(beside)
		return nil, advise(err)
	}
	if err := os.Chmod(beside, 0o600); err != nil {
		return fail(err)
	}
	at, err := nodeOf(beside)
	if err != nil {
		return fail(err)
	}
	socket, err := door.NewSocket(l)
	if err != nil {
		return fail(err)
	}
	if err := os.Rename(beside, path); err != nil {
		return fail(err)
	}
	return &Socket{Socket: socket, path: path, node: at}, nil
}

// Close closes the socket, and removes it where it is still ours.
func (s *Socket) Close() error {
	err := s.Socket.Close()
	if at, gone := nodeOf(s.path); gone == nil && at == s.node {
		_ = os.Remove(s.path)
	}
	return err
}

func nodeOf(path string) (node, error) {
	var stat syscall.Stat_t
	if err := syscall.Lstat(path, &stat); err != nil {
		return node{}, err
	}
	return node{stat.Dev, stat.Ino}, nil
}
