package session

import (
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/process"
)

// AgentPIDs tells which incarnation of which session's agent a process is, for whoever sees no token but a pid. An entry is owed by
// the agent's generation, so it is gone whatever ends that, and it means nothing any more as soon as the agent's token is revoked.
// Safe from any goroutine. The zero value is not ready.
type AgentPIDs struct {
	tokens *Tokens
	known  sync.Map // of process.Group's pid and start time to the SHA-256 of a token
	count  atomic.Int64
}

// pidKey is a process: a pid alone comes to mean another one once it is used again.
type pidKey struct {
	pid   int
	start uint64
}

// pidEntry is what a session's agent is to be found by.
type pidEntry struct {
	sha     [32]byte
	session string
}

// Agent is what a process was found to be.
type Agent struct {
	Caller  capability.Caller
	Session string          // the id of its session
	Ended   <-chan struct{} // closed when the identity ends: with the agent, or with its token
}

func newAgentPIDs(tokens *Tokens) *AgentPIDs { return &AgentPIDs{tokens: tokens} }

// Find tells which agent's leading process the one with that pid and start time (/proc/<pid>/stat, field 22) is.
func (a *AgentPIDs) Find(pid int, start uint64) (Agent, bool) {
	at, ok := a.known.Load(pidKey{pid, start})
	if !ok {
		return Agent{}, false
	}
	entry := at.(pidEntry)
	ended := a.tokens.Ended(entry.sha)
	caller, live := a.tokens.Resolve(entry.sha)
	return Agent{Caller: caller, Session: entry.session, Ended: ended}, live
}

// Len is how many agents can be found.
func (a *AgentPIDs) Len() int { return int(a.count.Load()) }

// identity is the entry of one generation of an agent, which may end before its process has begun.
type identity struct {
	pids  *AgentPIDs
	entry pidEntry

	mu    sync.Mutex // started and ended meet: on the goroutine that starts the process, and on that of a release
	at    pidKey
	ended bool
}

// started enters the process. It is called on the goroutine that started it, before anything is said to it.
func (i *identity) started(g process.Group) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended || g.Start == 0 || i.entry.sha == ([32]byte{}) { // without a token there is nothing to be found
		return
	}
	i.at = pidKey{g.PGID, g.Start}
	i.pids.known.Store(i.at, i.entry)
	i.pids.count.Add(1)
}

// end takes it out, for good.
func (i *identity) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	if i.at == (pidKey{}) {
		return
	}
	i.pids.known.Delete(i.at)
	i.pids.count.Add(-1)
	i.at = pidKey{}
}
