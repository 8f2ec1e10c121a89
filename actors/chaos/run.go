package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/chaos/caller"
	"github.com/acpod/acpod/actors/chaos/extension"
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
	world   *extension.World
	callers *caller.Callers
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
	for _, text := range []string{server.ResultCanary, caller.ArgumentCanary} {
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
	if o.Spawn {
		r.stop()
		report.Invariants = r.book.Verdicts()
	}
	return report, err
}

func (r *run) pods() (pods []*pod.Pod) {
	for _, s := range r.states {
		pods = append(pods, s.Pod)
	}
	return pods
}

// start finds the pods, or starts them, and makes the world around them.
func (r *run) start(ctx context.Context) error {
	key, limits := r.o.Key, documented
	var p *pod.Pod
	if r.o.Spawn {
		limits = ownLimits
		key = fmt.Sprintf("cnry-key-%016x", r.dice.Of("key", 0, 0).Uint64())
		dir := filepath.Join(r.o.Dir, "t")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		audit, state := auditFile(dir), stateDir(dir)
		started, err := pod.Start(ctx, pod.Spec{Binary: r.o.Binary, TOML: config(r.o, key, audit, state), Dir: dir, Env: goEnvironment()})
		if err != nil {
			return err
		}
		started.OnLog(watch.Lines{Book: r.book, Secrets: r.secrets, JSON: true, Where: "log of pod t"}.Judge)
		p = started
	} else {
		p = pod.AttachKeyed(r.o.Target, r.o.Debug, key, r.o.DebugKey)
		r.skipSpawned()
	}
	r.secrets.Add(key)
	r.states = append(r.states, &watch.State{Pod: p, Book: r.book, Secrets: r.secrets, Name: "t", Factor: r.o.MemoryFactor})
	r.world = &extension.World{
		ACP: p.ACP(), Key: key, Dice: r.dice, Faults: r.faults, Book: r.book, Calls: r.calls, Sessions: ledger.NewSessions(r.book),
		Doings: r.doings, Traffic: &r.traffic, Limits: limits, Secret: r.secrets.Add,
	}
	r.world.Begin(r.o.Sessions)
	r.callers = caller.New(caller.Options{
		Dice: r.dice, Faults: r.faults, Book: r.book, Calls: r.calls, Tally: r.tally, Rate: r.o.Rate, Pick: r.pick,
		Tools: tools(), Bound: limits.Tunnel + limits.Orphan + extension.Patience, Request: limits.Request, Result: limits.Result,
		Patient: limits.Tunnel, Open: 2000,
	})
	r.world.Revoked = r.callers.Revoked
	return nil
}

// goEnvironment is what a pod built with the race detector is told: a race is to end it, not to be a line among others.
func goEnvironment() []string { return []string{"GORACE=halt_on_error=1"} }

func tools() (all []caller.Tool) {
	for _, t := range server.Tools {
		all = append(all, caller.Tool{Name: t.Name, ReadOnly: t.ReadOnly})
	}
	return all
}

// pick chooses a session for a call: the one drawn, or the next one that is open.
func (r *run) pick(intN func(int) int) (caller.Target, bool) {
	places := r.world.Directory
	if len(places) == 0 {
		return caller.Target{}, false
	}
	first := intN(len(places))
	for i := range min(len(places), 64) {
		if entry := places[(first+i)%len(places)].Load(); entry != nil {
			return caller.Target{Session: entry.Session, URL: entry.URL, Token: entry.Token, Place: entry.Place}, true
		}
	}
	return caller.Target{}, false
}

func (r *run) skipSpawned() {
	for _, f := range fault.Table() {
		if f.Spawn && r.faults.On(f.Name) {
			r.faults.Skip(f.Name, "needs a pod that this program has started: --spawn")
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
		watchers.Go(func() { r.watch(watching, s) })
	}
	r.phase.Store("attacks")
	r.assail(ctx)
	r.phase.Store("comes to rest")
	look()
	watchers.Wait()
	r.calls.Close()
	for _, s := range r.states {
		s.Rest(ctx, restPatience, watch.Slack{Goroutines: 8, FDs: 8})
	}
	return ctx.Err()
}

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

// warmUp lets one extension come and go, so that what a pod makes once is made before its baseline is taken.
func (r *run) warmUp(ctx context.Context) error {
	quiet, err := fault.Parse("none")
	if err != nil {
		return err
	}
	world := *r.worldOf(quiet)
	e := extension.New(&world, 1<<20, 0, 1)
	brief, cancel := context.WithTimeout(ctx, time.Second)
	e.Run(brief)
	cancel()
	bound, cancel := context.WithTimeout(ctx, extension.Patience)
	defer cancel()
	e.Leave(bound)
	world.Let()
	r.callers.Idle()
	for _, s := range r.states {
		if err := r.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until a pod is at rest and takes its baseline.
func (r *run) settle(ctx context.Context, s *watch.State) error {
	for end := time.Now().Add(extension.Patience); ; {
		tree, err := s.Pod.Tree(ctx)
		switch {
		case errors.Is(err, pod.ErrNoDebug):
			return nil
		case err == nil && tree.Unrest() == "", !r.o.Spawn:
			return s.Baseline(ctx)
		case time.Now().After(end):
			return fmt.Errorf("pod %s is not at rest before the attack: %v", s.Name, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
