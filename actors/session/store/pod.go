package store

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// podsFolder has a file for each pod that uses the folder.
const podsFolder = "pods"

// pod is this life of this pod: a name that no other has, and a file of that name, locked for as long as the process lives. The
// kernel lets go of the lock, whatever ends the process.
type pod struct {
	name string
	file *os.File
}

// newPod is called with the folder's lock, so that nobody takes its file for a dead pod's before it is locked.
func newPod(dir string) (*pod, error) {
	p := &pod{name: strings.ToLower(rand.Text())}
	f, err := os.OpenFile(filepath.Join(dir, podsFolder, p.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	p.file = f
	return p, nil
}

// close ends this life: its records are free.
func (p *pod) close() error {
	return errors.Join(os.Remove(p.file.Name()), p.file.Close())
}

// podLives tells whether the process of a pod lives. What cannot be known counts as life: two pods with one session are worse than none.
func podLives(dir, pod string) bool {
	if pod != filepath.Base(pod) || strings.HasPrefix(pod, ".") {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, podsFolder, pod), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	return flock(f, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// buryPods removes the files of pods that have died. Called with the folder's lock.
func buryPods(dir string) error {
	found, err := os.ReadDir(filepath.Join(dir, podsFolder))
	if err != nil {
		return err
	}
	for _, f := range found {
		if !podLives(dir, f.Name()) {
			_ = os.Remove(filepath.Join(dir, podsFolder, f.Name()))
		}
	}
	return nil
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
