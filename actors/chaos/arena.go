package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/caller"
	"github.com/acpod/acpod/actors/chaos/extension"
	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/actors/chaos/watch"
)

// arena is a pod without agents, with extensions around it and callers of their tools.
type arena struct {
	pod                         *pod.Pod
	state                       *watch.State
	key                         string
	limits                      extension.Limits
	extensions, sessions, first int // first is the number of the first extension, session and call: no two arenas share one
	rate, keyed                 float64
	prompted                    bool // its sessions have the demo agent

	world   *extension.World
	callers *caller.Callers
}

// leavePatience is how long all extensions together may take to leave.
const leavePatience = 3 * time.Minute

// quietPatience is how long a pod may be busy with what it was asked for while nobody asks for more.
const quietPatience = time.Minute

// leavers is how many leave at once.
const leavers = 64

// headTimeout is what the pod gives the head of a request of the facade (docs/limits.md).
const headTimeout = 10 * time.Second

// usuallyKeyed is the share of calls with an idempotency key.
const usuallyKeyed = 0.05

// openCalls is how many calls may be open at once in an arena.
const openCalls = 2000

// startTools starts the pod that most of the run is about.
func (r *run) startTools(ctx context.Context) error {
	key := fmt.Sprintf("cnry-key-%016x", r.dice.Of("key", 0, 0).Uint64())
	r.secrets.Add(key)
	dir, err := r.folder("t")
	if err != nil {
		return err
	}
	p, err := pod.Start(ctx, pod.Spec{
		Binary: r.o.Binary, Dir: dir, Env: goEnvironment(),
		TOML: config(r.o.Extensions, r.o.Sessions, key, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "state")),
	})
	if err != nil {
		return err
	}
	p.OnLog(watch.Lines{Book: r.book, Secrets: r.secrets, JSON: true, Where: "log of pod t"}.Judge)
	state := r.watchOver(p, "t")
	r.arenas = append(r.arenas, r.newArena(arena{pod: p, state: state, key: key, limits: ownLimits, extensions: r.o.Extensions, sessions: r.o.Sessions, rate: r.o.Rate, keyed: usuallyKeyed}))
	return nil
}

func (r *run) folder(name string) (string, error) {
	dir := filepath.Join(r.o.Dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

func (r *run) newArena(a arena) *arena {
	a.world = r.worldOf(&a, r.faults)
	a.world.Begin(a.sessions)
	a.callers = caller.New(caller.Options{
		Dice: r.dice, Faults: r.faults, Book: r.book, Calls: r.calls, Tally: r.tally, Rate: a.rate, Pick: a.pick, First: a.first, Keyed: a.keyed,
		Tools: tools(), Bound: a.limits.Tunnel + a.limits.Orphan + patience, Deadline: headTimeout * 8 / 10,
		Request: a.limits.Request, Result: a.limits.Result,
		Patient: min(a.limits.Tunnel+time.Second, 10*time.Second), Open: openCalls,
	})
	a.world.Revoked = a.callers.Revoked
	return &a
}

func (r *run) worldOf(a *arena, faults *fault.Set) *extension.World {
	return &extension.World{
		ACP: a.pod.ACP(), Key: a.key, Dice: r.dice, Faults: faults, Book: r.book, Calls: r.calls, Sessions: ledger.NewSessions(r.book),
		Doings: r.doings, Traffic: &r.traffic, Limits: a.limits, Prompted: a.prompted, Secret: r.secrets.Add,
	}
}

func tools() (all []caller.Tool) {
	for _, t := range server.Tools {
		all = append(all, caller.Tool{Name: t.Name, ReadOnly: t.ReadOnly})
	}
	return all
}

// pick chooses a session for a call: the one drawn, or the next one that is open.
func (a *arena) pick(intN func(int) int) (caller.Target, bool) {
	places := a.world.Directory
	if len(places) == 0 {
		return caller.Target{}, false
	}
	first := intN(len(places))
	for i := range min(len(places), 64) {
		if entry := places[(first+i)%len(places)].Load(); entry != nil {
			target := caller.Target{Session: entry.Session, URL: entry.URL, Token: entry.Token, Place: entry.Place}
			if entry.Turns != nil {
				target.Agent = entry.Turns
			}
			return target, true
		}
	}
	return caller.Target{}, false
}

// warmUp lets one extension come and go without a fault.
func (a *arena) warmUp(ctx context.Context, r *run) {
	quiet, err := fault.Parse("none")
	if err != nil {
		panic(err) // a word of our own
	}
	world := r.worldOf(a, quiet)
	world.Begin(1)
	world.Revoked = a.callers.Revoked
	e := extension.New(world, a.first+1<<20, 0, 1)
	brief, cancel := context.WithTimeout(ctx, time.Second)
	e.Run(brief)
	cancel()
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.Leave(bound)
	world.Let()
	a.callers.Idle()
}

// assail is the attack on this pod: everybody comes, does what they do until attack ends, and leaves before ctx does.
func (a *arena) assail(ctx, attack context.Context, leaves func()) {
	var extensions []*extension.Extension
	var living sync.WaitGroup
	for number, place := 0, 0; number < a.extensions; number++ {
		sessions := share(a.sessions, a.extensions, number)
		e := extension.New(a.world, a.first+number, place, sessions)
		place += sessions
		extensions = append(extensions, e)
		living.Go(func() { e.Run(attack) })
	}
	a.callers.Run(attack) // returns when all calls have ended; the extensions' sockets serve them until then
	living.Wait()
	if a.pod.Debug() != "" {
		a.state.Quiet(ctx, quietPatience)
	}
	leaves()
	a.leave(ctx, extensions)
	a.world.Let()
	a.callers.Idle()
}

func (a *arena) leave(ctx context.Context, extensions []*extension.Extension) {
	bound, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	places := make(chan struct{}, leavers)
	var leaving sync.WaitGroup
	for _, e := range extensions {
		places <- struct{}{}
		leaving.Go(func() {
			defer func() { <-places }()
			e.Leave(bound)
		})
	}
	leaving.Wait()
}

// share is how many of n go to the one with that number of parts, evenly.
func share(n, parts, number int) int {
	s := n / parts
	if number < n%parts {
		s++
	}
	return s
}

// assail is the attack on all pods at once.
func (r *run) assail(ctx context.Context) {
	attack, end := context.WithTimeout(ctx, r.o.Duration)
	defer end()
	begun := time.Now()
	var fronts sync.WaitGroup
	var left sync.Once
	leaves := func() {
		left.Do(func() {
			r.attack = time.Since(begun)
			r.phase.Store("leaves")
		})
	}
	for _, a := range r.arenas {
		fronts.Go(func() { a.assail(ctx, attack, leaves) })
	}
	if r.agents != nil {
		fronts.Go(func() { r.agents.assail(attack, r) })
	}
	if r.machine != nil {
		fronts.Go(func() { r.machine.assail(attack, r) })
	}
	fronts.Wait()
}
