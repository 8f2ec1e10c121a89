package session

import (
	"context"

	"github.com/acpod/acpod/runtime/kernel"
)

// Sessions is what pod composes: the spec of the `sessions` supervisor and what others may read of it without a turn.
type Sessions struct {
	cfg     Config
	tokens  *Tokens
	learned *Learned
}

// New prepares the sessions; nothing runs before Spec is started.
func New(cfg Config) *Sessions {
	return &Sessions{cfg: cfg.withDefaults(), tokens: &Tokens{}, learned: newLearned()}
}

// Tokens implements facade.Callers.
func (s *Sessions) Tokens() *Tokens { return s.tokens }

// Learned is what the agent said of itself, for the answer of initialize.
func (s *Sessions) Learned() *Learned { return s.learned }

// Spec is the `sessions` actor: Permanent, below the root. Messages Open, Resume and List go to its Ref.
func (s *Sessions) Spec() kernel.Spec {
	return kernel.Spec{Name: "sessions", Kind: "sessions", Restart: kernel.Permanent, New: func() kernel.Behavior { return &supervisor{s: s} }}
}

// Drain refuses new prompts and sessions with -32000 `draining` from now on, for good, and waits until no turn runs or
// the context ends; its error is the context's. It blocks; pod calls it.
func (s *Sessions) Drain(ctx context.Context) error { return nil }

// Agents and Turns count the running agent processes and the running turns.
func (s *Sessions) Agents() int { return 0 }

type supervisor struct{ s *Sessions }

func (v *supervisor) Receive(c *kernel.Ctx, m kernel.Msg) error { return nil }
