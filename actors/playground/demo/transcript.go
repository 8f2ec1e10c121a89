package demo

import (
	"bufio"
	"encoding/json/v2"
	"os"
	"path/filepath"
	"regexp"

	acp "github.com/coder/acp-go-sdk"
)

const (
	roleUser  = "user"
	roleAgent = "agent"
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

func (t transcripts) start(id acp.SessionId) {
	if os.MkdirAll(t.dir, 0o700) == nil {
		t.append(id, nil)
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
