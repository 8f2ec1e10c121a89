package session

import (
	"github.com/acpod/acpod/protocol/acp"
)

// fork gives an admitted session/fork a session of its own, whose agent is asked for a copy of the conversation with that id of the agent's.
func (v *supervisor) fork(e *entry, inner string) {
	if inner == "" { // nothing was ever said in it
		v.refuse(e, acp.UnknownSession(e.id))
		return
	}
	e.copies = inner
	v.begin(e)
}
