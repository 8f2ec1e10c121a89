package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// What agent a pod has, as far as it matters here.
const (
	agentDemo  = "demo"
	agentNone  = "none"
	agentOther = "another"
)

// greeting is all that an agent is sent that is not the demo agent.
const greeting = "Hello."

// survey is what is known of the pod. It is written before the rows run, and read by them.
type survey struct {
	cfg   *Config
	names []string

	keyed         bool
	name, version string
	images        bool // the agent takes them
	audio         bool
	agent         string // one of the constants, "" = not found out
	trouble       string // why not
	facadeOff     string // why nobody can make a call
	tool          map[string]string
	requestBytes  int
	frameBytes    int
	assumed       []string
}

func (s *survey) pod() Pod {
	return Pod{Name: s.name, Version: s.version, Keyed: s.keyed, Agent: s.agent, RequestBytes: s.requestBytes, FrameBytes: s.frameBytes}
}

// enter finds out whether the pod asks for a key, and comes in.
func (s *survey) enter(a *attempt) {
	probe, err := a.dial(func(d *wire.Dial) { d.Key = "" })
	if err == nil {
		probe.hangUp()
		a.peers = nil
		s.keyed = a.cfg.Key != "" // a key was given, so letting in without one is a fault that the auth rows name
	} else if refused, ok := errors.AsType[*wire.Refused](err); ok && refused.Status == 401 {
		s.keyed = true
		if a.cfg.Key == "" {
			a.fail(explain(err), "%v", ErrKeyNeeded)
		}
	} else {
		a.fail(explain(err), "the pod does not let a client in: %s", jsonrpc.Show(err.Error()))
	}
	p, err := a.dial()
	if err != nil {
		if refused, ok := errors.AsType[*wire.Refused](err); ok && refused.Status == 401 {
			a.fail(explain(err), "the pod does not take the key that was given")
		}
		a.fail(explain(err), "the pod does not let a client in: %s", jsonrpc.Show(err.Error()))
	}
	m := p.hello()
	offer, _ := decode[offered](m.Result)
	s.name, s.version = shown(offer.AgentInfo.Name), shown(offer.AgentInfo.Version)
	s.images, s.audio = offer.Capabilities.Prompt.Image, offer.Capabilities.Prompt.Audio
	a.note("%s %s", s.name, s.version)
}

// shown is a peer's text without the quotes when it needs none.
func shown(text string) string {
	quoted := jsonrpc.Show(text)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted
}

// offered is the result of initialize, as far as rows look at single members.
type offered struct {
	AgentInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	Capabilities struct {
		Prompt struct {
			Image bool `json:"image"`
			Audio bool `json:"audio"`
		} `json:"promptCapabilities"`
	} `json:"agentCapabilities"`
}

// explore learns what it can; what it cannot learn is assumed, and no row suffers from it.
func (s *survey) explore(ctx context.Context) {
	s.tool = map[string]string{}
	s.frameBytes = s.cfg.FrameBytes
	s.assume("frames may have %d bytes (limits.frame_bytes; --frame-bytes says otherwise)", s.frameBytes)
	s.assume("agent.workdir does not hold /proc, and agent.queue is 0")
	if v := s.cfg.try(ctx, s, Row{check: s.learnAgent}); v.Status != Pass {
		s.trouble = v.Reason
	}
	if s.agent == agentDemo || s.agent == agentNone {
		if v := s.cfg.try(ctx, s, Row{check: s.learnTools}); v.Status != Pass {
			s.assume("the granted tools are not known (%s): %s is called", v.Reason, s.names[0]+".click")
		}
	}
	if s.requestBytes = s.cfg.RequestBytes; s.requestBytes != 0 {
		return
	}
	if v := s.cfg.try(ctx, s, Row{check: s.learnRequestBytes}); v.Status != Pass {
		s.requestBytes = min(DefaultRequestBytes, s.frameBytes)
		s.assume("requests may have %d bytes (limits.request_bytes, which no data.limit tells; --request-bytes says otherwise)", s.requestBytes)
	}
}

func (s *survey) assume(format string, values ...any) {
	s.assumed = append(s.assumed, fmt.Sprintf(format, values...))
}

// learnAgent opens a session and greets whoever is there.
func (s *survey) learnAgent(a *attempt) {
	p := a.greeted()
	session := p.open()
	result, _ := decode[sessionResult](session.opened.Result)
	if result.Meta.Servers != nil && result.Meta.Servers.Facade.State != "ready" {
		facade := result.Meta.Servers.Facade
		s.facadeOff = strings.TrimSpace("the facade of this pod is " + shown(facade.State) + " " + shown(facade.Reason))
	}
	if session.facade.Token != "" {
		s.agent = agentNone
		return
	}
	from := len(p.seen)
	id := session.prompt(greeting)
	heard := func() string { return session.text(from, len(p.seen)) }
	echo := "echo: " + greeting
	p.await("an answer to a greeting", func() bool {
		return len(p.answered[id]) > 0 || heard() != "" && !strings.HasPrefix(echo, heard())
	})
	if len(p.answered[id]) > 0 {
		m := p.answered[id][0]
		if m.Error != nil && m.fault().Code == jsonrpc.Internal && m.fault().Reason() == "no_agent" {
			s.agent = agentNone
			if s.facadeOff == "" {
				s.facadeOff = "a token is given to clients on loopback only"
			}
			return
		}
		if m.Error != nil {
			a.fail(m.show(), "the agent cannot be prompted: %s", jsonrpc.Show(m.fault().Message))
		}
		p.within(a.cfg.Patience/10, func() bool { return heard() != "" }) // the rows judge the order
	}
	s.agent = agentOther
	if strings.HasPrefix(heard(), echo) {
		s.agent = agentDemo
		return
	}
	if len(p.answered[id]) == 0 {
		session.cancel()
		p.until(func() bool { return len(p.answered[id]) > 0 })
	}
}

// learnTools finds one granted tool of each server. The usual one is taken where it is granted.
func (s *survey) learnTools(a *attempt) {
	if s.facadeOff != "" {
		return
	}
	p := a.greeted()
	var servers []*server
	for _, name := range s.names {
		servers = append(servers, newServer(name, genA))
	}
	session := p.openReady(servers...)
	found := session.search()
	for _, name := range s.names {
		for _, suffix := range []string{"click", "read_dom", "screenshot", "navigate", "type", "wire_check"} {
			if slices.Contains(found, name+"."+suffix) {
				s.tool[name] = name + "." + suffix
				break
			}
		}
	}
}

// toolOf is the tool of a server that rows call.
func (s *survey) toolOf(name string) string {
	if tool, ok := s.tool[name]; ok {
		return tool
	}
	return name + ".click"
}

// learnRequestBytes sends requests that are too large, the largest first, until the pod says what would have been allowed.
func (s *survey) learnRequestBytes(a *attempt) {
	for size := s.frameBytes; size >= 64<<10; size /= 2 {
		p := a.greeted()
		id := `"limit"`
		p.expect(id)
		_ = p.write(padded(`{"jsonrpc":"2.0","id":`+id+`,"method":"_wirecheck/ping","params":"`, `"}`, size))
		if !p.until(func() bool { return len(p.answered[id]) > 0 }) {
			continue // it was longer than a frame may be, or the pod is broken there
		}
		m := p.answer(id)
		if m.Error == nil || m.fault().Code != jsonrpc.Overload {
			break
		}
		if data, ok := decode[limitData](m.fault().RawData); ok && data.Limit > 0 {
			s.requestBytes = int(data.Limit)
			return
		}
		break
	}
	a.fail("", "no answer names the limit")
}

// limitData is the data of a refusal.
type limitData struct {
	Scope string `json:"scope"`
	Limit int64  `json:"limit"`
	Used  *int64 `json:"used"`
	Size  int64  `json:"size"`
}

// padded is head and tail with so much between them that all has size bytes.
func padded(head, tail string, size int) string {
	return head + strings.Repeat("p", size-len(head)-len(tail)) + tail
}
