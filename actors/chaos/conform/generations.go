package conform

import (
	"fmt"
	"strings"
)

// The way of one server from its declaration to its end, in each of the four generations of MCP over ACP.

func generationRows() []Row {
	var rows []Row
	for _, g := range []generation{genA, genB, genC, gen0} {
		named := func(format string) string { return fmt.Sprintf(format, string(g)) }
		connects, disconnects := "exactly one connect with its id, the MCP handshake, tools/list, state ready", "exactly one disconnect of the connection that was opened"
		if g == genC {
			connects, disconnects = "one mcp/connect that is answered -32601, then tools/list without a handshake, state ready", "nothing: this generation opens nothing"
		}
		cancels := "$/cancel_request with the id of the call"
		if g == genA {
			cancels = "$/cancel_request and mcp/cancel with the id of the call"
		}
		rows = append(rows,
			Row{Name: named("%s: a declared server is connected and listed"), Expected: connects, check: func(a *attempt) { connectsAndLists(a, g) }},
			Row{Name: named("%s: its tools are found and called"), Expected: "the call as it was made, its result as it was given", needs: needCaller, check: func(a *attempt) { isCalled(a, g) }},
			Row{Name: named("%s: an error of a tool reaches its caller"), Expected: "an error that says what the server said", needs: needCaller, check: func(a *attempt) { errs(a, g) }},
			Row{Name: named("%s: a cancel reaches the server"), Expected: cancels + "; the call ends", needs: needCaller, check: func(a *attempt) { isCancelled(a, g) }},
			Row{Name: named("%s: the end of the session ends its connection"), Expected: disconnects, check: func(a *attempt) { isDisconnected(a, g) }},
		)
	}
	return rows
}

func connectsAndLists(a *attempt, g generation) {
	p := a.greeted()
	one := newServer(a.name(), g)
	p.openReady(one)
	p.rest(quiet)
	one.connectedOnce(a)
	switch {
	case g == genC && len(one.versions)+one.initialized > 0:
		a.fail("an MCP handshake", "generation C has none")
	case g != genC && (len(one.versions) != 1 || one.initialized != 1):
		a.fail(fmt.Sprintf("%d initialize, %d notifications/initialized", len(one.versions), one.initialized), "the handshake is made once")
	case one.lists != 1:
		a.fail(fmt.Sprintf("%d tools/list", one.lists), "a list that did not change is fetched once")
	}
	a.note("connected once, listed once")
}

func isCalled(a *attempt, g generation) {
	p := a.greeted()
	one := newServer(a.name(), g)
	s := p.openReady(one)
	tool := a.survey.toolOf(one.name)
	if found := s.search(); len(ofServer(found, one.name)) == 0 {
		a.fail(fmt.Sprintf("%d capabilities found", len(found)), "no tool of server %q is found: its grant has to name at least one of its tools", one.name)
	}
	const arguments = `{"selector":"#bump"}`
	s.wants(s.result(tool, arguments), tool+" "+arguments)
	if len(one.calls) != 1 || one.calls[0].name != tool || one.calls[0].arguments != arguments {
		a.fail(fmt.Sprintf("%.200q", fmt.Sprint(one.calls)), "the server did not see exactly this call")
	}
	a.note("called once")
}

func errs(a *attempt, g generation) {
	const text = "no element matches the selector"
	p := a.greeted()
	one := newServer(a.name(), g)
	one.run = func(toolCall) reply { return reply{err: fmt.Sprintf(`{"code":-32602,"message":%q}`, text)} }
	s := p.openReady(one)
	o := s.result(a.survey.toolOf(one.name), `{}`)
	if !o.isError || !strings.Contains(o.text, text) {
		a.fail(o.show(), "it does not say what the server said: %q", text)
	}
	one.run = func(toolCall) reply {
		return reply{result: strings.TrimSuffix(textResult(text), "}") + `,"isError":true}`}
	}
	if o = s.result(a.survey.toolOf(one.name), `{}`); !o.isError || o.text != text {
		a.fail(o.show(), "a result that is an error is not mirrored: %q", text)
	}
	a.note("an error, twice")
}

func isCancelled(a *attempt, g generation) {
	p := a.greeted()
	one := newServer(a.name(), g)
	one.run = func(toolCall) reply { return reply{hold: true} }
	s := p.openReady(one)
	o := s.call(a.survey.toolOf(one.name), `{}`)
	p.await("the call at the server", func() bool { return len(one.calls) > 0 || o.done })
	if o.done {
		a.fail(o.show(), "the call ended before it was at the server")
	}
	s.cancel()
	outer := one.calls[0].outer
	p.await("$/cancel_request "+outer, func() bool { return one.cancelledBy("$/cancel_request", outer) })
	if g == genA {
		p.await("mcp/cancel "+outer, func() bool { return one.cancelledBy("mcp/cancel", outer) })
	}
	s.wait(o, "the end of the cancelled call")
	if o.raw != nil {
		if !o.isError || o.refusal != "cancelled" && o.refusal != "outcome_unknown" {
			a.fail(o.show(), "its end is neither cancelled nor outcome_unknown")
		}
	} else if o.stop != "cancelled" {
		a.fail(o.show(), "the turn did not end as cancelled")
	}
	p.silent("a late answer", func() { p.reply(outer, maybeEnveloped(g, reply{result: textResult("too late")})) })
	a.note("cancelled")
}

func maybeEnveloped(g generation, r reply) reply {
	if g == genC {
		return enveloped(r)
	}
	return r
}

func isDisconnected(a *attempt, g generation) {
	p := a.greeted()
	one := newServer(a.name(), g)
	s := p.openReady(one)
	s.close()
	if g == genC {
		p.rest(quiet)
		if len(p.received("mcp/disconnect")) > 0 {
			a.fail("mcp/disconnect", "there was nothing to end")
		}
		a.note("nothing")
		return
	}
	p.await("the disconnect", func() bool { return len(one.ended) > 0 })
	p.rest(quiet)
	one.disconnectedOnce(a)
	if len(one.odd) > 0 {
		a.fail(one.odd[0], "each generation is spoken to in its own manner")
	}
	a.note("ended once")
}
