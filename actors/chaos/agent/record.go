package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The files of a folder of records: one for each process, one with every strike, one that counts processes.
const (
	processFile = "process-"
	strikeFile  = "strikes"
	countFile   = "count"
)

// Enter writes this process into the folder of records and returns its ordinal there, from 0.
func Enter(folder, role string) (ordinal uint64, err error) {
	pid := os.Getpid()
	began, _, err := startOf(pid)
	if err != nil {
		return 0, err
	}
	entry := fmt.Sprintf("%d %s %d %s\n", pid, began, syscall.Getpgrp(), role)
	path := filepath.Join(folder, processFile+strconv.Itoa(pid)+"-"+began)
	if err := os.WriteFile(path, []byte(entry), 0o600); err != nil {
		return 0, err
	}
	return count(filepath.Join(folder, countFile))
}

// count takes the next number, whatever other processes do at the same time.
func count(path string) (uint64, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	var text [20]byte
	n, _ := file.ReadAt(text[:], 0) // a new file is empty
	number, _ := strconv.ParseUint(string(text[:n]), 10, 64)
	_, err = file.WriteAt([]byte(strconv.FormatUint(number+1, 10)), 0)
	return number, err
}

// note writes a strike down; O_APPEND keeps the lines of several processes apart.
func note(folder string, s Strike) {
	if folder == "" {
		return
	}
	file, err := os.OpenFile(filepath.Join(folder, strikeFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return // the run misses it in its report and says so
	}
	_, _ = fmt.Fprintf(file, "%s %d\n", s, os.Getpid())
	_ = file.Close()
}

// Records is a folder in which agents write down that they live and what they do wrong.
type Records struct{ Folder string }

// Recorded is one process that was there.
type Recorded struct {
	PID, Group int
	Role       string
	began      string
}

// Processes are all that ever entered themselves.
func (r Records) Processes() ([]Recorded, error) {
	files, err := filepath.Glob(filepath.Join(r.Folder, processFile+"*"))
	if err != nil {
		return nil, err
	}
	all := make([]Recorded, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var p Recorded
		if n, _ := fmt.Sscanf(string(text), "%d %s %d %s", &p.PID, &p.began, &p.Group, &p.Role); n == 4 {
			all = append(all, p) // a shorter one is just being written
		}
	}
	return all, nil
}

// Living are those that live still. A zombie does not: it waits for nothing but its parent.
func (r Records) Living() ([]Recorded, error) {
	all, err := r.Processes()
	if err != nil {
		return nil, err
	}
	living := all[:0]
	for _, p := range all {
		if began, state, err := startOf(p.PID); err == nil && began == p.began && state != "Z" && state != "X" {
			living = append(living, p)
		}
	}
	return living, nil
}

// Struck counts the strikes that happened.
func (r Records) Struck() (map[Strike]int, error) {
	text, err := os.ReadFile(filepath.Join(r.Folder, strikeFile))
	if os.IsNotExist(err) {
		return map[Strike]int{}, nil
	}
	if err != nil {
		return nil, err
	}
	struck := map[Strike]int{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		if s, err := ParseStrike(name); err == nil {
			struck[s]++
		}
	}
	return struck, nil
}

// startOf reads when a process began, in clock ticks since the machine did, and its state; together with its number
// that names it for good.
func startOf(pid int) (began, state string, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", "", err
	}
	// The name in brackets may hold anything; behind the last bracket the third field begins.
	_, rest, found := lastCut(string(text), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return "", "", fmt.Errorf("/proc/%d/stat has another form", pid)
	}
	return fields[19], fields[0], nil
}

func lastCut(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}
