package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/chaos/caller"
	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/actors/chaos/watch"
)

// run is one run. Its fields are set before anybody reads them.
type run struct {
	o       Options
	book    *invariant.Book
	faults  *fault.Set
	dice    fault.Dice
	tally   *ledger.Tally // of calls
	turns   *ledger.Tally // of prompts
	doings  *ledger.Tally
	calls   *ledger.Calls
	secrets *watch.Secrets
	traffic peer.Traffic
	states  []*watch.State
	arenas  []*arena
	agents  *agents
	machine *machinery
	phase   atomic.Value // string
	began   time.Time
	attack  time.Duration
}

// Run attacks. An error says that it could not: a broken promise is no error but stands in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	faults, err := fault.Parse(o.Faults)
	if err != nil {
		return nil, err
	}
	r := &run{
		o: o, faults: faults, dice: fault.NewDice(o.Seed), tally: ledger.NewTally(), turns: ledger.NewTally(), doings: ledger.NewTally(),
		began: time.Now(),
	}
	r.phase.Store("starts")
	seen := newEvidence(o, r.pods)
	defer seen.close()
	r.book = invariant.NewBook(seen.breach)
	r.calls = ledger.NewCalls(r.book)
	r.secrets = watch.NewSecrets(r.book)
	for _, text := range []string{server.ResultCanary, caller.ArgumentCanary, environmentCanary} {
		r.secrets.Add(text)
	}
	if err := r.start(ctx); err != nil {
		r.stop()
		return nil, err
	}
	stopped := r.progress()
	err = r.everything(ctx)
	stopped()
	report := r.report()
	r.stop()
	report.Invariants = r.book.Verdicts()
	return report, err
}

func (r *run) pods() (pods []*pod.Pod) {
	for _, s := range r.states {
		pods = append(pods, s.Pod)
	}
	return pods
}

// start finds the pod, or starts those that the faults need.
func (r *run) start(ctx context.Context) error {
	if !r.o.Spawn {
		p := pod.AttachKeyed(r.o.Target, r.o.Debug, r.o.Key, r.o.DebugKey)
		if err := r.enter(ctx, p); err != nil {
			return err
		}
		r.secrets.Add(r.o.Key)
		state := r.watchOver(p, "t")
		a := arena{pod: p, state: state, key: r.o.Key, limits: documented, extensions: r.o.Extensions, sessions: r.o.Sessions, rate: r.o.Rate, keyed: usuallyKeyed}
		var err error
		if a.prompted, err = r.worldOf(&a, r.faults).Probe(ctx); err != nil {
			return fmt.Errorf("the pod at %s: %w", r.o.Target, err)
		}
		r.arenas = append(r.arenas, r.newArena(a))
		r.skipSpawned()
		if a.prompted {
			r.skipCallers()
		}
		return nil
	}
	if err := r.startTools(ctx); err != nil {
		return err
	}
	if err := r.startAgents(ctx); err != nil {
		return err
	}
	return r.startMachine(ctx)
}

// watchOver enters a pod into what is looked at.
func (r *run) watchOver(p *pod.Pod, name string) *watch.State {
	s := &watch.State{Pod: p, Book: r.book, Secrets: r.secrets, Name: name, Factor: r.o.MemoryFactor}
	r.states = append(r.states, s)
	return s
}

// goEnvironment is what a pod built with the race detector is told: a race is to end it, not to be a line among others.
func goEnvironment() []string { return []string{"GORACE=halt_on_error=1"} }

func (r *run) skipSpawned() {
	for _, f := range fault.Table() {
		if f.Spawn && r.faults.On(f.Name) {
			r.faults.Skip(f.Name, "needs a pod that this program has started: --spawn")
		}
	}
}

// skipCallers is for a pod whose agent makes the calls: nobody of ours has an HTTP request of them that could be left or taken back.
func (r *run) skipCallers() {
	for _, name := range []string{"abort", "cancelrace"} {
		if r.faults.On(name) {
			r.faults.Skip(name, `the demo agent makes the calls: it needs agent.driver = "none"`)
		}
	}
}

// everything is the run from the first client to the last.
func (r *run) everything(ctx context.Context) error {
	r.phase.Store("warms up")
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	watching, look := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	for _, s := range r.states {
		if s.Pod.Debug() == "" {
			continue
		}
		watchers.Go(func() { r.watch(watching, s) })
	}
	r.phase.Store("attacks")
	r.assail(ctx)
	r.phase.Store("comes to rest")
	look()
	watchers.Wait()
	r.calls.Close()
	for _, s := range r.states {
		if s.Pod.Debug() == "" {
			continue
		}
		s.Rest(ctx, restPatience, watch.Slack{Goroutines: 8, FDs: 8})
		r.keep(ctx, s)
	}
	return ctx.Err()
}

// patience is how long a pod may take for what it does at once, on a loaded machine.
const patience = time.Minute

// restPatience is how long a pod may take to come to rest: half-open connects and unanswered steps have 30 s (docs/limits.md).
const restPatience = 120 * time.Second

// watch looks at a pod once a second; a large tree less often, because looking is work for the pod too.
func (r *run) watch(ctx context.Context, s *watch.State) {
	pause := time.Second + time.Duration(r.o.Sessions/500)*time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Pod.Ended():
			r.book.Break(invariant.Alive, nil, "pod %s ended by itself; the end of its log: %q", s.Name, s.Pod.LogTail(8))
			return
		case <-time.After(pause):
		}
		_, _ = s.Look(ctx)
	}
}

// warmUp lets one client come and go at each pod, so that what a pod makes once is made before its baseline is taken.
func (r *run) warmUp(ctx context.Context) error {
	for _, a := range r.arenas {
		a.warmUp(ctx, r)
	}
	if r.agents != nil {
		if err := r.agents.warmUp(ctx, r); err != nil {
			return err
		}
	}
	for _, s := range r.states {
		if err := r.settle(ctx, s, patience); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until a pod is at rest, at most for patience, and takes its baseline.
func (r *run) settle(ctx context.Context, s *watch.State, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		tree, err := s.Pod.Tree(ctx)
		unrest := ""
		if err == nil {
			unrest = tree.Unrest()
		}
		switch {
		case errors.Is(err, pod.ErrNoDebug):
			return nil
		case err == nil && unrest == "", !r.o.Spawn:
			return s.Baseline(ctx)
		case time.Now().After(end) && err == nil: // what one client has left behind is a breach already
			s.Resting(tree, "before the attack "+unrest)
			return s.Baseline(ctx)
		case time.Now().After(end):
			return fmt.Errorf("the tree of pod %s cannot be read before the attack: %w", s.Name, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
