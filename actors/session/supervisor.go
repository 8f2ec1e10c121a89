package session

import (
	"context"
	"sync/atomic"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Sessions is what pod composes: the spec of the `sessions` supervisor and what others may read of it without a turn.
type Sessions struct {
	cfg        Config
	tokens     *Tokens
	pids       *AgentPIDs
	deliverer  *delivery.Deliverer // of Config, or one that writes nothing
	learned    *Learned
	gate       *gate
	draining   atomic.Bool
	turns      atomic.Int64
	agents     atomic.Int64
	merged     atomic.Int64 // updates that left as part of another frame
	living     atomic.Int64
	newID      func() string
	folders    func(workdir string, p *Params) (Folders, *jsonrpc.Error)
	agentSpec  func(agent.Config, kernel.Ref, string) kernel.Spec // of a session's agent
	learnAgent func(context.Context, agent.Config) (*agent.Info, error)
	quiet      chan struct{} // has room for one: a turn ended, and none runs
}

// New prepares the sessions; nothing runs before Spec is started.
func New(cfg Config) *Sessions {
	cfg = cfg.withDefaults()
	deliverer := cfg.Delivery
	if deliverer == nil {
		deliverer = delivery.New(delivery.Config{Mode: delivery.ACP, FacadeURL: cfg.FacadeURL})
	}
	tokens := &Tokens{}
	return &Sessions{deliverer: deliverer, cfg: cfg, tokens: tokens, pids: newAgentPIDs(tokens), learned: newLearned(), gate: newGate(&cfg), quiet: make(chan struct{}, 1),
		newID: newID, folders: resolveFolders, agentSpec: agent.Spec, learnAgent: agent.Learn}
}

// Tokens implements facade.Callers.
func (s *Sessions) Tokens() *Tokens { return s.tokens }

// AgentPIDs tells which agent a process is. Safe from any goroutine.
func (s *Sessions) AgentPIDs() *AgentPIDs { return s.pids }

// Learned is what the agent said of itself, for the answer of initialize.
func (s *Sessions) Learned() *Learned { return s.learned }

// Spec is the `sessions` actor: Permanent, below the root. Messages Open, Resume and List go to its Ref. Many sessions may
// crash without taking the others with them, each with its own backoff.
func (s *Sessions) Spec() kernel.Spec {
	return kernel.Spec{Name: "sessions", Kind: "sessions", Restart: kernel.Permanent, Intensity: supervision,
		Grace: s.cfg.Agent.LongestStop() + kernel.DefaultGrace, // an agent that is being learned is ended in a goroutine of the supervisor
		New:   func() kernel.Behavior { return newSupervisor(s) }}
}

// Drain refuses new prompts and sessions with -32000 `draining` from now on, for good, and waits until no turn runs or
// the context ends; its error is the context's. It blocks; pod calls it.
func (s *Sessions) Drain(ctx context.Context) error {
	s.draining.Store(true)
	for s.turns.Load() > 0 {
		select {
		case <-s.quiet:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Draining tells whether Drain was called.
func (s *Sessions) Draining() bool { return s.draining.Load() }

// Agents is how many agent processes there are, those that are being ended included.
func (s *Sessions) Agents() int { return int(s.agents.Load()) }

// Turns is how many turns run.
func (s *Sessions) Turns() int { return int(s.turns.Load()) }

// Living is how many sessions live, suspended ones not counted.
func (s *Sessions) Living() int { return int(s.living.Load()) }

func (s *Sessions) turnEnded() {
	if s.turns.Add(-1) == 0 {
		select {
		case s.quiet <- struct{}{}:
		default:
		}
	}
}
