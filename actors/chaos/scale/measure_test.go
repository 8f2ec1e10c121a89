package scale

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/wire"
)

// here is an echo server in this process, measured as if it were another.
type here struct{ theEcho }

func (h *here) pid() int { return os.Getpid() }

func startHere(t *testing.T) *here {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan EchoAt, 1), make(chan error, 1)
	go func() { ended <- ServeEcho(ctx, func(at EchoAt) error { ready <- at; return nil }) }()
	h := &here{theEcho{at: <-ready, filler: filler(300), http: newHTTP()}}
	t.Cleanup(func() {
		h.http.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestASideIsMeasuredThroughRampIdlenessAndLoad(t *testing.T) {
	h := startHere(t)
	var told []string
	o := &Options{Extensions: 20, Rate: 100, Duration: time.Second, Payload: 256, Callers: 4, Parallel: 4, Settle: time.Millisecond,
		Progress: func(line string) { told = append(told, line) }}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	asides := 0
	side, all, err := measure(context.Background(), o, h, func(context.Context) { asides++ })
	if err != nil {
		t.Fatal(err)
	}
	defer all.abandon()
	l := side.Load
	if l.Calls != 100 || l.Answered != 100 || len(l.Failed) != 0 || l.Rate <= 0 || l.Latency.P99 < l.Latency.P50 || l.Latency.P50 <= 0 {
		t.Errorf("the load was %+v", l)
	}
	if l.OthersCPU < -1 || l.OthersCPU > float64(thisMachine().CPUs)+0.2 {
		t.Errorf("others had %v CPUs", l.OthersCPU)
	}
	if l.ToServer != 300+4+4 || l.ToClient != 300+4 {
		t.Errorf("a call of 300 bytes was %v bytes to the server and %v back", l.ToServer, l.ToClient)
	}
	if message := echoMessage(l); message != 300 {
		t.Errorf("the echo of that has messages of %d bytes", message)
	}
	if side.Ramp.Ready.N != 20 || side.Ramp.Seconds <= 0 || side.Idle.RSS <= 0 || side.PeakRSS < side.Idle.RSS/2 || side.Idle.PerConnection.Goroutines < 1 || asides != 1 || len(told) < 3 {
		t.Errorf("the side is %+v, told was %q", side, told)
	}
	if err := all.disperse(context.Background(), 4); err != nil {
		t.Error(err)
	}
}

// failing refuses the third client.
type failing struct{ *here }

func (f failing) dial(ctx context.Context, number int) (client, error) {
	if number == 2 {
		return nil, errors.New("no more")
	}
	return f.here.dial(ctx, number)
}

func TestAClientThatFailsEndsTheOthers(t *testing.T) {
	o := &Options{Extensions: 10, Rate: 1, Duration: time.Second, Payload: 64, Callers: 1, Parallel: 1, Settle: time.Millisecond}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	_, _, err := measure(context.Background(), o, failing{startHere(t)}, func(context.Context) {})
	if err == nil || err.Error() != "echo: after 2 were connected: no more" {
		t.Errorf("got %v", err)
	}
}

func TestAnEchoOfSomethingElseIsNoticed(t *testing.T) {
	h := startHere(t)
	c, err := dialEcho(context.Background(), wire.Dial{URL: "ws://" + h.at.Echo + "/"}, h.filler)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.socket.Text([]byte("7 never asked")); err != nil {
		t.Fatal(err)
	}
	<-c.ended
	if !errors.Is(c.err, errEcho) {
		t.Errorf("got %v", c.err)
	}
	if err := c.call(context.Background(), 1); err == nil {
		t.Error("a call on it went well")
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	good := Options{Extensions: 1, Rate: 1, Duration: time.Second, Payload: 64, Callers: 1, Parallel: 1, Settle: 1}
	if err := good.check(); err != nil || good.calls() != 1 {
		t.Fatalf("%v, %d calls", err, good.calls())
	}
	for name, spoil := range map[string]func(*Options){
		"extensions": func(o *Options) { o.Extensions = 0 },
		"payload":    func(o *Options) { o.Payload = 1 },
		"512 KiB":    func(o *Options) { o.Payload = 1 << 20 },
		"no call":    func(o *Options) { o.Duration = time.Millisecond },
		"open files": func(o *Options) { o.Extensions = 1 << 40 },
	} {
		o := good
		spoil(&o)
		if err := o.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheEndOfAHeapProfileIsRead(t *testing.T) {
	heap, stacks, err := memStats([]byte("heap profile: 1: 2 [3: 4] @ heap/1048576\n\n# runtime.MemStats\n# HeapAlloc = 4749368\n# HeapSys = 7831552\n# Stack = 557056 / 557056\n"))
	if heap != 4749368 || stacks != 557056 || err != nil {
		t.Errorf("heap %d, stacks %d, %v", heap, stacks, err)
	}
	if _, _, err := memStats([]byte("nothing")); err == nil {
		t.Error("a profile without figures was read")
	}
}

func TestWhatIsLeftBehindBreaksAnInvariant(t *testing.T) {
	m := pod.Metrics{`a{how="x"}`: 2, `a{how="y"}`: 1, "b": 3, "c": 2}
	if why := balance(m, "opened", "a", "closed", "b"); why != "" {
		t.Error(why)
	}
	if why := balance(m, "opened", "a", "closed", "c"); why != "opened: 3, closed: 2" {
		t.Error(why)
	}
	if balance(pod.Metrics{}, "opened", "a", "closed", "b") == "" {
		t.Error("figures that are not there hold")
	}
	if grown("files", 10, 10) != "" || grown("files", 10+slack+1, 10) == "" {
		t.Error("growth is judged wrongly")
	}
	worst := pod.Metrics{"acpod_pod_worst_case_bytes": 100}
	if bounded(100, worst) != "" || bounded(101, worst) == "" || bounded(1, m) == "" || bounded(0, worst) == "" {
		t.Error("resident memory is judged wrongly")
	}
	broken := answers(Load{Calls: 3, Failed: map[string]Failures{"timeout": {1, "late"}}}, 4)
	for i, why := range []string{"1 × timeout (late)", "3 calls were made and 4 executed"} {
		if broken[i].Held || broken[i].Why != why {
			t.Errorf("%+v", broken[i])
		}
	}
	for _, i := range answers(Load{Calls: 3}, 3) {
		if !i.Held {
			t.Errorf("%+v", i)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if why := until(ctx, func() string { return "never" }); why != "never" {
		t.Errorf("what never holds is told as %q", why)
	}
	left := 3
	if why := until(context.Background(), func() string { left--; return strings.Repeat("!", left) }); why != "" || left != 0 {
		t.Errorf("what holds in the end is told as %q", why)
	}
}

func TestTheTableHasBothSidesAndWhatIsBroken(t *testing.T) {
	r := &Report{Machine: thisMachine(), Pod: &Side{}, Echo: &Side{}, Invariants: []Invariant{invariant("calm", "there was a storm")}}
	r.Pod.Load.CPU, r.Echo.Load.CPU = 300, 100
	r.Pod.Load.Failed = map[string]Failures{"timeout": {2, "late"}}
	r.Ratios = ratios(r.Pod, r.Echo)
	var b bytes.Buffer
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"CPU a call, µs 300 100 3.0", "calm BROKEN: there was a storm", "2 × timeout (late)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, b.String())
		}
	}
	if len(r.Broken()) != 1 || r.Machine.CPUs < 1 || r.Machine.Memory < 1<<20 {
		t.Errorf("%+v, %v", r.Machine, r.Broken())
	}
}
