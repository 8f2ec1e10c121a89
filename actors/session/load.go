package session

import (
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A session/load is a resume whose client wants to see all that was said. The replay is a phase of its own: it begins when no turn runs,
// what was kept for a client is dropped before it, because the replay has it too, and everything of it passes before the answer.

// loading tells whether the request that opens, or opens again, is a load.
func (x *session) loading() bool { return x.opening != nil && x.open != nil && x.open.load }

// wantsReplay tells whether somebody waits to see it all.
func (x *session) wantsReplay() bool { return x.loading() && x.client != nil && x.turn.phase == idle }

// loadWaits tells whether a load waits for the end of the turn that ran when it came.
func (x *session) loadWaits() bool { return x.loading() && x.turn.phase != idle }

// loadNow begins what a load has waited for.
func (x *session) loadNow() {
	switch {
	case x.client == nil: // it did not wait
		x.missOpening()
	case x.conv.phase != alive:
		x.wantAgent()
	case !x.conv.info.LoadSession:
		x.failOpening(jsonrpc.UnknownMethod(acp.MethodSessionLoad))
	default:
		x.askToOpen()
	}
}

// showReplay lets what the agent says from now on pass to the client that loads, and drops what was kept for it.
func (x *session) showReplay() {
	x.conv.quiet, x.conv.replay, x.open.shown = false, x.client, true
	x.out.waive()
	x.out.held = false
	x.out.flush() // what is owed to somebody is left
	x.credits(false)
}

// replayed ends the phase. Tool calls of the past keep nothing alive.
func (x *session) replayed() {
	if x.conv.replay != nil {
		x.tools.clear()
		x.conv.replay = nil
	}
}

// cutReplay is the loss of the client that was shown the replay: nobody gets the rest of it. What of it has not left is gone with the client.
func (x *session) cutReplay() {
	if x.conv.replay != nil {
		x.conv.replay, x.conv.quiet = nil, true
	}
}

// recalled deals with an update of an agent that brings a conversation back; false: it is like any other.
func (x *session) recalled(m agent.Update, params jsonrpc.Object, kind string) bool {
	if m.From != x.conv.ref || !x.conv.quiet && x.conv.replay == nil {
		return false
	}
	x.conv.heard = x.c.Now()
	about, _ := params.Text("sessionId")
	switch {
	case x.conv.replay != nil && about == x.inner:
		return false
	case x.conv.replay == nil && !history(kind):
		return false
	}
	x.c.Refuse("replay")
	m.Held.Release()
	m.Credit.Done()
	return true
}
