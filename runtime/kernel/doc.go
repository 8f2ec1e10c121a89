// Package kernel runs supervised actors, with every byte they queue on an account and everything they owe in a book.
//
// It knows neither ACP nor MCP, and has no net/http; another daemon could use it. protoactor-go is its engine, behind cell.go and
// mailbox.go: nothing else imports it, and no message, panic or restart of ours ever passes through it (docs/adr/0001).
//
// # Actors
//
// An actor is a [Behavior] in a cell, spawned by its parent from a [Spec]. A [Kernel] has one root. The state of a behavior
// is touched by its own turns only, one at a time, so it needs no lock. A turn handles one message:
//
//   - Receive returns nil: the message was handled.
//   - It returns [ErrDone], also wrapped: the actor has finished, a clean end.
//   - It returns another error, panics, or calls runtime.Goexit: a crash, with that cause. So it is when Start or a function given to
//     Ctx.Go does.
//
// A turn must not block, except on what ends with Ctx.Context. Blocking work goes through Ctx.Go, waiting through Ctx.After. A turn
// may be cut short by nothing: an actor that does not come back from one within its grace, once it was stopped, is abandoned.
//
// # Generations
//
// A crash is a stop with a cause, and a replacement is a new generation: a new behavior, a new mailbox, a new context, a new
// number, unique in the kernel and higher than all before. A [Ref] addresses one generation. Each has one start, one end, one
// cause, and one release of each thing it owed. What is meant for an old generation (a late result, a timer, an answer) never reaches its successor.
//
// The parent's table decides what follows an exit ([Policy]), after a capped exponential backoff with full jitter. More restarts than
// the supervisor's [Intensity] end the supervisor itself, with an [IntensityError] that holds the cause; and so up to the root, whose end is the
// kernel's. The parent is told by [Exited] and [Restarted]; it decides nothing, so a supervisor that is busy or stuck
// still supervises.
//
// # Messages
//
// A mailbox has two lanes that a behavior sees. Data: what Tell, Ask and Request bring, and [Answer] and the results of Ctx.Go. Control: what Signal
// and After bring, and [Exited], [Restarted], [Down], [Cancelled]. Control goes first, but never more than 16 times while
// data waits. In a lane, what one sender sent arrives in the order of its sending; so an answer never overtakes what the callee told
// before, and an Exited or Down may.
//
// No sender waits: Tell says at once nil, [*Overloaded] or [ErrStopped]. A queued message is charged to the receiver's account, 128 bytes and its Size
// when it is [Sized], until its turn ends. A message that is [Leased] has paid for itself. The control lane has a reserve of its own,
// 64 KiB for signals, so that a full account keeps no cancel out. Of answers none is refused: its 4 KiB were bought with the question, by the
// asker, and of an Ask by the callee.
//
// A question ([Question]) gets one answer: the callee's first, or the cause of its generation's end. Cancelling takes a question that is still queued out
// of its queue, and tells the callee of one that it has.
//
// Whoever ends the life of a message releases its lease: the receiver in a handled turn; the kernel when it is refused, when it
// finds its mailbox closed, when the actor stops with it in the queue, when the turn panics.
//
// # Accounts
//
// An [Account] charges itself and all above it, or nothing. A [Lease] is bytes that outlive a turn; it moves from account to account all
// or nothing. Admitted bytes never pass a limit, not for an instant. AcquireWait is woken by releases, first come first served.
//
// # The end
//
// It is driven by events in the kernel's book, and needs no turn of the cell:
//
//  1. The first cause wins. The context is cancelled on the goroutine that stops it, the mailbox closes, what was queued is answered or
//     released. The current turn may finish. From here [Spec].Grace runs, for 1, 2, the owned goroutines and Free.
//  2. The Stop hook runs, on a goroutine of its own; the children are alive and whole. Then questions left unanswered
//     get the cause, and open requests are cancelled. When the owned goroutines have ended as well, nothing of the behavior runs any more,
//     and what its state still holds is given back ([Freer]).
//  3. The children stop, all at once, or with Ordered one after the other, the last spawned first, each with all that it owes.
//  4. When they have settled and the state was freed, the releases of all obligations begin, side by side, each on a goroutine of its own, with
//     a deadline ([Options].Release). That is the exit: Done is closed, watchers and the parent are told, the name is free, a successor may start. Nobody
//     waits for the releases but a parent that is stopping.
//  5. When the last release is done or overdue, the generation has settled, and leaves the tree.
//
// A generation whose turn, hook or goroutine does not end within the grace is abandoned: its cause becomes [ErrAbandoned] joined with the first; its
// children are stopped and released, then it is, leaves first, all from outside the stuck cell. What it still does is refused: ErrStopped, or nothing happens; an obligation that it
// still brings about is released at once. What it discharges late it must look at: [Obligation].Discharge tells it that the release has
// paid, so that nothing is undone, answered or counted twice. Its bytes stay charged, and it stays in the tree, until what is stuck really ends; then its
// state is freed as at an ordinary end, although its Stop hook may never have run. So there are three homes for what must not be lost: an obligation for what others are owed,
// which is paid from outside while the cell is stuck; Free for leases that lie in the state; the Stop hook for last words, which nobody relies on.
// So a stop takes at most the sum of grace and release deadline over the depth of the tree (over the children, too, where a parent is Ordered), and
// the [Report] of a Shutdown names who is left, with the stack.
//
// # Invariants
//
// Package kerneltest has an oracle for each, and a monkey that tries to break them.
//
//   - I1 conservation: used = queued + in turn + answers to come + leased, at every account; 0 at rest.
//   - I2 bound: 0 ≤ used ≤ limit, always, at every account.
//   - I3 one life: each generation has one start, one stop, one cause, one release of each obligation; ids are unique.
//   - I4 silence: no message reaches a behavior after its stop.
//   - I5 exclusion: at most one goroutine is in a cell.
//   - I6 order: first in, first out for a sender and a lane; control before data; data is not starved.
//   - I7 answered: an accepted question gets one answer; a refused one gets *Overloaded or ErrStopped.
//   - I8 no sender waits: admission never blocks, never spins, and calls no code of others under its lock.
//   - I9 intensity: at most Max restarts in a Window for a supervisor, then it ends.
//   - I10 a stop ends, within the bound above.
//   - I11 secrets: no payload in a log, a report or the tree; types and sizes only.
//   - I12 rest costs nothing: no goroutine and no timer for an idle actor, and less than 3 KiB with the engine's part.
package kernel
