package capability

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/acpod/acpod/runtime/kernel"
)

// starts is where a session's started keys are found when its desk does not know
// them any more, or cannot be asked.
type starts struct {
	ledger Ledger
	owner  string // whose keys: nobody is told of another's
	roster *Roster
}

// meanings is what a name may have meant when its first call was made. After a
// restart of the pod no name has a meaning until its server lists again; a name
// that agents were shown is the published one, or that with the server before it.
func (v *View) meanings(name string) []binding {
	if b, ok := v.names.find(name); ok {
		return []binding{b}
	}
	servers := slices.Sorted(maps.Keys(v.declared))
	prefix, _, dotted := strings.Cut(name, ".")
	if _, declared := v.declared[prefix]; dotted && !declared {
		servers = append(servers, prefix) // a server of an earlier life
	}
	var list []binding
	for _, tool := range v.candidates(name) {
		for i := range v.roster.size() {
			list = append(list, binding{place{true, v.roster.servers[i].Server()}, tool})
		}
		for _, server := range servers {
			list = append(list, binding{place{server: server}, tool})
		}
	}
	for server, tool := range splits(name) {
		for _, tool := range v.candidates(tool) {
			if _, ok := v.roster.at(server); ok {
				list = append(list, binding{place{true, server}, tool})
			}
			if slices.Contains(servers, server) {
				list = append(list, binding{place{server: server}, tool})
			}
		}
	}
	return list
}

// startedBefore is what a call is told that cannot be made, and whose key stands
// in the ledger: that of a first call which was or may have been executed. It is
// nil for a call without a key and for a key that was never started. It may block.
func (v *View) startedBefore(ctx context.Context, r Request) *Refusal {
	if r.Key == "" || v.starts.ledger == nil {
		return nil
	}
	var refusal *Refusal
	for _, b := range v.meanings(r.Name) {
		switch seen := v.starts.ledger.Seen(ctx, KeyRecord{Session: v.starts.owner, Server: b.inLedger(), Tool: b.tool, Key: r.Key}); {
		case seen == nil:
		case seen.ArgsSHA == r.digest():
			return endNotSeen()
		default:
			refusal = otherArguments()
		}
	}
	return refusal
}

// endNotSeen is what a repeat is told of a first call of which only the start is known.
func endNotSeen() *Refusal {
	return &Refusal{Code: OutcomeUnknown, Text: "a call with this idempotency key was started before and its end was not seen; look at what it did and use another key to repeat it"}
}

// turnedAway is the refusal of a call, once the ledger has said that its key is new, or what was there.
type turnedAway struct {
	call    uint64
	refusal *Refusal
}

// turnAway refuses a call that is not made, unless its key was started before:
// then it is told that. The ledger is asked beside the turns.
func (d *desk) turnAway(c *kernel.Ctx, k *call, refusal *Refusal) {
	if k.request.Key == "" {
		d.refuse(c, k, refusal)
		return
	}
	k.stopTimer()
	k.phase = refusing
	out, view := turnedAway{k.id, refusal}, d.view
	asked := Request{Name: k.request.Name, Key: k.request.Key, sha: k.sha}
	c.Go("key", func(ctx context.Context) kernel.Msg {
		if before := view.startedBefore(ctx, asked); before != nil {
			out.refusal = before
		}
		return out
	})
}

func (d *desk) turnedAway(c *kernel.Ctx, m turnedAway) {
	if k := d.calls[m.call]; k != nil {
		d.refuse(c, k, m.refusal)
	}
}
