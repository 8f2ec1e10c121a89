package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// diskBytes is the size of the file system: some hundred records of idempotency keys.
const diskBytes = 256 << 10

// Place is where a pod's config has to point.
type Place struct {
	State string // state.dir
	Audit string // audit.path
}

// Disk is the disk of one pod. Its methods are for one goroutine.
type Disk struct {
	folder string
	how    []string // the command that runs another in a namespace; nil = there is none, links have to do
	enter  []string // the options of nsenter that go there
	why    string   // why there is none
	pid    int
	hidden bool
}

// NewDisk makes a disk in a folder that is there. It tries what this machine allows, which takes some milliseconds.
func NewDisk(folder string) (*Disk, error) {
	d := &Disk{folder: filepath.Join(folder, "disk")}
	if err := os.MkdirAll(filepath.Join(d.folder, "state"), 0o700); err != nil {
		return nil, err
	}
	candidates := []struct{ how, enter []string }{
		{[]string{"unshare", "--mount", "--"}, []string{"--mount"}},
		{[]string{"unshare", "--user", "--map-root-user", "--mount", "--"}, []string{"--user", "--mount", "--preserve-credentials"}},
	}
	var last error
	for _, candidate := range candidates {
		if last = d.try(candidate.how); last == nil {
			d.how, d.enter = candidate.how, candidate.enter
			return d, nil
		}
	}
	d.why = fmt.Sprintf("this machine lets nobody mount: %v", last)
	return d, nil
}

// try finds out whether a file system can be mounted that way, and another one put over it.
func (d *Disk) try(how []string) error {
	if _, err := exec.LookPath("nsenter"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	script := mount(d.folder, "size=64k") + " && " + mount(d.folder, "ro,size=4k") + " && umount " + quote(d.folder)
	output, err := exec.CommandContext(ctx, how[0], append(how[1:len(how):len(how)], "/bin/sh", "-c", script)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %.200q", strings.Join(how, " "), err, output)
	}
	return nil
}

func mount(folder, options string) string {
	return "mount -t tmpfs -o mode=0700," + options + " acpod-chaos " + quote(folder)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Place is where state and audit records go.
func (d *Disk) Place() Place {
	return Place{State: filepath.Join(d.folder, "state"), Audit: filepath.Join(d.folder, "audit.jsonl")}
}

// Supported tells what can be done to state and audit together, and where one cannot be, why. Of the audit file alone everything can.
func (d *Disk) Supported() (enospc, readonly bool, why string) {
	return d.how != nil, d.how != nil, d.why
}

// Wrap gives the program to start in place of binary: it is binary, in a namespace in which the disk is mounted, under the same number.
// readonly: the disk cannot be written from the start.
func (d *Disk) Wrap(binary string, readonly bool) (string, error) {
	if d.how == nil {
		return binary, nil
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return "", err
	}
	inner := mount(d.folder, "size="+strconv.Itoa(diskBytes)) + " && mkdir -m 0700 " + quote(d.Place().State)
	if readonly {
		inner = mount(d.folder, "ro,size=4k")
	}
	inner += " && exec " + quote(binary) + ` "$@"`
	program := filepath.Join(filepath.Dir(d.folder), "on-disk")
	script := "#!/bin/sh\nexec " + strings.Join(d.how, " ") + " /bin/sh -c " + quote(inner) + ` acpod "$@"` + "\n"
	return program, os.WriteFile(program, []byte(script), 0o700)
}

// Bind tells the disk which process was started: it is the way into its namespace.
func (d *Disk) Bind(pid int) { d.pid = pid }

// inside is a path as this process reaches it.
func (d *Disk) inside(path string) string {
	if d.how == nil {
		return path
	}
	return fmt.Sprintf("/proc/%d/root%s", d.pid, path)
}

const filler = "filler"

// Fill leaves no byte on the disk. Without a namespace every write of the audit file fails, that of state does not.
func (d *Disk) Fill() error {
	if d.how == nil {
		return d.divert("/dev/full")
	}
	file, err := os.OpenFile(d.inside(filepath.Join(d.folder, filler)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
	return nil
}

// Drain makes room again.
func (d *Disk) Drain() error {
	if d.how == nil {
		return d.restore()
	}
	return os.Remove(d.inside(filepath.Join(d.folder, filler)))
}

// ReadOnly lets nothing be made or opened for writing on the disk; what is open already can be written on. Without a namespace that
// is so for the audit file alone.
func (d *Disk) ReadOnly() error {
	if d.how == nil {
		return d.divert(filepath.Join(d.folder, "no", "such", "folder", "audit.jsonl"))
	}
	d.hidden = true
	return d.in(mount(d.folder, "ro,size=4k"))
}

// Writable ends that.
func (d *Disk) Writable() error {
	if d.how == nil {
		return d.restore()
	}
	d.hidden = false
	return d.in("umount " + quote(d.folder))
}

// in runs a command in the namespace.
func (d *Disk) in(command string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	arguments := append([]string{"--target", strconv.Itoa(d.pid)}, d.enter...)
	output, err := exec.CommandContext(ctx, "nsenter", append(arguments, "--", "/bin/sh", "-c", command)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %.200q", command, err, bytes.TrimSpace(output))
	}
	return nil
}

// divert puts a link where the audit file is and keeps the file aside.
func (d *Disk) divert(target string) error {
	audit := d.Place().Audit
	if info, err := os.Lstat(audit); err == nil && info.Mode().IsRegular() {
		if err := os.Rename(audit, audit+".kept"); err != nil {
			return err
		}
	}
	_ = os.Remove(audit + ".link") // of an earlier try
	if err := os.Symlink(target, audit+".link"); err != nil {
		return err
	}
	return os.Rename(audit+".link", audit)
}

func (d *Disk) restore() error {
	audit := d.Place().Audit
	if err := os.Rename(audit+".kept", audit); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Remove(audit)
}

// Audit reads the audit file as the pod sees it; nothing when there is none.
func (d *Disk) Audit() ([]byte, error) {
	path := d.Place().Audit
	if d.how == nil {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			path += ".kept"
		}
	}
	file, err := os.Open(d.inside(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}
