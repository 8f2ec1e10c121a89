package provider

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// world is a pod with servers and one desk, in simulated time.
type world struct {
	t    *testing.T
	k    *kernel.Kernel
	p    *Providers
	top  kernel.Ref
	desk kernel.Ref
	open map[kernel.Ticket]*outcome // touched in turns of the desk only
}

// outcome is what came of one call or discovery.
type outcome struct {
	ticket kernel.Ticket
	ended  bool
	result string
	err    error
	ends   int
}

// play runs a test in a world of its own. The servers are reached by dial.
func play(t *testing.T, cfg Config, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, k: kerneltest.Start(t, kernel.Options{Logger: cfg.Log}), open: map[kernel.Ticket]*outcome{}}
		root, _ := kerneltest.Root(t, w.k)
		if cfg.Rand == nil {
			cfg.Rand = func() float64 { return 0.5 }
		}
		w.p = New(cfg)
		w.top = kerneltest.Spawn(t, root, w.p.Spec())
		probe := kerneltest.NewProbe()
		probe.On = func(_ *kernel.Ctx, m kernel.Msg) (bool, error) {
			a, ok := m.(kernel.Answer)
			if !ok {
				return false, nil
			}
			o := w.open[a.Ticket]
			if o == nil {
				t.Errorf("an answer to nothing: %+v", a)
				return true, nil
			}
			o.ended, o.err = true, a.Err
			o.ends++
			if r, ok := a.Msg.(capability.Result); ok {
				o.result = string(r.Raw)
			}
			a.Lease.Release()
			return true, nil
		}
		w.desk = kerneltest.Spawn(t, root, probe.Spec("desk"))
		synctest.Wait()
		f(w)
	})
}

// with is a config of one server that is reached through HTTP, so that its session can be lost.
func with(s *fakeServer, change ...func(*mcpjson.Server)) Config {
	entry := mcpjson.Server{Name: "shop", Kind: mcpjson.HTTP, URL: "http://127.0.0.1:1/mcp", RequestTimeout: time.Minute}
	for _, f := range change {
		f(&entry)
	}
	return Config{Set: mcpjson.Set{Servers: []mcpjson.Server{entry}}, Dial: s.dial}
}

// call makes one call and lets everything happen that happens at once.
func (w *world) call(tool string, change ...func(*capability.Call)) *outcome {
	w.t.Helper()
	return w.callOf(w.p.sources[0], tool, change...)
}

func (w *world) callOf(src capability.Source, tool string, change ...func(*capability.Call)) *outcome {
	w.t.Helper()
	o := &outcome{}
	kerneltest.Do(w.t, w.desk, func(c *kernel.Ctx) {
		args := []byte(`{"n":1}`)
		lease, err := w.k.Account().Acquire(int64(len(args)))
		if err != nil {
			w.t.Error(err)
		}
		m := capability.Call{Tool: tool, Arguments: args, Owner: "#1", Bytes: lease, Deadline: c.Now().Add(170 * time.Second), Limit: c.Now().Add(30 * time.Minute)}
		for _, f := range change {
			f(&m)
		}
		if o.ticket, err = src.Call(c, m); err != nil {
			o.ended, o.err = true, err
			return
		}
		w.open[o.ticket] = o
	})
	synctest.Wait()
	return o
}

func (w *world) discover() *outcome { w.t.Helper(); return w.want(capability.Searched) }

func (w *world) want(want capability.Want) *outcome {
	w.t.Helper()
	o := &outcome{}
	kerneltest.Do(w.t, w.desk, func(c *kernel.Ctx) {
		var err error
		if o.ticket, err = w.p.sources[0].Discover(c, want); err != nil {
			o.ended, o.err = true, err
			return
		}
		w.open[o.ticket] = o
	})
	synctest.Wait()
	return o
}

func (w *world) cancel(o *outcome) {
	kerneltest.Do(w.t, w.desk, func(c *kernel.Ctx) { c.Cancel(o.ticket) })
	synctest.Wait()
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	kerneltest.Do(w.t, w.desk, func(*kernel.Ctx) {}) // what the desk does later comes after what the test has read
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) tools() *capability.Toolset { return w.p.sources[0].Tools() }

func (w *world) state() capability.State { return w.tools().State }

// node is the server's place in the tree.
func (w *world) node(name string) kernel.Node {
	for _, n := range w.k.Tree().Children {
		for _, s := range n.Children {
			if s.Name == name {
				return s
			}
		}
	}
	w.t.Fatalf("%s is not in the tree", name)
	return kernel.Node{}
}

func (w *world) refused(scope string) int64 { return w.node("shop").Refused[scope] }

// ok answers every call with a result.
func ok(l *fakeLink, m said) bool {
	if m.method != "tools/call" {
		return false
	}
	l.reply(m, `{"content":[],"called":"`+m.tool()+`"}`)
	return true
}
