package demo

import (
	"bufio"
	"encoding/json/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

const (
	roleUser   = "user"
	roleAgent  = "agent"
	roleFolder = "cwd" // the first line: where the session was opened
)

// entry is one line of a transcript.
type entry struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// transcripts keeps one file of entries a session. A demo: what cannot be written is lost, and load then says so.
type transcripts struct{ dir string }

var sessionName = regexp.MustCompile(`^demo-[a-z0-9]{26}$`)

func (t transcripts) path(id acp.SessionId) string { return filepath.Join(t.dir, string(id)+".jsonl") }

func (t transcripts) start(id acp.SessionId, folder string) {
	if os.MkdirAll(t.dir, 0o700) != nil {
		return
	}
	if _, err := os.Stat(t.path(id)); err != nil {
		t.add(id, roleFolder, folder)
	}
}

func (t transcripts) add(id acp.SessionId, role, text string) {
	if line, err := json.Marshal(entry{role, text}); err == nil {
		t.append(id, append(line, '\n'))
	}
}

func (t transcripts) append(id acp.SessionId, line []byte) {
	file, err := os.OpenFile(t.path(id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.Write(line)
}

func (t transcripts) read(id acp.SessionId) ([]entry, error) {
	if !sessionName.MatchString(string(id)) { // it becomes a file name
		return nil, os.ErrNotExist
	}
	file, err := os.Open(t.path(id))
	if err != nil {
		return nil, os.ErrNotExist
	}
	defer file.Close()
	var entries []entry
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 8<<20)
	for scanner.Scan() {
		var one entry
		if json.Unmarshal(scanner.Bytes(), &one) == nil {
			entries = append(entries, one)
		}
	}
	return entries, scanner.Err()
}

// copy makes another session that knows what this one knows.
func (t transcripts) copy(from, to acp.SessionId) error {
	if !sessionName.MatchString(string(from)) {
		return os.ErrNotExist
	}
	told, err := os.ReadFile(t.path(from))
	if err != nil {
		return os.ErrNotExist
	}
	return os.WriteFile(t.path(to), told, 0o600)
}

func (t transcripts) remove(id acp.SessionId) error {
	if !sessionName.MatchString(string(id)) {
		return os.ErrNotExist
	}
	return os.Remove(t.path(id))
}

// list names every session, the one last written first.
func (t transcripts) list() []acp.SessionInfo {
	files, err := os.ReadDir(t.dir)
	if err != nil {
		return nil
	}
	type dated struct {
		acp.SessionInfo
		at time.Time
	}
	var found []dated
	for _, file := range files {
		id := strings.TrimSuffix(file.Name(), ".jsonl")
		info, err := file.Info()
		if err != nil || !sessionName.MatchString(id) || id == file.Name() {
			continue
		}
		one := acp.SessionInfo{SessionId: acp.SessionId(id), Cwd: "/", UpdatedAt: acp.Ptr(info.ModTime().UTC().Format(time.RFC3339Nano))}
		if entries, err := t.read(one.SessionId); err == nil && len(entries) > 0 && entries[0].Role == roleFolder {
			one.Cwd = entries[0].Text
		}
		found = append(found, dated{one, info.ModTime()})
	}
	slices.SortFunc(found, func(a, b dated) int { return b.at.Compare(a.at) })
	infos := make([]acp.SessionInfo, len(found))
	for i := range found {
		infos[i] = found[i].SessionInfo
	}
	return infos
}

// firstTry is true once for each session.
func (t transcripts) firstTry(id acp.SessionId) bool {
	if !sessionName.MatchString(string(id)) {
		return false
	}
	file, err := os.OpenFile(t.path(id)+".tried", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}
