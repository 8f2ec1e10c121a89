package conform

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/acpod/acpod/actors/chaos/wire"
)

// Who gets in: by key where there is one, else by Host and Origin.

const wrongKey = "wire-check-this-is-not-the-key"

func authRows() []Row {
	return []Row{
		{Name: "no key is refused", Expected: "401", needs: needKey, check: refusedWith(401, func(d *wire.Dial) { d.Key = "" })},
		{Name: "a wrong key in Authorization is refused", Expected: "401", needs: needKey, check: refusedWith(401, func(d *wire.Dial) { d.Key = wrongKey })},
		{
			Name: "a wrong key in Authorization is refused, whatever the subprotocol says", Expected: "401", needs: needKey,
			check: refusedWith(401, func(d *wire.Dial) {
				d.ByProtocol, d.Header = true, http.Header{"Authorization": {"Bearer " + wrongKey}}
			}),
		},
		{
			Name: "two Authorization headers are refused", Expected: "400", needs: needKey,
			check: func(a *attempt) {
				right := "Bearer " + a.cfg.Key
				refusedWith(400, func(d *wire.Dial) { d.Key, d.Header = "", http.Header{"Authorization": {right, right}} })(a)
			},
		},
		{
			Name: "a key in the query is none", Expected: "401", needs: needKey,
			check: func(a *attempt) {
				at, err := url.Parse(a.cfg.Target)
				if err != nil {
					a.fail("", "%v", err)
				}
				query := at.Query()
				query.Set("token", a.cfg.Key)
				at.RawQuery = query.Encode()
				refusedWith(401, func(d *wire.Dial) { d.URL, d.Key = at.String(), "" })(a)
			},
		},
		{Name: "the key in Authorization is taken", Expected: "101, and initialize is answered", needs: needKey, check: letIn(func(*wire.Dial) {})},
		{
			Name: "Authorization decides, a wrong key in the subprotocol beside it counts for nothing", Expected: "101, and initialize is answered", needs: needKey,
			check: letIn(func(d *wire.Dial) { d.Protocols = []string{"acp.v1", "openab.bearer." + wrongKey} }),
		},
		{Name: "the key in a subprotocol is taken", Expected: "101 that echoes acp.v1 alone", needs: needKey, check: func(a *attempt) {
			p := a.enter(func(d *wire.Dial) { d.ByProtocol = true })
			p.echoes("acp.v1")
			p.hello()
		}},
		{Name: "a wrong key in a subprotocol is told on the socket", Expected: "101, then close 4401", needs: needKey, check: func(a *attempt) {
			p, err := a.dial(func(d *wire.Dial) { d.Key, d.ByProtocol = wrongKey, true })
			if err != nil {
				a.fail(explain(err), "a page cannot read the status of a refusal, so it is let in and told by the close")
			}
			p.echoes("acp.v1")
			p.closed(4401)
			a.note("101, then close 4401")
		}},
		{
			Name: "with a key, Origin is not looked at", Expected: "101, and initialize is answered", needs: needKey,
			check: letIn(func(d *wire.Dial) { d.Origin = "https://wire-check.invalid" }),
		},
		{
			Name: "with a key, Host is not looked at", Expected: "101, and initialize is answered", needs: needKey,
			check: letIn(func(d *wire.Dial) { d.Host = "wire-check.invalid" }),
		},

		{Name: "without an Origin a client gets in", Expected: "101, and initialize is answered", needs: needNoKey, check: letIn(func(*wire.Dial) {})},
		{Name: "a page of the pod's own gets in", Expected: "101, and initialize is answered", needs: needNoKey, check: func(a *attempt) {
			at, err := url.Parse(a.cfg.Target)
			if err != nil {
				a.fail("", "%v", err)
			}
			letIn(func(d *wire.Dial) { d.Origin = "http://" + at.Host })(a)
		}},
		{
			Name: "a page from elsewhere is refused", Expected: "403", needs: needNoKey,
			check: refusedWith(403, func(d *wire.Dial) { d.Origin = "https://wire-check.invalid" }),
		},
		{Name: "the Origin null is refused", Expected: "403", needs: needNoKey, check: refusedWith(403, func(d *wire.Dial) { d.Origin = "null" })},
		{
			Name: "a Host that is no loopback is refused", Expected: "403", needs: needNoKey,
			check: refusedWith(403, func(d *wire.Dial) { d.Host = "wire-check.invalid" }),
		},
		{
			Name: "a Host that is no loopback is refused with its own Origin", Expected: "403", needs: needNoKey,
			check: refusedWith(403, func(d *wire.Dial) { d.Host, d.Origin = "wire-check.invalid", "http://wire-check.invalid" }),
		},

		{Name: "only acp.v1 is echoed", Expected: "acp.v1 of what is offered, else nothing", check: func(a *attempt) {
			for _, offer := range []struct {
				protocols []string
				echo      string
			}{{[]string{"x.y", "acp.v1"}, "acp.v1"}, {[]string{"acp.v2", "x.y"}, ""}, {[]string{}, ""}} {
				a.enter(func(d *wire.Dial) { d.Protocols = offer.protocols }).echoes(offer.echo)
			}
			a.note("acp.v1, nothing, nothing")
		}},
		{Name: "each connection has an Acp-Connection-Id", Expected: "the header in the 101, never the same", check: func(a *attempt) {
			seen := map[string]bool{}
			for range 3 {
				id := a.enter().socket.ConnectionID()
				if id == "" || seen[id] {
					a.fail("Acp-Connection-Id "+id, "it is absent, or another connection has it")
				}
				seen[id] = true
			}
			a.note("three different ones")
		}},
	}
}

// refusedWith wants an upgrade to be refused with that status.
func refusedWith(status int, how func(*wire.Dial)) func(*attempt) {
	return func(a *attempt) {
		_, err := a.dial(how)
		if err == nil {
			a.fail("101", "it was let in")
		}
		if refused, ok := errors.AsType[*wire.Refused](err); !ok || refused.Status != status {
			a.fail(explain(err), "it was not refused with %d", status)
		}
		a.note("%d", status)
	}
}

// letIn wants an upgrade to be taken and the connection to work.
func letIn(how func(*wire.Dial)) func(*attempt) {
	return func(a *attempt) {
		a.enter(how).hello()
		a.note("101, and initialize is answered")
	}
}

// echoes wants the 101 to have chosen that subprotocol, "" for none.
func (p *peer) echoes(protocol string) {
	if got := p.socket.Protocol(); got != protocol {
		p.a.fail("Sec-WebSocket-Protocol "+shown(got), "it is not %q", protocol)
	}
}
