package pins

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

const (
	fileName = "pins.jsonl"
	lockName = "pins.lock"

	lockPatience = 2 * time.Second
	lockRetry    = 10 * time.Millisecond

	// slack is how much of the file may be old before it is written anew, beside as much as is not.
	slack = 1 << 20
)

// journal is the file. It is used by one goroutine at a time: [New], then the actor's.
type journal struct {
	dir   string
	table *table
	log   *slog.Logger
	now   func() time.Time

	seen os.FileInfo // the file that was read; nil = none
	id   string      // of its header
	read int64       // how much of it, whole lines
}

func (j *journal) path() string { return filepath.Join(j.dir, fileName) }

// damage is a file, or a line of it, that cannot be read.
type damage struct {
	line  int64 // where it begins
	cause error
}

func (d *damage) Error() string { return fmt.Sprintf("at byte %d: %v", d.line, d.cause) }
func (d *damage) Unwrap() error { return d.cause }

// errNewer is a file of another version.
var errNewer = errors.New("was written by a newer acpod; update this one, or move the file away and let all tools be pinned anew")

// load reads the file for the first time.
func (j *journal) load() error {
	err := j.catchUp()
	if bad := (*damage)(nil); errors.As(err, &bad) {
		err = j.sync(context.Background()) // which sees the same, and moves it aside
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.path(), err)
	}
	return nil
}

// changed reports that somebody else wrote the file since it was read.
func (j *journal) changed() bool {
	info, err := os.Stat(j.path())
	if err != nil {
		return j.seen != nil
	}
	return j.seen == nil || !os.SameFile(info, j.seen) || info.Size() != j.read || !info.ModTime().Equal(j.seen.ModTime())
}

// catchUp takes in what others wrote. A last line without its end is one that is being written, or whose writer died.
func (j *journal) catchUp() error {
	f, err := os.Open(j.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if j.seen != nil { // somebody removed it under us: what is known is written anew
			j.seen, j.read = nil, 0
			j.table.rewrite()
		}
		return nil
	case err != nil:
		return &damage{0, err}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return &damage{0, err}
	}
	h, err := firstLine(f)
	if err != nil {
		return err
	}
	anew, from := j.seen == nil || h.ID != j.id || info.Size() < j.read, j.read
	if anew {
		from = 0
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return &damage{from, err}
	}
	in := &intake{table: j.table}
	if anew && j.seen != nil {
		in.told = map[key]struct{}{}
	}
	end, err := in.readAll(f, from)
	if err != nil {
		return err
	}
	j.seen, j.id, j.read = info, h.ID, end
	return nil
}

// readAll takes in whole lines from there on and returns where the last of them ends. A line that cannot be read does not keep
// the ones behind it from being read.
func (in *intake) readAll(f io.Reader, at int64) (int64, error) {
	defer in.publish()
	var bad error
	lines := bufio.NewReaderSize(f, lineBytes)
	for {
		line, err := lines.ReadSlice('\n')
		from := at
		at += int64(len(line))
		long := false
		for ; errors.Is(err, bufio.ErrBufferFull); long = true {
			line, err = lines.ReadSlice('\n')
			at += int64(len(line))
		}
		switch {
		case errors.Is(err, io.EOF):
			if bad == nil {
				in.missing()
			}
			return from, bad
		case err != nil:
			return from, &damage{from, err}
		case long:
			err = fmt.Errorf("a line is longer than %d bytes", lineBytes)
		case from == 0: // the header, which was read
			in.fresh()
		default:
			err = in.line(line)
		}
		if err != nil && bad == nil {
			bad = &damage{from, err}
		}
	}
}

// firstLine reads the header.
func firstLine(f io.Reader) (h header, err error) {
	line, err := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return h, &damage{0, errors.New("the first line is missing")}
	case err != nil:
		return h, &damage{0, err}
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, &damage{0, err}
	}
	switch {
	case h.Pins > fileVersion:
		return h, errNewer
	case h.Pins < 1 || h.ID == "":
		return h, &damage{0, errors.New("the first line names no version or no id")}
	}
	return h, nil
}

// sync takes in what others wrote and writes what the file does not say yet.
func (j *journal) sync(ctx context.Context) error {
	unlock, err := lock(ctx, j.dir)
	if err != nil {
		return err
	}
	defer unlock()
	err = j.catchUp()
	if bad := (*damage)(nil); errors.As(err, &bad) {
		if err := j.aside(bad); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	work := j.table.take()
	if work.none() {
		return nil
	}
	size, cut := j.size()
	if work.whole || cut || size == 0 || size > j.table.text()+slack {
		err = j.rewrite()
	} else {
		err = j.append(work)
	}
	if err != nil {
		j.table.rewrite() // which says all that work did
		return fmt.Errorf("%s cannot be written: %w; make room in %s", fileName, err, j.dir)
	}
	return nil
}

// size of the file, and whether its last line has no end. Called with the lock, after catchUp.
func (j *journal) size() (size int64, cut bool) {
	info, err := os.Stat(j.path())
	if err != nil {
		return 0, false
	}
	return info.Size(), info.Size() != j.read
}

// aside moves a damaged file out of the way, and says so: from now on no tool is new by itself.
func (j *journal) aside(bad *damage) error {
	to := fmt.Sprintf("%s.damaged-%s", j.path(), j.now().UTC().Format("20060102T150405.000000000"))
	if err := os.Rename(j.path(), to); err != nil {
		return fmt.Errorf("cannot be read (%w) nor moved aside: %w; move it away", bad, err)
	}
	j.seen, j.read = nil, 0
	j.table.doubt.Store(true)
	j.table.rewrite()
	j.log.Error("the file of pins is damaged and was moved aside; tools whose pin could not be read are held back until you accept them: acpod mcp pins",
		"file", to, "cause", bad.Error(), "read", j.table.pins.Load())
	return nil
}

// append writes a line for each change. Called with the lock.
func (j *journal) append(work dirty) error {
	text, err := j.lines(work)
	if err != nil || len(text) == 0 {
		return err
	}
	return j.write(text)
}

// write appends lines and has them on the disk. Called with the lock.
func (j *journal) write(text []byte) error {
	f, err := os.OpenFile(j.path(), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	j.seen, j.read = info, info.Size()
	return nil
}

// rewrite replaces the file by what is known, when it is on the disk. Called with the lock.
func (j *journal) rewrite() error {
	f, err := renameio.NewPendingFile(j.path(), renameio.WithPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	out := bufio.NewWriter(f)
	h := header{fileVersion, rand.Text()}
	if err := j.table.write(out, h, j.now()); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	info, err := os.Stat(j.path())
	if err != nil {
		return err
	}
	j.seen, j.id, j.read = info, h.ID, info.Size()
	return nil
}

// lock is held by whoever writes the file, for some milliseconds. The file beside it is never replaced.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(lockPatience)
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Now().After(deadline) {
			_ = f.Close()
			return nil, fmt.Errorf("%s is held by another process: %w", lockName, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}
