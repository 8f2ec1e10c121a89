package pod

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/acpod/acpod/actors/capability"
)

const (
	ledgerKeys    = 16384    // remembered at most; the oldest is forgotten first
	ledgerBytes   = 16 << 20 // of the file; past it, it is written anew with what is still remembered
	ledgerLine    = 8 << 10  // a longer line is not one of ours
	ledgerName    = "idempotency.jsonl"
	ledgerVersion = 2 // 1 knew a session by its tag of 32 bits alone
)

// fileLedger keeps the started idempotency keys in the state folder, so that a repeat after a restart of the pod is known for
// what it is. A start is on the disk before the call is sent. It implements [capability.Ledger] for all desks of the pod; it
// is no actor's state but the pod's file, and the lock orders its writers.
//
// Pods that share a folder append to one file, each knowing what stood there when it started; only one that is alone with the file
// writes it anew.
type fileLedger struct {
	path      string
	retention time.Duration
	now       func() time.Time

	mu    sync.Mutex
	file  *os.File
	size  int64
	known map[capability.KeyRecord]ledgerEntry // by the record without its arguments
	order []capability.KeyRecord

	damaged int    // lines that were there and could not be read
	aside   string // where the file with them is kept
}

type ledgerEntry struct {
	at   time.Time
	args [32]byte
}

// ledgerRecord is one line of the file.
type ledgerRecord struct {
	V       int       `json:"v"`
	At      time.Time `json:"at"`
	Session string    `json:"session"`
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	Key     string    `json:"key"`
	Args    string    `json:"args_sha256"`
	Forget  bool      `json:"forget,omitzero"` // the call was never sent
}

// openLedger reads what is remembered. The folder must exist.
func openLedger(folder string, retention time.Duration, now func() time.Time) (*fileLedger, error) {
	l := &fileLedger{path: filepath.Join(folder, ledgerName), retention: retention, now: now, known: map[capability.KeyRecord]ledgerEntry{}}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("the record of idempotency keys: %w", err)
	}
	if err := l.read(); err != nil {
		_ = l.file.Close()
		return nil, fmt.Errorf("the record of idempotency keys: %w", err)
	}
	if l.damaged > 0 { // before it is written anew without them
		l.aside = l.path + ".damaged-" + now().UTC().Format("20060102T150405.000")
		if err := os.Link(l.path, l.aside); err != nil {
			_ = l.file.Close()
			return nil, fmt.Errorf("the record of idempotency keys has %d lines that cannot be read, and cannot be kept: %w", l.damaged, err)
		}
	}
	l.rewrite()
	return l, nil
}

// open takes the file that stands under the name once the lock is held: another pod may have replaced it meanwhile.
func (l *fileLedger) open() error {
	for {
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
			_ = f.Close()
			return err
		}
		held, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return err
		}
		if named, err := os.Stat(l.path); err == nil && os.SameFile(held, named) {
			l.file = f
			return nil
		}
		_ = f.Close()
	}
}

// read takes in the file. The last line of a pod that was killed may be cut: its call was never sent. Any other line that cannot be read
// was a key, and is counted.
func (l *fileLedger) read() error {
	in := bufio.NewReaderSize(l.file, ledgerLine)
	whole := true // the line began where this piece begins
	for {
		piece, err := in.ReadSlice('\n')
		l.size += int64(len(piece))
		switch {
		case err == nil && whole:
			l.apply(piece)
		case err == nil, errors.Is(err, bufio.ErrBufferFull): // a piece of a line that is too long
			if err == nil {
				l.damaged++
			}
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
		whole = err == nil
	}
}

func (l *fileLedger) apply(line []byte) {
	var r ledgerRecord
	if json.Unmarshal(line, &r) != nil || r.V < 1 || r.V > ledgerVersion {
		l.damaged++
		return
	}
	slot := capability.KeyRecord{Session: r.Session, Server: r.Server, Tool: r.Tool, Key: r.Key}
	if r.Forget {
		l.drop(slot)
		return
	}
	args, err := hex.DecodeString(r.Args)
	if err != nil || len(args) != 32 {
		l.damaged++
		return
	}
	if l.now().Sub(r.At) > l.retention {
		return
	}
	l.remember(slot, ledgerEntry{r.At, [32]byte(args)})
}

func (l *fileLedger) remember(slot capability.KeyRecord, e ledgerEntry) {
	if _, known := l.known[slot]; known {
		return
	}
	if len(l.order) >= ledgerKeys {
		delete(l.known, l.order[0])
		l.order = l.order[1:]
	}
	// What it is kept by must not keep the frame alive that it came in.
	slot.Session, slot.Server, slot.Tool, slot.Key = strings.Clone(slot.Session), strings.Clone(slot.Server), strings.Clone(slot.Tool), strings.Clone(slot.Key)
	l.known[slot] = e
	l.order = append(l.order, slot)
}

func (l *fileLedger) drop(slot capability.KeyRecord) {
	if _, known := l.known[slot]; !known {
		return
	}
	delete(l.known, slot)
	for i, s := range l.order {
		if s == slot {
			l.order = append(l.order[:i:i], l.order[i+1:]...)
			return
		}
	}
}

// Start implements capability.Ledger.
func (l *fileLedger) Start(_ context.Context, r capability.KeyRecord) (*capability.KeyRecord, error) {
	slot := r
	slot.ArgsSHA = [32]byte{}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if seen := l.find(slot, now); seen != nil {
		return seen, nil
	}
	if err := l.append(slot, ledgerEntry{now, r.ArgsSHA}, false); err != nil {
		return nil, fmt.Errorf("the record of idempotency keys cannot be written: %w; make room in %s", err, filepath.Dir(l.path))
	}
	l.remember(slot, ledgerEntry{now, r.ArgsSHA})
	return nil, nil
}

// Seen implements capability.Ledger.
func (l *fileLedger) Seen(_ context.Context, r capability.KeyRecord) *capability.KeyRecord {
	r.ArgsSHA = [32]byte{}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.find(r, l.now())
}

// find is the record of a slot, nil when there is none within the retention. Called with the lock.
func (l *fileLedger) find(slot capability.KeyRecord, now time.Time) *capability.KeyRecord {
	for _, at := range []capability.KeyRecord{slot, tagged(slot)} {
		e, known := l.known[at]
		if known && now.Sub(e.at) <= l.retention {
			seen := slot
			seen.ArgsSHA = e.args
			return &seen
		}
		if known {
			l.drop(at)
		}
	}
	return nil
}

// Forget implements capability.Ledger.
func (l *fileLedger) Forget(_ context.Context, r capability.KeyRecord) error {
	slot := r
	slot.ArgsSHA = [32]byte{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.known[slot]; !known {
		return nil
	}
	l.drop(slot)
	return l.append(slot, ledgerEntry{l.now(), r.ArgsSHA}, true)
}

// tagged is where version 1 would have kept a key: by the session's tag. A key of before an update is known after it, and may
// within its retention be taken for that of another session, as it might before.
func tagged(slot capability.KeyRecord) capability.KeyRecord {
	if len(slot.Session) > tagDigits {
		slot.Session = "#" + slot.Session[:tagDigits]
	}
	return slot
}

// tagDigits are those of an acp.SessionTag, which the acp.SessionSum begins with.
const tagDigits = 8

// append writes one line and has it on the disk when it returns. Called with the lock.
func (l *fileLedger) append(slot capability.KeyRecord, e ledgerEntry, forget bool) error {
	line, err := ledgerText(slot, e, forget)
	if err != nil {
		return err
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	if l.size > ledgerBytes {
		l.rewrite()
	}
	return nil
}

func ledgerText(slot capability.KeyRecord, e ledgerEntry, forget bool) ([]byte, error) {
	line, err := json.Marshal(ledgerRecord{
		V: ledgerVersion, At: e.at.UTC(), Session: slot.Session, Server: slot.Server, Tool: slot.Tool, Key: slot.Key,
		Args: hex.EncodeToString(e.args[:]), Forget: forget,
	})
	return append(line, '\n'), err
}

// rewrite replaces the file by what is remembered, when nobody else has it open. That it fails costs only space. Called with
// the lock, or before anybody else knows the ledger.
func (l *fileLedger) rewrite() {
	if syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		// A failed upgrade may have given the shared lock up.
		_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_SH)
		return
	}
	size, err := l.replace()
	if err != nil {
		_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_SH)
		return
	}
	old := l.file
	if err := l.open(); err != nil {
		return // what is appended to the old file from now on is lost with the pod
	}
	_ = old.Close()
	l.size = size
}

// replace writes what is remembered under the file's name, a line at a time.
func (l *fileLedger) replace() (size int64, err error) {
	f, err := renameio.NewPendingFile(l.path, renameio.WithPermissions(0o600))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Cleanup() }()
	out := bufio.NewWriter(f)
	for _, slot := range l.order {
		line, err := ledgerText(slot, l.known[slot], false)
		if err != nil {
			return 0, err
		}
		n, err := out.Write(line)
		size += int64(n)
		if err != nil {
			return 0, err
		}
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return size, f.CloseAtomicallyReplace()
}

// close ends the use of the file; every start was on the disk before.
func (l *fileLedger) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close()
}
