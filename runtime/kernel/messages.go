package kernel

// Down comes once for each Ctx.Watch, on the control lane, when the generation watched has ended; at once when it already had.
type Down struct {
	Ref   Ref
	Cause error
}

// Exited comes to a parent for each end of a child's generation, on the control lane: it may overtake what the child told last,
// which an Answer never does. Next is the generation that follows; it takes messages already, and starts after its backoff.
// Zero Next: the child does not come back.
type Exited struct {
	Ref   Ref
	Cause error
	Next  Ref
}

// Restarted comes to a parent, on the control lane, when the generation that follows another begins to run.
type Restarted struct{ Old, New Ref }
