package tunnel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kerneltest"
)

var sevenTools = []string{"katashiro.read_dom", "katashiro.screenshot", "katashiro.navigate", "katashiro.click", "katashiro.type", "katashiro.eval", "katashiro.cookies"}

func listOf(names ...string) string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf(`{"name":%q,"description":"%s","inputSchema":{"type":"object","properties":{"selector":{"type":"string"}}}}`, n, n))
	}
	return strings.Join(out, ",")
}

// withDesk gives the lab a desk of its own in place of the probe.
func (l *lab) withDesk() capability.Caller {
	l.t.Helper()
	view := new(atomic.Pointer[capability.View])
	l.deskRef = kerneltest.Spawn(l.t, l.session, capability.DeskSpec("real-desk", capability.DeskConfig{Tag: "#tag", View: view}))
	return capability.Caller{Desk: l.deskRef, View: view, Tag: "#tag", Account: l.k.Account(), Token: sha256.Sum256([]byte("t"))}
}

func (l *lab) search(who capability.Caller) string {
	l.t.Helper()
	text, lease, err := capability.Search(context.Background(), who, capability.Query{Names: true})
	lease.Release()
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func TestAClientThatListsSevenToolsShowsTheFiveThatAreGrantedEarlyAndLate(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ref.Stop(nil)
		l.over()
		l.cancelled(l.request("mcp/connect", ""))
		who := l.withDesk()
		d := acp.Declared{Name: "katashiro", ID: "srv-9", Form: acp.FormID, Tools: []byte("[" + listOf(sevenTools...) + "]")}
		l.tunnel = New(Params{Declared: d, Carrier: l.socket, Attach: 9, Session: "sess_x", Desk: l.deskRef})
		if err := l.deskRef.Signal(capability.Attach{Source: l.tunnel}); err != nil {
			t.Fatal(err)
		}
		l.ref = kerneltest.Spawn(t, l.session, l.tunnel.Spec("tunnel-2"))
		synctest.Wait()
		count := func(when string, pending bool) {
			t.Helper()
			begun := time.Now()
			found := l.search(who)
			if n := strings.Count(found, `"name":`); n != 5 || strings.Contains(found, "eval") || strings.Contains(found, `"pending":["katashiro"]`) != pending || time.Since(begun) != 0 {
				t.Errorf("%s: %d after %v: %s", when, n, time.Since(begun), found)
			}
		}
		count("early", true)
		early := l.execute(who, "katashiro.click", `{"selector":"#a"}`)
		l.answer(l.request("mcp/connect", ""), connected)
		l.answer(l.request("mcp/message", ""), initialized)
		l.answer(l.request("mcp/message", ""), `{"tools":[`+listOf(sevenTools...)+`]}`)
		l.answer(l.request("mcp/message", ""), `{"content":[{"type":"text","text":"clicked"}]}`) // the call had waited for its server
		if e := <-early; e.err != nil || !strings.Contains(e.raw, "clicked") {
			t.Errorf("the early call: %+v", e)
		}
		count("real", false)
		l.inbound(acp.Inbound{Method: "notifications/tools/list_changed"})
		l.answer(l.request("mcp/message", ""), `{"tools":[`+listOf(append(sevenTools, "katashiro.a", "katashiro.b")...)+`]}`)
		count("late, nine", false)
		for name, want := range map[string]capability.Code{"katashiro.eval": capability.ToolNotGranted, "katashiro.a": capability.ToolNotGranted, "other.x": capability.Unknown, "click": capability.MalformedName} {
			if e := <-l.execute(who, name, `{}`); e.code != want {
				t.Errorf("%s: got %+v, want %s", name, e, want)
			}
		}
		l.quiet() // none of them reached the client
		close(l.gone)
		l.over()
		if err := l.deskRef.Signal(capability.Detach{Source: l.tunnel}); err != nil {
			t.Fatal(err)
		}
		if e := <-l.execute(who, "katashiro.click", `{}`); e.code != capability.NotAttached {
			t.Errorf("after the client went: %+v", e)
		}
	})
}

// executed is what came of a call through the door.
type executed struct {
	raw  string
	code capability.Code
	err  error
}

func (l *lab) execute(who capability.Caller, name, args string) chan executed {
	out := make(chan executed, 1)
	go func() {
		d, err := capability.Execute(context.Background(), who, capability.Request{Name: name, Arguments: []byte(args)})
		e := executed{err: err}
		if err == nil {
			e.raw = string(d.Raw)
			d.Done()
		}
		var refusal *capability.Refusal
		if errors.As(err, &refusal) {
			e.code = refusal.Code
		}
		out <- e
	}()
	synctest.Wait()
	return out
}

func TestACallInFlightWhenItsClientVanishesIsAnsweredAtOnceAndNotAsIfItHadNotBeenMade(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ref.Stop(nil)
		l.over()
		l.cancelled(l.request("mcp/connect", ""))
		who := l.withDesk()
		l.tunnel = New(Params{Declared: declaredA, Carrier: l.socket, Attach: 9, Session: "sess_x", Desk: l.deskRef})
		if err := l.deskRef.Signal(capability.Attach{Source: l.tunnel}); err != nil {
			t.Fatal(err)
		}
		l.ref = kerneltest.Spawn(t, l.session, l.tunnel.Spec("tunnel-2"))
		l.ready(`{"tools":[` + listOf("katashiro.click") + `]}`)
		c := l.execute(who, "katashiro.click", `{}`)
		q := l.request("mcp/message", "")
		close(l.gone)
		begun := time.Now()
		if e := <-c; e.code != capability.OutcomeUnknown || time.Since(begun) != 0 {
			t.Errorf("got %+v after %v", e, time.Since(begun))
		}
		l.answer(q, `{"content":[]}`) // whatever still comes is dropped and freed
	})
}
