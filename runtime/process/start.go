package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Start starts a child. It blocks until the program runs or cannot be run (the time of a fork and an exec), so an
// actor calls it in c.Go. Whoever started a Process must Stop it, also when it ended by itself: only Stop makes sure
// that nothing of its group is left, and ends the goroutines that mind it. Errors are *StartError.
func Start(spec Spec) (*Process, error) {
	spec = spec.withDefaults()
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, &StartError{Program: "", Err: errors.New("no command is given")}
	}
	program := spec.Argv[0]
	path, err := lookPath(program, spec.Dir, spec.Env)
	if err != nil {
		return nil, &StartError{Program: program, Err: err}
	}
	closeInherited()

	cgroup, err := spec.Cgroups.make()
	if err != nil {
		return nil, &StartError{Program: program, Err: err}
	}
	pipes, err := newPipes()
	if err != nil {
		cgroup.close()
		return nil, &StartError{Program: program, Err: err}
	}
	p := &Process{
		spec:   spec,
		stdin:  newStdin(pipes.in, spec.StdinBytes, spec.StdinTimeout),
		stdout: newOutput(pipes.out),
		stderr: newStderrLog(spec.StderrBytes, spec.Log, spec.Secrets),
		exited: make(chan struct{}),
		gone:   make(chan struct{}),
		hurry:  make(chan struct{}),
		cgroup: cgroup,
	}
	attr := &os.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: pipes.child[:],
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if cgroup != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(cgroup.folder.Fd())
	}
	if attr.Env == nil {
		attr.Env = []string{} // nil would mean: ours
	}
	started := make(chan error, 1)
	go p.live(path, attr, started)
	err = <-started
	for _, f := range pipes.child {
		_ = f.Close()
	}
	if err != nil {
		_ = pipes.in.Close()
		_ = pipes.out.Close()
		_ = pipes.err.Close()
		cgroup.close()
		if folder := folderFault(spec.Dir); folder != nil { // the system tells it as it tells that there is no program
			err = folder
		}
		return nil, &StartError{Program: program, Err: plain(err)}
	}
	errs := newOutput(pipes.err)
	p.errs = errs
	p.minding.Go(func() { p.mindStdin() })
	p.minding.Go(func() { p.stderr.drain(errs); _ = errs.Close() })
	return p, nil
}

// folderFault is why nothing can run in that working directory, nil when it is one.
func folderFault(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("its working directory: %w", plain(err))
}

// live is the life of the leader, on one thread from the fork to the wait: PDEATHSIG comes when the thread that
// forked ends, and a Go thread may end at any time unless somebody holds it. It would be blocked in the wait anyway.
func (p *Process) live(path string, attr *os.ProcAttr, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child, err := ours.start(path, p.spec.Argv, attr, true)
	if err != nil && attr.Sys.UseCgroupFD && slices.ContainsFunc([]error{syscall.ENOSYS, syscall.EPERM, syscall.EINVAL}, func(no error) bool { return errors.Is(err, no) }) {
		attr.Sys.UseCgroupFD = false // no clone3, by an old kernel or by a sandbox: it enters its cgroup a moment later
		if child, err = ours.start(path, p.spec.Argv, attr, true); err == nil {
			if bad := enter(p.cgroup.dir, child.Pid); bad != nil && p.spec.Log != nil {
				p.spec.Log.Warn("the limits of a process cannot be set", "pid", child.Pid, "error", bad)
			}
		}
	}
	if err != nil {
		started <- err
		return
	}
	p.group = identify(child.Pid)
	if p.spec.Mark != "" {
		p.group.Mark = sha256.Sum256([]byte(p.spec.Mark))
	}
	p.began = time.Now()
	p.spec.Guardian.Add(p.group)
	ours.join(p)
	started <- nil
	state, err := ours.wait(child)
	p.exit = exitOf(state, err)
	if state != nil {
		p.spent.Store(int64(state.UserTime() + state.SystemTime()))
	}
	close(p.exited)
}

// identify reads what makes a group's number unambiguous; the leader was not waited for yet, so it is still there.
func identify(pid int) Group {
	g := Group{PGID: pid}
	if s, err := readStat(pid); err == nil {
		g.Start, g.SID = s.start, s.sid
	}
	return g
}

func exitOf(state *os.ProcessState, err error) Exit {
	if err != nil || state == nil {
		return Exit{Code: -1}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: ws.Signal()}
	}
	return Exit{Code: state.ExitCode()}
}

// pipes are the three pipes of a child; in, out and err are our ends.
type pipes struct {
	in, out, err *os.File
	child        [3]*os.File
}

func newPipes() (pipes, error) {
	var p pipes
	var opened []*os.File
	for i, ours := range []**os.File{&p.in, &p.out, &p.err} {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range opened {
				_ = f.Close()
			}
			return pipes{}, err
		}
		opened = append(opened, r, w)
		if i == 0 {
			p.child[i], *ours = r, w
		} else {
			p.child[i], *ours = w, r
		}
	}
	return p, nil
}

// lookPath finds a program as the child's environment says, not as ours does. A name with a slash is taken as it is,
// a relative one below dir.
func lookPath(name, dir string, environ []string) (string, error) {
	if strings.Contains(name, "/") {
		at := name
		if !filepath.IsAbs(at) && dir != "" {
			at = filepath.Join(dir, at)
		}
		if err := executable(at); err != nil {
			return "", err
		}
		return at, nil
	}
	path := env(environ, "PATH")
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) { // "" and "." would run what lies in a workdir
			continue
		}
		if at := filepath.Join(folder, name); executable(at) == nil {
			return at, nil
		}
	}
	return "", errors.New("not found in PATH " + strconv.Quote(path))
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return plain(err)
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return errors.New("not an executable file")
	}
	return nil
}

// plain takes the path out of an error: the message that wraps it names the program, escaped.
func plain(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// closeInherited marks what this process itself was given by whoever started it: a descriptor that is open by their
// mistake must not reach the children. What Go opens is marked already.
var closeInherited = sync.OnceFunc(func() {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
})
