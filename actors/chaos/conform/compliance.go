package conform

import (
	"crypto/rand"
	"encoding/json/jsontext"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// What every client does: initialize, sessions, a prompt and its answer.

func complianceRows() []Row {
	return []Row{
		{Name: "initialize offers what the contract says", Expected: "version 1, agentInfo, acp servers taken, resume, close and list", check: offersTheContract},
		{Name: "a second initialize is answered again", Expected: "a result", check: func(a *attempt) {
			p := a.greeted()
			first := p.seen[len(p.seen)-1]
			again := p.hello()
			if string(again.Result) != string(first.Result) {
				a.fail(again.show(), "it is another result than the first")
			}
			a.note("the same result")
		}},
		{Name: "an id comes back as it came", Expected: "strings, integers and null, to the byte", check: idsComeBack},
		{Name: "two open requests each get the answer to their own id", Expected: "an error to the one, a result to the other", check: ownAnswers},
		{Name: "an unknown method is refused by its name", Expected: "-32601 naming it", check: func(a *attempt) {
			p := a.greeted()
			e := p.refused(p.answer(p.send("wirecheck/unknown", object{})), jsonrpc.MethodNotFound, "an unknown method")
			if !strings.Contains(e.Message, "wirecheck/unknown") {
				a.fail("message "+jsonrpc.Show(e.Message), "it does not name the method")
			}
			a.note("-32601")
		}},
		{Name: "session/new gives a session and reports the servers", Expected: "sess_<uuid>, and _meta[\"acpod.dev/servers\"]", check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			result, _ := decode[sessionResult](s.opened.Result)
			if !sessionForm.MatchString(s.id) {
				a.fail("sessionId "+jsonrpc.Show(s.id), "it is not sess_ and a canonical UUID")
			}
			if result.Meta.Servers == nil || result.Meta.Servers.Facade.State == "" {
				a.fail(s.opened.show(), "the servers and the facade are not reported")
			}
			a.note("sess_…, facade %s", shown(result.Meta.Servers.Facade.State))
		}},
		{Name: "session/list has what this connection opened, until it is closed", Expected: "the session, then not", check: listFollows},
		{Name: "session/close ends a session for good", Expected: "a result, then -32602 for its id", check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			s.close()
			for _, method := range []string{"session/prompt", "session/resume"} {
				m := p.answer(p.send(method, object{"sessionId": s.id, "cwd": "/", "mcpServers": []any{}, "prompt": []any{object{"type": "text", "text": greeting}}}))
				_ = p.refused(m, jsonrpc.InvalidParams, method+" of a closed session")
			}
			a.note("a result, then -32602")
		}},
		{Name: "session/resume of an own session says how it is", Expected: "a result with _meta[\"acpod.dev/session\"]: idle", check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			m := p.call("session/resume", object{"sessionId": s.id, "cwd": "/", "mcpServers": []any{}})
			result, _ := decode[sessionResult](m.Result)
			if result.Meta.Session == nil || result.Meta.Session.State != "idle" {
				a.fail(m.show(), "it does not say that the session is idle")
			}
			a.note("idle")
		}},
		{Name: "a session is found again by its client's secret alone", Expected: "-32602 without it or with another, a result with it, then -32602 for the former owner", check: secretsDecide},
		{Name: "an id of nobody is unknown", Expected: "-32602", check: func(a *attempt) {
			p := a.greeted()
			for _, id := range []string{"sess_00000000-0000-4000-8000-000000000000", "sess_", "nonsense", ""} {
				m := p.answer(p.send("session/resume", object{"sessionId": id, "cwd": "/", "mcpServers": []any{}}))
				_ = p.refused(m, jsonrpc.InvalidParams, "an id of nobody")
			}
			a.note("-32602")
		}},
		{Name: "a prompt streams text and ends with end_turn", Expected: "agent_message_chunk, then end_turn", needs: needTurns, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			from := len(p.seen)
			id := s.prompt(greeting)
			m := s.finish(id)
			p.within(a.cfg.Patience/10, func() bool { return s.text(from, len(p.seen)) != "" })
			if got := s.text(from, len(p.seen)); got == "" {
				a.fail(m.show(), "no text was streamed")
			}
			a.note("text, then end_turn")
		}},
		{Name: "the answer to a prompt comes after every update of its turn", Expected: "all text, in order, before the answer", needs: needDemo, check: func(a *attempt) {
			const updates = 40
			p := a.greeted()
			s := p.open()
			from := len(p.seen)
			id := s.prompt(fmt.Sprintf("/flood %d\nthe last words", updates))
			m := s.finish(id)
			p.rest(quiet)
			got := s.text(from, m.nth)
			if late := s.text(m.nth, len(p.seen)); late != "" {
				a.fail("text after the answer: "+jsonrpc.Show(late), "the answer overtook an update")
			}
			for i := range updates {
				mark := fmt.Sprintf("%08d ", i)
				if len(got) < 1024 || !strings.HasPrefix(got, mark) {
					a.fail("the text "+jsonrpc.Show(got), "update %d of %d is lost or out of order", i+1, updates)
				}
				got = got[1024:]
			}
			if got != "echo: the last words\n" {
				a.fail("the text "+jsonrpc.Show(got), "the last update is not what was sent")
			}
			a.note("%d updates, then end_turn", updates+1)
		}},
		{Name: "a question of the agent reaches the client, and its answer the agent", Expected: "session/request_permission with options, then the choice", needs: needDemo, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			from := len(p.seen)
			p.permit = "allow"
			m := s.finish(s.prompt("/ask"))
			if len(p.received("session/request_permission")) == 0 {
				a.skip("the pod answers such questions itself (agent.permissions)")
			}
			if got := s.text(from, m.nth); got != "choice: allow\n" {
				a.fail("the text "+jsonrpc.Show(got), "the agent was not told the choice: allow")
			}
			a.note("allow")
		}},
		{Name: "no token is given to a client of a pod with an agent", Expected: "no _meta[\"acpod.dev/facade\"]", needs: needTurns, check: func(a *attempt) {
			s := a.greeted().open()
			if s.facade != (facadeAccess{}) || strings.Contains(string(s.opened.Result), "acpod.dev/facade\"") {
				a.fail("_meta[\"acpod.dev/facade\"]", "the token is the agent's alone")
			}
			a.note("none")
		}},
		{Name: "a pod without an agent says so", Expected: "-32603 with data.reason no_agent", needs: needNone, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			e := p.refused(p.answer(s.prompt(greeting)), jsonrpc.Internal, "a prompt for nobody")
			if e.Reason() != "no_agent" {
				a.fail("data.reason "+shown(e.Reason()), "it is not no_agent")
			}
			a.note("-32603 no_agent")
		}},
	}
}

// quiet is how long a row looks whether something comes that must not.
const quiet = 200 * time.Millisecond

var sessionForm = regexp.MustCompile(`^sess_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// finish waits for the end of a turn, which may take an agent its time, and wants end_turn.
func (s *session) finish(id string) message {
	for range 6 { // six times the patience for a real agent, as long as the socket lives
		if s.p.until(func() bool { return len(s.p.answered[id]) > 0 }) || s.p.ended != nil || s.p.a.survey.agent == agentDemo {
			break
		}
	}
	m := s.p.answer(id)
	if stop(m) != "end_turn" {
		s.p.a.fail(m.show(), "the turn did not end with end_turn")
	}
	return m
}

func offersTheContract(a *attempt) {
	p := a.enter()
	m := p.hello()
	result, ok := decode[struct {
		Version      jsontext.Value            `json:"protocolVersion"`
		Capabilities map[string]jsontext.Value `json:"agentCapabilities"`
		AgentInfo    struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"agentInfo"`
		AuthMethods []jsontext.Value `json:"authMethods"`
	}](m.Result)
	wrong := func(about string) { a.fail(m.show(), "%s", about) }
	switch {
	case !ok:
		wrong("the result has not the form that ACP gives it")
	case string(result.Version) != "1":
		wrong("protocolVersion is not the integer 1")
	case result.AgentInfo.Name == "" || result.AgentInfo.Version == "":
		wrong("agentInfo has no name or version")
	case result.AuthMethods == nil:
		wrong("authMethods is no array")
	}
	mcp, _ := decode[struct {
		ACP, HTTP, SSE *bool
		Meta           map[string]jsontext.Value `json:"_meta"`
	}]([]byte(strings.NewReplacer(`"acp"`, `"ACP"`, `"http"`, `"HTTP"`, `"sse"`, `"SSE"`).Replace(string(result.Capabilities["mcpCapabilities"]))))
	switch {
	case mcp.ACP == nil || !*mcp.ACP || string(mcp.Meta["dev.openab/acp"]) != "true":
		wrong("mcpCapabilities do not say that acp servers are taken")
	case mcp.HTTP == nil || *mcp.HTTP || mcp.SSE == nil || *mcp.SSE:
		wrong("mcpCapabilities.http and sse are not false, though such servers never reach an agent")
	}
	sessions, _ := decode[map[string]jsontext.Value](result.Capabilities["sessionCapabilities"])
	for _, name := range []string{"resume", "close", "list"} {
		if !strings.HasPrefix(string(sessions[name]), "{") {
			wrong("sessionCapabilities." + name + " is no object")
		}
	}
	prompt, _ := decode[map[string]jsontext.Value](result.Capabilities["promptCapabilities"])
	for _, name := range []string{"image", "audio", "embeddedContext"} {
		if value := string(prompt[name]); value != "true" && value != "false" {
			wrong("promptCapabilities." + name + " is no boolean")
		}
	}
	if value := string(result.Capabilities["loadSession"]); value != "true" && value != "false" {
		wrong("loadSession is no boolean")
	}
	a.note("version 1, %s %s", shown(result.AgentInfo.Name), shown(result.AgentInfo.Version))
}

func idsComeBack(a *attempt) {
	p := a.greeted()
	ids := []string{`0`, `-1`, `9007199254740993`, `null`, `""`, `"1"`, `"\u0031"`, `"a\/b"`, `"é😀"`}
	for _, id := range ids {
		p.expect(id)
		p.raw(`{"jsonrpc":"2.0","id":` + id + `,"method":"_wirecheck/ping"}`)
		_ = p.refused(p.answer(id), jsonrpc.MethodNotFound, "the request "+id)
	}
	a.note("%d of them", len(ids))
}

// ownAnswers keeps requests of two kinds open at once, so that whoever mixes up ids is seen.
func ownAnswers(a *attempt) {
	p := a.greeted()
	type pair struct{ unknown, list string }
	var pairs []pair
	for range 8 {
		pairs = append(pairs, pair{p.send("_wirecheck/ping", object{}), p.send("session/list", object{})})
	}
	for _, one := range pairs {
		_ = p.refused(p.answer(one.unknown), jsonrpc.MethodNotFound, "an unknown method")
		if m := p.answer(one.list); m.Error != nil {
			a.fail(m.show(), "session/list got the answer to another request, or was refused")
		}
	}
	a.note("16 answers to 16 requests")
}

func listFollows(a *attempt) {
	p := a.greeted()
	s := p.open()
	listed := func() bool {
		m := p.call("session/list", object{})
		result, ok := decode[struct {
			Sessions []struct {
				SessionID string `json:"sessionId"`
			} `json:"sessions"`
		}](m.Result)
		if !ok {
			a.fail(m.show(), "session/list has not the form that ACP gives it")
		}
		return slices.ContainsFunc(result.Sessions, func(one struct {
			SessionID string `json:"sessionId"`
		},
		) bool {
			return one.SessionID == s.id
		})
	}
	if !listed() {
		a.fail(p.latest(), "an open session is not listed")
	}
	s.close()
	if listed() {
		a.fail(p.latest(), "a closed session is listed")
	}
	a.note("listed, then not")
}

func secretsDecide(a *attempt) {
	secret := object{"acpod.dev/client": rand.Text() + rand.Text()}
	former := a.greeted(secret)
	s := former.open()
	resume := object{"sessionId": s.id, "cwd": "/", "mcpServers": []any{}}
	for about, stranger := range map[string]*peer{"a client without a secret": a.greeted(), "a client with another secret": a.greeted(object{"acpod.dev/client": rand.Text() + rand.Text()})} {
		_ = stranger.refused(stranger.answer(stranger.send("session/resume", resume)), jsonrpc.InvalidParams, "a resume by "+about)
	}
	latter := a.greeted(secret)
	m := latter.call("session/resume", resume)
	if result, ok := decode[sessionResult](m.Result); !ok || result.Meta.Session == nil {
		a.fail(m.show(), "the result does not say how the session is")
	}
	latter.sessions = append(latter.sessions, &session{p: latter, id: s.id, opened: m})
	s.closed = true
	_ = former.refused(former.answer(s.prompt(greeting)), jsonrpc.InvalidParams, "a prompt of the former owner")
	a.note("-32602, -32602, a result, -32602")
}
