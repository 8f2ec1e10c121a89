package tunnel

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// TestAnAbandonedTunnelLeavesNothingBehindWhenItsLastTurnHasEnded holds a tunnel in one of its turns until it is given up; then the turn goes on.
func TestAnAbandonedTunnelLeavesNothingBehindWhenItsLastTurnHasEnded(t *testing.T) {
	early := declaredA
	early.Tools = []byte(`[{"name":"katashiro.click","inputSchema":{"type":"object"}}]`)
	for what, tc := range map[string]struct {
		declared acp.Declared
		at       string
		play     func(l *lab)
		closed   Connections
	}{
		"before it has listed what was declared": {declared: early, at: "gone", play: func(*lab) {}},
		"while it binds its connection": {declared: declaredA, at: "bind", play: func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
		}, closed: Connections{Opened: 1, Disconnected: 1}},
		"while it binds a connection that is another's": {declared: declaredA, at: "bind", play: func(l *lab) {
			l.taken = "conn-1"
			l.answer(l.request("mcp/connect", ""), connected)
		}, closed: Connections{Opened: 1, Taken: 1}},
		"between two pages of its list": {declared: declaredA, at: `"cursor":"two"`, play: func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			l.answer(l.request("mcp/message", ""), initialized)
			l.answer(l.request("mcp/message", ""), strings.TrimSuffix(oneTool, "}")+`,"nextCursor":"two"}`)
		}, closed: Connections{Opened: 1, Disconnected: 1}},
		"while it sends a call": {declared: declaredA, at: "tools/call", play: func(l *lab) {
			l.ready(`{"tools":[]}`)
			l.call(capability.Call{Tool: "katashiro.click", Arguments: []byte(`{}`)})
		}, closed: Connections{Opened: 1, Disconnected: 1}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				gate, stuck := make(chan struct{}), make(chan struct{})
				var caught atomic.Bool
				l.block = func(at string) {
					if strings.Contains(at, tc.at) {
						if caught.CompareAndSwap(false, true) {
							close(stuck)
							<-gate
						}
					}
				}
				l.open(tc.declared, Limits{})
				tc.play(l)
				<-stuck
				l.ref.Stop(ErrWithdrawn)
				l.over()
				if !errors.Is(l.ref.Cause(), kernel.ErrAbandoned) {
					t.Fatalf("it ended with %v", l.ref.Cause())
				}
				l.tunnel.Close() // as the session does
				l.tunnel.Tools().List.Release()
				if s := l.tunnel.Status(); s.State != Withdrawn || s.Reason == "" || l.tunnel.Tools().State != capability.Detached {
					t.Errorf("a tunnel without last words is %+v, %s", s, l.tunnel.Tools().State)
				}
				close(gate)
				synctest.Wait()
				if got := l.stats.Snapshot(); got != tc.closed {
					t.Errorf("connections: %+v, want %+v", got, tc.closed)
				}
				for id, to := range l.bound {
					if to == l.ref {
						t.Errorf("%s is bound to a tunnel that is no more", id)
					}
				}
				if l.tunnel.Tools().List != nil && len(l.tunnel.Tools().List.All()) > 0 {
					t.Error("it has listed something after its end")
				}
				if n := l.k.Account().Used(); n != 0 {
					t.Errorf("%d bytes are left", n)
				}
			})
		})
	}
}

func TestOnlyTheGenerationThatBeganLastSpeaksForATunnel(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	list := func() (*capability.List, *kernel.Lease) {
		lease, err := k.Account().Acquire(10)
		if err != nil {
			t.Fatal(err)
		}
		return capability.NewList([]mcp.Tool{}, false, lease), lease
	}
	tunnel := New(Params{Declared: declaredA, Carrier: &socket{}})
	tunnel.speaks(4)
	tunnel.speaks(9)
	mine, paid := list()
	if _, ok := tunnel.show(9, capability.Ready, Status{State: Ready}, mine); !ok {
		t.Fatal("the living generation was refused")
	}
	theirs, late := list()
	if _, ok := tunnel.show(4, capability.Failed, Status{State: Failed}, theirs); ok || late.Size() != 0 || paid.Size() == 0 {
		t.Errorf("a generation that was abandoned could speak: %v, its list holds %d bytes, the other's %d", ok, late.Size(), paid.Size())
	}
	tunnel.Close()
	theirs, late = list()
	if _, ok := tunnel.show(9, capability.Ready, Status{State: Ready}, theirs); ok || late.Size() != 0 || tunnel.Tools().List != mine || paid.Size() == 0 {
		t.Error("a tunnel that was given up listed something")
	}
	mine.Release()
	if n := k.Account().Used(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func TestATunnelThatEndsBetweenTwoPagesOfItsListGivesThemBack(t *testing.T) {
	for what, end := range map[string]func(l *lab){
		"it is withdrawn":    func(l *lab) { l.ref.Stop(ErrWithdrawn) },
		"its socket is gone": func(l *lab) { close(l.gone) },
		"its session ends":   func(l *lab) { l.session.Stop(nil) },
	} {
		t.Run(what, func(t *testing.T) {
			run(t, declaredA, Limits{}, func(l *lab) {
				l.answer(l.request("mcp/connect", ""), connected)
				l.answer(l.request("mcp/message", ""), initialized)
				l.answer(l.request("mcp/message", ""), strings.TrimSuffix(oneTool, "}")+`,"nextCursor":"two"}`)
				l.request("mcp/message", "")
				end(l)
				l.over()
				if n := l.k.Account().Used(); n != 0 {
					t.Errorf("%d bytes are left", n)
				}
			})
		})
	}
}
