package capability

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// TestWhateverHappensInWhateverOrder plays a session with a few servers and
// callers at random, and looks at what must hold at the end: each call ended once,
// each call record has its exit, a key was sent at most once, nothing is counted
// as open and no byte is charged (which the kernel's cleanup looks at).
func TestWhateverHappensInWhateverOrder(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run(t, DeskConfig{Limits: DeskLimits{Calls: 8, Keys: 4, KeptBytes: 128}}, func(w *world) { (&chaos{w: w, rand: rand.New(rand.NewPCG(seed, 1))}).play() })
		})
	}
}

// TestWhateverConfiguredServersDo is the same with servers of the operator's, which list, fail, hang and come back as they like, one of which each
// session has of its own. A name that was shown or used never leads elsewhere.
func TestWhateverConfiguredServersDo(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ours := []*fakeServer{newServer("files", Idle, nil).but("pay"), newServer("shop", Idle, nil)}
			own := &fakeIsolated{fakeServer: newServer("browser", Idle, nil)}
			cfg := DeskConfig{Limits: DeskLimits{Calls: 8, Keys: 4, KeptBytes: 128}, Pins: &fakePins{}, Configured: []Configured{own}}
			runWith(t, cfg, ours, func(w *world) { (&chaos{w: w, rand: rand.New(rand.NewPCG(seed, 2)), ours: ours, own: own}).play() })
		})
	}
}

type chaos struct {
	w       *world
	rand    *rand.Rand
	sources []*fakeSource
	ends    int
	begun   int
	done    chan struct{}
	hangs   []context.CancelFunc
	open    []*kernel.Question
	keyed   map[string]int // by key and argument: how often it was sent
	ours    []*fakeServer
	own     *fakeIsolated
	meant   map[string]binding // what names meant that were shown
}

func (x *chaos) play() {
	w := x.w
	x.done, x.keyed, x.meant = make(chan struct{}, 1000), map[string]int{}, map[string]binding{}
	for range 200 {
		x.step()
		synctest.Wait()
		x.drain()
		x.names()
	}
	for _, hang := range x.hangs {
		hang()
	}
	w.signal(EndCalls{Reason: EndSession})
	for _, q := range x.open {
		q.Fail(ErrDetached)
	}
	time.Sleep(time.Hour)
	for len(x.done) > 0 {
		<-x.done
		x.ends++
	}
	if x.ends != x.begun {
		w.t.Errorf("%d calls were begun and %d have ended", x.begun, x.ends)
	}
	if n := w.open.Load(); n != 0 {
		w.t.Errorf("%d calls are counted as open", n)
	}
	records := map[uint64][]Event{}
	for _, e := range w.trail.all() {
		records[e.Call] = append(records[e.Call], e.Event)
	}
	for id, events := range records {
		if got := fmt.Sprint(events); id != 0 && got != "[call exit]" && got != "[refused]" {
			w.t.Errorf("call %d has the records %s", id, got)
		}
	}
	if x.ends < 20 || len(x.keyed) == 0 {
		w.t.Errorf("only %d calls and %d keys were tried", x.ends, len(x.keyed))
	}
	for key, n := range x.keyed {
		if n > 1 {
			w.t.Errorf("%s was sent %d times under one key, and each time it may have had an effect", key, n)
		}
	}
}

func (x *chaos) step() {
	w, r := x.w, x.rand
	server := []string{"shop", "bank"}[r.IntN(2)]
	if len(x.ours) > 0 && r.IntN(4) == 0 {
		x.configured()
		return
	}
	switch r.IntN(14) {
	case 0:
		if len(x.sources) < 20 {
			state := []State{Connecting, Ready}[r.IntN(2)]
			x.sources = append(x.sources, w.attach(newSource(server, state, tools("go", server+".read!", "pay"))))
		}
	case 1:
		if len(x.sources) > 0 {
			w.signal(Detach{x.sources[r.IntN(len(x.sources))]})
		}
	case 2:
		if len(x.sources) > 0 {
			s := x.sources[r.IntN(len(x.sources))]
			lists := []*List{tools("go", "pay", server+".read!"), tools("pay"), tools("other", "go"), nil}
			w.publish(s, State(r.IntN(4)), lists[r.IntN(len(lists))])
		}
	case 3, 4, 5, 6, 7:
		x.call(server)
	case 8:
		if len(x.hangs) > 0 {
			x.hangs[r.IntN(len(x.hangs))]()
		}
	case 9:
		w.signal(CancelRequest{Token: w.caller.Token, RequestID: fmt.Sprint(r.IntN(4))})
	case 10:
		w.signal(EndCalls{Reason: EndTurn})
	case 11:
		if r.IntN(6) == 0 {
			_ = w.desk.Current().Signal(Attach{nil}) // a fault of our own
			time.Sleep(15 * time.Second)
		}
	default:
		time.Sleep(time.Duration(r.IntN(20)) * time.Second)
	}
}

func (x *chaos) call(server string) {
	w, r := x.w, x.rand
	name := []string{"go", server + ".go", "pay", server + ".read", "nope", server + ".nope"}[r.IntN(6)]
	if len(x.ours) > 0 && r.IntN(2) == 0 {
		name = []string{"files.go", "browser.go", "files.pay", "browser.nope", "other", "files.other"}[r.IntN(6)]
	}
	request := Request{Name: name, Arguments: []byte([]string{`{}`, `{"n":1}`, `{"n":"x"}`}[r.IntN(3)]), RequestID: fmt.Sprint(r.IntN(4)), EndsOnClose: r.IntN(4) == 0}
	if r.IntN(2) == 0 {
		request.Key = fmt.Sprint("k", r.IntN(3))
		request.Arguments = []byte(`{"n":100` + request.Key[1:] + `}`)
	}
	who := w.caller
	who.Desk = w.desk.Current()
	if r.IntN(5) == 0 {
		who.Token = sha256.Sum256([]byte("other"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.hangs = append(x.hangs, cancel)
	x.begun++
	lease, err := w.k.Account().Acquire(int64(len(request.Arguments)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Bytes = lease
	go func() {
		if d, err := Execute(ctx, who, request); err == nil {
			d.Done()
		}
		x.done <- struct{}{}
	}()
}

// configured lets one of the operator's servers do something, or somebody search.
func (x *chaos) configured() {
	s := x.ours[x.rand.IntN(len(x.ours))]
	if n := len(x.own.made); n > 0 && x.rand.IntN(3) == 0 {
		s = x.own.made[x.rand.IntN(n)]
	}
	switch x.rand.IntN(4) {
	case 0:
		lists := []*List{tools("go", "pay", "read!"), tools("other"), described(false, "go: is another"), s.Tools().List}
		s.become(Toolset{State: State(x.rand.IntN(6)), List: lists[x.rand.IntN(len(lists))]})
	case 1:
		if n := len(x.own.made); n > 0 {
			x.own.made[x.rand.IntN(n)].ref.Stop(nil)
		}
	default:
		ctx, cancel := context.WithCancel(context.Background())
		x.hangs = append(x.hangs, cancel)
		x.begun++
		who := x.w.caller
		who.Desk = x.w.desk.Current()
		names := []string{"go", "files.other", "pay"}
		direct := x.rand.IntN(3) == 0
		go func() {
			if direct {
				Direct(ctx, who, names)
			} else if _, lease, err := Search(ctx, who, Query{}); err == nil {
				lease.Release()
			}
			x.done <- struct{}{}
		}()
	}
}

// discovered answers a server's question for its list, now, or never.
func (x *chaos) discovered(s *fakeSource, q *kernel.Question) {
	switch x.rand.IntN(4) {
	case 0:
		x.open = append(x.open, q)
		return
	case 1:
		s.set.Store(&Toolset{State: Failed, Reason: "why", List: s.Tools().List})
	default:
		s.set.Store(&Toolset{State: Ready, List: tools("go", "pay", "read!")})
	}
	q.Answer(Discovered{}, nil)
}

// names looks at what names mean that were given: the same for ever.
func (x *chaos) names() {
	v := x.w.view.Load()
	v.names.all(func(name string, b binding) {
		if was, known := x.meant[name]; known && was != b {
			x.w.t.Errorf("%q meant %v and means %v", name, was, b)
		}
		x.meant[name] = b
	})
	for _, c := range v.Catalog() {
		if c.configured && !v.roster.servers[c.at].Allows(c.Tool.Name) {
			x.w.t.Errorf("%+v is shown, and its filter does not allow it", c)
		}
	}
}

// drain takes what reached the servers and answers some of it.
func (x *chaos) drain() {
	servers := slices.Clone(x.sources)
	for _, s := range x.ours {
		servers = append(servers, s.fakeSource)
	}
	if x.own != nil {
		for _, s := range x.own.made {
			servers = append(servers, s.fakeSource)
		}
	}
	for at, s := range servers {
		for s.probe.Pending() > 0 {
			g := s.probe.Next(x.w.t)
			if _, ok := g.Msg.(discover); ok {
				x.discovered(s, g.Question)
			}
			call, ok := g.Msg.(Call)
			if !ok {
				continue
			}
			call.Bytes.Release()
			how := x.rand.IntN(5)
			if args := string(call.Arguments); how != 2 && strings.HasPrefix(args, `{"n":100`) && !strings.HasSuffix(call.Tool, ".read") {
				where := s.server
				if at >= len(x.sources) {
					where = place{true, s.server}.inLedger()
				}
				x.keyed[where+" "+call.Tool+" "+args]++
			}
			switch how {
			case 0:
				x.open = append(x.open, g.Question)
			case 1:
				g.Question.Fail(ErrTimeout)
			case 2:
				g.Question.Fail(&NotSent{ErrDetached})
			case 3:
				g.Question.Answer(Result{Raw: []byte(`null`)}, nil)
			default:
				raw := []byte(`{"content":["` + strings.Repeat("x", x.rand.IntN(100)) + `"]}`)
				lease, err := x.w.k.Account().Acquire(int64(len(raw)))
				if err != nil {
					x.w.t.Fatal(err)
				}
				g.Question.Answer(Result{Raw: raw}, lease)
			}
		}
	}
	synctest.Wait()
}
