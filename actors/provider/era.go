package provider

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/provider/httplink"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// errEra ends a connection to a server that speaks the other era.
var errEra = errors.New("the server speaks another era of the protocol")

// otherEra tells whether a server's answer to the first request of one era says that it speaks the other one. A child is not asked:
// some end when they are sent what they do not know.
func otherEra(kind mcpjson.Kind, modern bool, err error) bool {
	fault, ok := errors.AsType[*jsonrpc.Error](err)
	if kind != mcpjson.HTTP {
		return false
	}
	if !ok {
		return modern && errors.Is(err, mcp.ErrVersion) || !modern && errors.Is(err, errModern)
	}
	if supported, named := httplink.Supported(fault); named {
		return slices.Contains(supported, mcp.VersionModern) != modern
	}
	return fault.Code == jsonrpc.MethodNotFound
}

// turn tries the server in the other era, on a connection of its own, once.
func (a *actor) turn(c *kernel.Ctx, err error) bool {
	if a.turned || !otherEra(a.s.entry.Kind, a.modern, err) {
		return false
	}
	a.turned, a.turning, a.modern = true, true, !a.modern
	c.Refuse("era")
	a.end(c, errEra)
	return true
}

// ask for what a server of the era without a handshake is.
func (a *actor) askWhatItIs(c *kernel.Ctx) {
	a.conn.phase = initializing
	a.inquire(c, false)
}

// inquire asks, and once more when the server refuses the version of the request and names the same as one that it speaks.
func (a *actor) inquire(c *kernel.Ctx, again bool) {
	a.ask(c, httplink.MethodDiscover, []byte("{}"), a.patience(), func(c *kernel.Ctx, result []byte, err error) {
		var s mcp.Server
		if err == nil {
			s, err = httplink.Discovered(result)
		}
		fault, _ := errors.AsType[*jsonrpc.Error](err)
		supported, refused := httplink.Supported(fault)
		switch {
		case refused && !again && slices.Contains(supported, mcp.VersionModern):
			a.inquire(c, true)
			return
		case a.turn(c, err):
			return
		case err != nil && !isFault(err) || errors.Is(err, mcp.ErrVersion):
			a.broken(c, fmt.Errorf("%s: %w: %w", httplink.MethodDiscover, errHandshake, err))
			return
		case err != nil:
			a.broken(c, fmt.Errorf("%s: %w", httplink.MethodDiscover, err))
			return
		}
		n := a.conn
		n.greeting = greeting{version: s.Version, tools: s.Tools, changes: s.ListChanged}
		n.link.Speaks(s.Version)
		c.Attr("mcp", s.Version)
		n.phase = listing
		a.fetch(c)
	})
}

// listenAgain is between the end of a subscription and the next.
const listenAgain = 10 * time.Second

// listenDue begins the next subscription of that connection.
type listenDue struct{ number uint64 }

var listenParams = []byte(`{"notifications":{"toolsListChanged":true}}`)

// listen has a server of the era without a handshake tell when its tools change: it says so to nobody who has not asked.
func (a *actor) listen(c *kernel.Ctx) {
	n := a.conn
	if !a.modern || !n.greeting.changes {
		return
	}
	a.ask(c, mcp.MethodListen, listenParams, 0, func(c *kernel.Ctx, _ []byte, err error) {
		if isAnswer(err) {
			c.Refuse("listen")
			return
		}
		c.After(listenAgain, listenDue{n.number})
	})
}

// listenDue asks again, and looks at what may have changed meanwhile.
func (a *actor) listenDue(c *kernel.Ctx, number uint64) {
	if a.is(number) && a.conn.phase == ready {
		a.listen(c)
		a.changed(c)
	}
}

// mirrored are the headers in which the era without a handshake repeats arguments of a call.
func (a *actor) mirrored(k *call) [][2]string {
	if !a.modern {
		return nil
	}
	tool, ok := a.list.list.Tool(k.Tool)
	if !ok {
		return nil
	}
	mirrors, err := httplink.Mirrors(tool.InputSchema)
	if err != nil { // such a tool is not listed
		return nil
	}
	return httplink.Fields(mirrors, k.Arguments)
}

// unmirrored leaves out the tools of a page whose headers are not as they may be.
func unmirrored(p page) page {
	p.tools = slices.DeleteFunc(p.tools, func(t mcp.Tool) bool {
		_, err := httplink.Mirrors(t.InputSchema)
		if err != nil {
			p.left = append(p.left, omission{t.Name, notATool, err.Error()})
		}
		return err != nil
	})
	return p
}
