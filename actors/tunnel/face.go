package tunnel

import "github.com/acpod/acpod/actors/capability"

// face is what a tunnel shows of itself at one moment, and who may change it: the generation that began last, until the session
// gives the tunnel up. A generation that was abandoned may still be in a turn then, and what it says would be nobody's: a
// list that no desk frees, a state that its successor does not have.
type face struct {
	gen    uint64 // of the actor that speaks for the tunnel
	over   bool
	status Status
	tools  *capability.Toolset
}

// speaks lets a generation speak for the tunnel from now on.
func (t *Tunnel) speaks(gen uint64) {
	t.change(func(f *face) bool {
		f.gen = max(f.gen, gen)
		return true
	})
}

// show puts a state up, with the list when there is one, whose bytes are the tunnel's from then on. False: that generation
// speaks for it no more, and the list was freed.
func (t *Tunnel) show(gen uint64, state capability.State, status Status, list *capability.List) (now *capability.Toolset, ok bool) {
	var before *capability.List
	ok = t.change(func(f *face) bool {
		before = f.tools.List
		f.status = status
		f.tools = &capability.Toolset{State: state, Reason: status.Reason, List: before}
		if list != nil {
			f.tools.List = list
		}
		now = f.tools
		return f.gen == gen
	})
	switch {
	case !ok:
		list.Release()
	case list != nil:
		before.Release()
	}
	return now, ok
}

// Close is for the session, when the last generation has ended: nothing that may still run of it changes the tunnel any more. One that had no
// last word is withdrawn. The list that is there stays for the desk.
func (t *Tunnel) Close() {
	t.change(func(f *face) bool {
		f.over = true
		if f.status.State == Connecting || f.status.State == Ready {
			f.status = Status{State: Withdrawn, Reason: "it did not stop in time"}
			f.tools = &capability.Toolset{State: capability.Detached, Reason: f.status.Reason, List: f.tools.List}
		}
		return true
	})
}

// change replaces the face, unless it is over or next refuses.
func (t *Tunnel) change(next func(*face) bool) bool {
	for {
		was := t.face.Load()
		now := *was
		if was.over || !next(&now) {
			return false
		}
		if t.face.CompareAndSwap(was, &now) {
			return true
		}
	}
}
