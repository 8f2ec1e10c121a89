package capability

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
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
}

func (x *chaos) play() {
	w := x.w
	x.done, x.keyed = make(chan struct{}, 1000), map[string]int{}
	for range 200 {
		x.step()
		synctest.Wait()
		x.drain()
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

// drain takes what reached the servers and answers some of it.
func (x *chaos) drain() {
	for _, s := range x.sources {
		for s.probe.Pending() > 0 {
			g := s.probe.Next(x.w.t)
			call, ok := g.Msg.(Call)
			if !ok {
				continue
			}
			call.Bytes.Release()
			how := x.rand.IntN(5)
			if args := string(call.Arguments); how != 2 && strings.HasPrefix(args, `{"n":100`) && !strings.HasSuffix(call.Tool, ".read") {
				x.keyed[s.server+" "+call.Tool+" "+args]++
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
