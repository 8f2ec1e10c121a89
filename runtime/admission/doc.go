// Package admission counts who is in, and lets nobody in past a limit: connections, handshakes, sessions, agents, whatever
// there is a fixed number of slots for.
//
// # Place
//
// A [Desk] belongs to whoever composes the process. The rooms that let something in declare their limits at it, each under
// the name of its configuration key, and claim slots of them. The package knows neither sockets nor sessions, no protocol
// and no configuration; what it refuses it refuses as [kernel.Overloaded], like an account of bytes does.
//
// # The rule
//
// There is one decision, [Desk.Admit]: slots of all the claims, or of none and the first limit that is reached. It is asked
// before any work starts, and what it gives is one [Slot] that goes with the thing it was given for, from hand to hand, until
// that has ended. A slot is given back in parts ([Slot.Give]: a handshake is over and the connection stays), as a whole
// ([Slot.Release]), or in favour of somebody else in one step ([Slot.Yield]), so that no third party can come in between.
//
// Slots of a generation that may crash are claimed through a [Group]: closing it gives back whatever is left, and refuses
// what a turn that is stuck still asks for.
//
// # Concurrency
//
// A desk is shared by the goroutines of the HTTP server, the actors of connections and the supervisor of sessions, none of which
// may wait for another: a newcomer is refused before it has an actor, and must be counted by then. So its counters stand behind one
// lock, held for a few map operations and never while other code runs. Lock-free counters would not do: a claim of several
// limits is all or nothing, and a limit must not be passed for an instant, not even by somebody who is refused afterwards.
//
// Nothing piles up: a counter by address or key exists while somebody holds a slot of it, so there are never more of them
// than slots, and who is refused leaves a number and nothing else.
package admission
