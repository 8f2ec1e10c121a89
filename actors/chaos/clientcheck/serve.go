package clientcheck

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// maxSessions is how many sessions a client may have open here, as with a pod.
const maxSessions = 128

// initialized is what the pod offers: what is its own, and no more.
const initialized = `{"protocolVersion":1,"agentCapabilities":{"loadSession":false,` +
	`"mcpCapabilities":{"http":false,"sse":false,"acp":true,"_meta":{"dev.openab/acp":true}},` +
	`"sessionCapabilities":{"resume":{},"close":{},"list":{}},"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false}},` +
	`"agentInfo":{"name":"acpod","title":"acpod-chaos client-check","version":"1"},"authMethods":[]}`

// serve answers what the client asks.
func (r *run) serve(f jsonrpc.Frame) {
	if f.Kind != jsonrpc.Request {
		return
	}
	if f.Method != acp.MethodInitialize && !r.watch.greeted {
		r.respond(f.ID, nil, jsonrpc.NotInitializedError(f.Method))
		return
	}
	switch f.Method {
	case acp.MethodInitialize:
		r.initialize(f)
	case acp.MethodSessionNew, acp.MethodSessionLoad, acp.MethodSessionResume, acp.MethodSessionFork:
		one := opening{f.ID, f.Method, f.Params}
		switch {
		case !r.expected:
			r.openBeside(one, false)
		case len(r.openings) == maxOpenings:
			r.respond(f.ID, nil, jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: "sessions_per_connection", Limit: maxOpenings, Used: maxOpenings}))
		default:
			r.openings = append(r.openings, one)
		}
	case acp.MethodSessionList:
		r.list(f.ID)
	case acp.MethodSessionClose, acp.MethodSessionPrompt, acp.MethodSessionSetMode, acp.MethodSessionSetOpt:
		r.aboutSession(f)
	default:
		r.respond(f.ID, nil, jsonrpc.UnknownMethod(f.Method))
	}
}

func (r *run) initialize(f jsonrpc.Frame) {
	in, marks, bad := judgeInitialize(f.Params)
	r.sheet.put(marks...)
	switch {
	case bad != nil:
		r.respond(f.ID, nil, bad)
	case r.watch.answered: // again, which it may
		r.respond(f.ID, []byte(initialized), nil)
	case r.hello == nil:
		r.hello = &hello{f.ID, in}
	}
}

// openBeside answers an opening whose servers are not asked. instead says that a new session takes the place of the one that is used.
func (r *run) openBeside(one opening, instead bool) {
	if one.method != acp.MethodSessionNew {
		id, bad := acp.ParseSessionID(one.params)
		switch {
		case one.method == acp.MethodSessionFork || one.method == acp.MethodSessionLoad:
			bad = jsonrpc.UnknownMethod(one.method)
		case bad == nil && !r.sessions[id]:
			bad = acp.UnknownSession(id)
		}
		r.respond(one.id, []byte("{}"), bad)
		return
	}
	declared, marks, bad := judgeNew(one.params, r.servers())
	r.sheet.put(marks...)
	if bad == nil && len(r.sessions) >= maxSessions {
		bad = jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: "sessions_per_connection", Limit: maxSessions, Used: maxSessions})
	}
	if bad != nil {
		r.respond(one.id, nil, bad)
		return
	}
	used := r.session
	r.respond(one.id, append(r.newSession(), serverStates(declared, "failed")...), nil)
	if !instead {
		r.session = used
	}
}

// answerRest answers the openings that wait, and all that come, when the part of the run that took them is over.
func (r *run) answerRest() {
	r.expected = false
	for _, late := range r.openings {
		r.openBeside(late, false)
	}
	r.openings = nil
}

// servers are those of initialize, nil for none.
func (r *run) servers() []byte {
	if r.hello == nil {
		return nil
	}
	return r.hello.in.Servers
}

// newSession makes a session and gives the beginning of its result.
func (r *run) newSession() []byte {
	id := acp.SessionID(uuid.New())
	r.sessions[id] = true
	r.session = id
	return append(jsonrpc.AppendString([]byte(`{"sessionId":`), id), ',')
}

// serverStates is the rest of a result that says what became of the servers.
func serverStates(declared []acp.Declared, state string) []byte {
	b := []byte(`"_meta":{"` + acp.MetaServers + `":{"servers":[`)
	for k, d := range declared {
		if k > 0 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(append(b, `{"name":`...), d.Name)
		b = jsonrpc.AppendString(append(b, `,"id":`...), d.ID)
		became := state
		if d.Verdict != acp.Connect {
			became = map[acp.Verdict]string{acp.Refused: "refused", acp.Ignored: "ignored", acp.Superseded: "superseded", acp.Repeated: "ignored"}[d.Verdict]
		}
		b = jsonrpc.AppendString(append(b, `,"state":`...), became)
		b = append(b, '}')
	}
	return append(b, `],"facade":{"state":"off","delivery":"acp"}}}}`...)
}

func (r *run) list(id jsonrpc.ID) {
	b := []byte(`{"sessions":[`)
	for session := range r.sessions {
		if len(b) > len(`{"sessions":[`) {
			b = append(b, ',')
		}
		b = append(jsonrpc.AppendString(append(b, `{"sessionId":`...), session), `,"cwd":"/"}`...)
	}
	r.respond(id, append(b, "]}"...), nil)
}

// aboutSession answers what names a session.
func (r *run) aboutSession(f jsonrpc.Frame) {
	id, bad := acp.ParseSessionID(f.Params)
	if bad == nil && !r.sessions[id] {
		bad = acp.UnknownSession(id)
	}
	if bad != nil {
		r.sheet.put(failed(rowRequests, show(f), "%s", bad.Message))
		r.respond(f.ID, nil, bad)
		return
	}
	r.sheet.put(passed(rowRequests, "%s", show(f)))
	switch f.Method {
	case acp.MethodSessionClose:
		delete(r.sessions, id)
		r.respond(f.ID, []byte("{}"), nil)
	case acp.MethodSessionPrompt:
		r.turn(f, id)
	default:
		r.respond(f.ID, nil, jsonrpc.BadParams("this agent has no modes and no options"))
	}
}

// turn answers a prompt as an agent does that has little to say.
func (r *run) turn(f jsonrpc.Frame, session string) {
	if bad := acp.CheckPrompt(f.Params, acp.PromptCapabilities{}); bad != nil {
		r.sheet.put(failed(rowPrompt, jsonrpc.Show(string(f.Params[:min(len(f.Params), 1<<10)])), "%s", bad.Message))
		r.respond(f.ID, nil, bad)
		return
	}
	r.sheet.put(passed(rowPrompt, "%d bytes", len(f.Params)))
	r.update(session, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"This is acpod-chaos client-check; there is no agent here."}}`)
	r.respond(f.ID, acp.StopResult(acp.StopEndTurn), nil)
}

// update sends a session/update.
func (r *run) update(session, update string) {
	r.notify(acp.MethodSessionUpdate, fmt.Appendf(nil, `{"sessionId":%s,"update":%s}`, jsonrpc.AppendString(nil, session), update))
}
