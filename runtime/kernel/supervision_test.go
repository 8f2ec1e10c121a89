package kernel

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

var (
	crashed = end{cause: &Crash{Value: "x"}, crashed: true}
	clean   = end{cause: ErrDone}
	stopped = end{cause: ErrStopped}
	retired = end{cause: ErrStopped, retired: true}
)

func half() float64 { return 0.5 }

func TestPolicyDecidesWhoComesBack(t *testing.T) {
	t0 := time.Unix(1000, 0)
	for _, tc := range []struct {
		policy Policy
		name   string
		end    end
		want   Op
	}{
		{Temporary, "crash", crashed, Forget}, {Temporary, "clean end", clean, Forget}, {Temporary, "stop", stopped, Forget},
		{Transient, "crash", crashed, Restart}, {Transient, "clean end", clean, Forget}, {Transient, "stop", stopped, Forget},
		{Permanent, "crash", crashed, Restart}, {Permanent, "clean end", clean, Restart}, {Permanent, "stop", stopped, Restart},
		{Permanent, "stop by the parent", retired, Forget},
		{Transient, "crash of one the parent stopped", end{cause: ErrGoexit, crashed: true, retired: true}, Forget},
	} {
		t.Run(fmt.Sprint(tc.policy, " after ", tc.name), func(t *testing.T) {
			s := newSupervision(Intensity{}, half)
			s.Add(t0, "a", tc.policy, Backoff{})
			got := s.Exited(t0, "a", tc.end)
			if len(got) != 1 || got[0].Op != tc.want || got[0].Child != "a" {
				t.Fatalf("got %+v, want op %d", got, tc.want)
			}
			if known := s.children["a"] != nil; known != (tc.want == Restart) {
				t.Errorf("still in the table: %v", known)
			}
		})
	}
}

func TestAnUnknownChildDecidesNothing(t *testing.T) {
	if got := newSupervision(Intensity{}, half).Exited(time.Unix(1, 0), "ghost", crashed); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestIntensityBelongsToTheSupervisor(t *testing.T) {
	t0 := time.Unix(1000, 0)
	s := newSupervision(Intensity{Max: 3, Window: 10 * time.Second}, half)
	for _, c := range []string{"a", "b"} {
		s.Add(t0, c, Permanent, Backoff{})
	}
	for i, c := range []string{"a", "b", "a"} {
		if got := s.Exited(t0.Add(time.Duration(i)*time.Second), c, crashed); got[0].Op != Restart {
			t.Fatalf("restart %d was refused: %+v", i, got)
		}
	}
	got := s.Exited(t0.Add(9*time.Second), "b", crashed)
	if len(got) != 2 || got[0].Op != Forget || got[1].Op != Escalate {
		t.Fatalf("the fourth restart in the window: %+v", got)
	}
	i, ok := errors.AsType[*IntensityError](got[1].Cause)
	if !ok || i.Child != "b" || i.Restarts != 3 || !errors.Is(got[1].Cause, crashed.cause) {
		t.Errorf("cause %v", got[1].Cause)
	}
}

func TestIntensityForgetsWhatIsOlderThanTheWindow(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSupervision(Intensity{Max: 2, Window: 10 * time.Second}, half)
	s.Add(now, "a", Transient, Backoff{})
	for range 50 {
		if got := s.Exited(now, "a", crashed); got[0].Op != Restart {
			t.Fatalf("refused at %v: %+v", now, got)
		}
		now = now.Add(5 * time.Second)
	}
	if len(s.restarts) > 2 {
		t.Errorf("%d restarts remembered", len(s.restarts))
	}
}

func TestBackoffGrowsToItsCapWithFullJitter(t *testing.T) {
	b := Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for n, top := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
		top *= time.Millisecond
		for _, r := range []float64{0, 0.25, 0.5, 0.999} {
			if got, want := b.wait(n, r), time.Duration(float64(top)*r); got != want {
				t.Errorf("failure %d, random %v: %v, want %v", n, r, got, want)
			}
		}
	}
	if got := b.wait(1<<30, 1); got != time.Second {
		t.Errorf("after very many failures: %v", got)
	}
	huge := Backoff{Min: 1 << 61, Max: 1<<63 - 1}
	if got := huge.wait(5, 1); got < 0 {
		t.Errorf("overflow: %v", got)
	}
}

func TestBackoffStartsAnewAfterAGoodRun(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSupervision(Intensity{Max: 100, Window: time.Second}, func() float64 { return 1 })
	s.Add(now, "a", Permanent, Backoff{Min: time.Second, Max: 8 * time.Second})
	var waits []time.Duration
	for range 4 {
		waits = append(waits, s.Exited(now, "a", crashed)[0].After)
		now = now.Add(time.Second)
		s.Started(now, "a")
	}
	now = now.Add(8 * time.Second)
	waits = append(waits, s.Exited(now, "a", crashed)[0].After)
	if got := fmt.Sprint(waits); got != "[1s 2s 4s 8s 1s]" {
		t.Errorf("waits %s", got)
	}
}

func TestBackoffDefaults(t *testing.T) {
	if got := (Backoff{}).orDefault(); got != DefaultBackoff {
		t.Errorf("got %v", got)
	}
	if got := (Backoff{Min: time.Minute}).orDefault(); got.Max != time.Minute {
		t.Errorf("a cap below the minimum: %v", got)
	}
}

// FuzzSupervision gives a supervisor any history, and looks for a restart too many (I9), for two decisions about one exit and
// for a child that comes back although it must not (I3).
func FuzzSupervision(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 40, 41, 42, 80, 81, 200, 201, 202, 7, 7, 7, 7, 7})
	f.Add([]byte("a crash after a crash after a crash"))
	f.Fuzz(func(t *testing.T, history []byte) {
		in := Intensity{Max: 3, Window: 10 * time.Second}
		now := time.Unix(1000, 0)
		s := newSupervision(in, half)
		var restarts []time.Time
		alive := map[string]Policy{}
		for _, op := range history {
			name := string('a' + rune(op%4))
			policy, living := alive[name]
			switch op >> 4 % 4 {
			case 0:
				now = now.Add(time.Duration(op) * 37 * time.Millisecond)
				continue
			case 1:
				if !living {
					alive[name] = Policy(op >> 6 % 3)
					s.Add(now, name, alive[name], Backoff{Min: time.Second, Max: 4 * time.Second})
				}
				continue
			}
			e := []end{crashed, clean, stopped, retired}[op>>6]
			got := s.Exited(now, name, e)
			if !living {
				if got != nil {
					t.Fatalf("a decision about nobody: %v", got)
				}
				continue
			}
			mayReturn := policy == Permanent && !e.retired || policy == Transient && e.crashed
			switch got[0].Op {
			case Restart:
				if !mayReturn || len(got) != 1 {
					t.Fatalf("%v after %+v came back: %v", policy, e, got)
				}
				if got[0].After < 0 || got[0].After > 4*time.Second {
					t.Fatalf("backoff %v", got[0].After)
				}
				if restarts = append(restarts, now); len(restarts) > in.Max && now.Sub(restarts[len(restarts)-1-in.Max]) < in.Window {
					t.Fatalf("more than %d restarts within %v", in.Max, in.Window)
				}
			case Forget:
				delete(alive, name)
				if (len(got) == 2) != mayReturn || len(got) == 2 && got[1].Op != Escalate {
					t.Fatalf("%v after %+v: %v", policy, e, got)
				}
			default:
				t.Fatalf("decision %v", got)
			}
		}
	})
}
