package demo

import (
	"context"
	"encoding/json/jsontext"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	acp "github.com/coder/acp-go-sdk"
)

// Stdio is what the agent talks through: In and Out carry ACP, one message a line, Err is for people.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Run serves one client on stdio until it hangs up or ctx ends. stateDir is where transcripts are kept; StateDir gives
// the documented place. behaviour is a list of the words in Behaviours, separated by commas.
func Run(ctx context.Context, stdio Stdio, stateDir, version, behaviour string) error {
	does, err := chosen(behaviour)
	if err != nil {
		return err
	}
	agent := &Agent{
		out:         &lines{to: stdio.Out},
		err:         stdio.Err,
		transcripts: transcripts{dir: stateDir},
		version:     version,
		does:        does,
		sessions:    map[acp.SessionId]*conversation{},
		opened:      map[string][]jsontext.Value{},
	}
	agent.tap = newTap(stdio.In, agent.arrived)
	conn := acp.NewAgentSideConnection(agent, agent.out, agent.tap)
	conn.SetLogger(slog.New(slog.DiscardHandler)) // its messages quote payloads
	agent.conn, agent.asked.out = conn, agent.out
	close(agent.tap.open)
	select {
	case <-conn.Done():
		agent.hangUp()
		return nil
	case <-ctx.Done():
		agent.hangUp()
		return ctx.Err()
	}
}

// StateDir is $XDG_STATE_HOME/acpod-demo, else ~/.local/state/acpod-demo.
func StateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "acpod-demo")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "acpod-demo")
}
