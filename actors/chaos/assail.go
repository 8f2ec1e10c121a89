package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/extension"
	"github.com/acpod/acpod/actors/chaos/fault"
)

// leavePatience is how long all extensions together may take to leave.
const leavePatience = 3 * time.Minute

// leavers is how many leave at once.
const leavers = 64

// assail is the attack: everybody comes, does what they do for the run's duration, and leaves.
func (r *run) assail(ctx context.Context) {
	attack, end := context.WithTimeout(ctx, r.o.Duration)
	defer end()
	begun := time.Now()
	var extensions []*extension.Extension
	var living sync.WaitGroup
	for number, first := 0, 0; number < r.o.Extensions; number++ {
		sessions := share(r.o.Sessions, r.o.Extensions, number)
		e := extension.New(r.world, number, first, sessions)
		first += sessions
		extensions = append(extensions, e)
		living.Go(func() { e.Run(attack) })
	}
	r.callers.Run(attack) // returns when all calls have ended; the extensions' sockets serve them until then
	living.Wait()
	r.attack = time.Since(begun)
	r.phase.Store("leaves")
	r.leave(ctx, extensions)
	r.world.Let()
	r.callers.Idle()
}

func (r *run) leave(ctx context.Context, extensions []*extension.Extension) {
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

// worldOf is the same world with other faults.
func (r *run) worldOf(faults *fault.Set) *extension.World {
	w := &extension.World{
		ACP: r.world.ACP, Key: r.world.Key, Dice: r.dice, Faults: faults, Book: r.book, Calls: r.calls, Sessions: r.world.Sessions,
		Doings: r.doings, Traffic: &r.traffic, Limits: r.world.Limits, Secret: r.secrets.Add, Revoked: r.callers.Revoked,
	}
	w.Begin(1)
	return w
}
