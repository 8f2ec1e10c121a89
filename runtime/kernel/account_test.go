package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func used(t *testing.T, a *Account, want int64) {
	t.Helper()
	if got := a.Used(); got != want {
		t.Errorf("%s: %d bytes used, want %d", a.Scope(), got, want)
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func overloaded(t *testing.T, err error, scope string) *Overloaded {
	t.Helper()
	o, ok := errors.AsType[*Overloaded](err)
	if !ok || o.Scope != scope {
		t.Fatalf("got %v, want *Overloaded of %s", err, scope)
	}
	return o
}

func TestAcquireChargesTheWholePathOrNothing(t *testing.T) {
	pod := NewAccount("pod", 100)
	conn := pod.Child("conn", 80)
	tunnel := conn.Child("tunnel", 0)
	if tunnel.Limit() != math.MaxInt64 {
		t.Error("no limit is not no limit")
	}
	l := must[*Lease](t)(tunnel.Acquire(70))
	for _, a := range []*Account{pod, conn, tunnel} {
		used(t, a, 70)
	}
	_, err := tunnel.Acquire(20)
	if o := overloaded(t, err, "conn"); o.Limit != 80 || o.Used != 70 || o.Size != 20 || o.RetryAfter <= 0 {
		t.Errorf("%+v", o)
	}
	_, err = pod.Child("other", 90).Acquire(40)
	overloaded(t, err, "pod")
	used(t, tunnel, 70)
	l.Release()
	l.Release()
	for _, a := range []*Account{pod, conn, tunnel} {
		used(t, a, 0)
	}
}

func TestHugeSizesDoNotWrapAround(t *testing.T) {
	a := NewAccount("a", 100)
	l := must[*Lease](t)(a.Acquire(50))
	defer l.Release()
	if _, err := a.Acquire(math.MaxInt64); err == nil {
		t.Error("the largest size fits")
	}
	if _, err := a.Child("b", 0).Acquire(math.MaxInt64 - 10); err == nil {
		t.Error("a sum past the largest number fits")
	}
	if n := must[*Lease](t)(a.Acquire(-5)); n.Size() != 0 {
		t.Error("a negative size gives bytes back")
	}
	used(t, a, 50)
}

func TestALeaseMovesAllOrNothing(t *testing.T) {
	pod := NewAccount("pod", 100)
	conn, sess := pod.Child("conn", 100), pod.Child("session", 60)
	l := must[*Lease](t)(conn.Acquire(60))
	hold := must[*Lease](t)(sess.Acquire(10))
	err := l.Move(sess)
	overloaded(t, err, "session")
	used(t, conn, 60)
	used(t, sess, 10)
	hold.Release()
	// the pod is nearly full: what both are below is not charged twice
	if err := l.Move(sess); err != nil {
		t.Fatal(err)
	}
	used(t, conn, 0)
	used(t, sess, 60)
	used(t, pod, 60)
	if err := l.Move(sess); err != nil {
		t.Errorf("to where it is: %v", err)
	}
	if err := l.Move(pod); err != nil {
		t.Errorf("upwards: %v", err)
	}
	used(t, sess, 0)
	used(t, pod, 60)
	l.Shrink(20)
	l.Shrink(40)
	used(t, pod, 20)
	l.Release()
	used(t, pod, 0)
	if err := l.Move(sess); !errors.Is(err, ErrStopped) {
		t.Errorf("a released lease moved: %v", err)
	}
}

func TestTreesApartShareNothingWhenALeaseMoves(t *testing.T) {
	a, b := NewAccount("a", 100), NewAccount("b", 100)
	l := must[*Lease](t)(a.Acquire(30))
	if err := l.Move(b); err != nil {
		t.Fatal(err)
	}
	used(t, a, 0)
	used(t, b, 30)
	l.Release()
	used(t, b, 0)
}

func TestAClosedAccountAdmitsNothingAndGivesBackWhatItHolds(t *testing.T) {
	pod := NewAccount("pod", 100)
	conn := pod.Child("conn", 50)
	below := conn.Child("tunnel", 20)
	l := must[*Lease](t)(below.Acquire(10))
	conn.Close()
	conn.Close()
	for _, a := range []*Account{conn, below} {
		if _, err := a.Acquire(1); !errors.Is(err, ErrStopped) {
			t.Errorf("%s: %v", a.Scope(), err)
		}
	}
	other := must[*Lease](t)(pod.Acquire(5))
	if err := other.Move(conn); !errors.Is(err, ErrStopped) {
		t.Errorf("move to a closed account: %v", err)
	}
	if err := l.Move(pod); err != nil {
		t.Errorf("move out of a closed account: %v", err)
	}
	used(t, conn, 0)
	used(t, pod, 15)
	l.Release()
	other.Release()
	used(t, pod, 0)
}

func TestANilLeaseIsALeaseOnNothing(t *testing.T) {
	var l *Lease
	l.Release()
	l.Shrink(1)
	if l.Size() != 0 || l.Account() != nil || l.Move(NewAccount("a", 1)) != nil {
		t.Error("not nothing")
	}
}

func TestAcquireWaitIsWokenByARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := NewAccount("pod", 100)
		conn := pod.Child("conn", 100)
		other := must[*Lease](t)(pod.Child("other", 100).Acquire(90))
		got := make(chan *Lease)
		go func() {
			l, err := conn.AcquireWait(t.Context(), 50)
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		t0 := time.Now()
		time.Sleep(time.Hour)
		other.Shrink(60)
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("woken before there was room")
		default:
		}
		other.Shrink(50)
		l := <-got
		if d := time.Since(t0); d != time.Hour {
			t.Errorf("it was woken %v later, by something else than the release", d-time.Hour)
		}
		used(t, pod, 100)
		l.Release()
		other.Release()
		used(t, pod, 0)
	})
}

func TestAcquireWaitServesInOrderAndStarvesNoLargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAccount("a", 100)
		all := must[*Lease](t)(a.Acquire(100))
		var mu sync.Mutex
		var order []int64
		var leases []*Lease
		for _, n := range []int64{80, 10, 20} {
			go func() {
				l, err := a.AcquireWait(t.Context(), n)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order, leases = append(order, n), append(leases, l)
			}()
			synctest.Wait()
		}
		all.Shrink(70) // 30 free: the small ones would fit, but the large one came first
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("served out of order: %v", order)
		}
		all.Release()
		synctest.Wait()
		if slices.Sort(order); fmt.Sprint(order) != "[10 80]" { // both served at once, 20 more do not fit
			t.Errorf("served: %v", order)
		}
		for len(leases) > 0 {
			l := leases[0]
			leases = leases[1:]
			l.Release()
			synctest.Wait()
		}
		if len(order) != 3 {
			t.Errorf("order %v", order)
		}
		used(t, a, 0)
	})
}

func TestAWaiterOfAnotherAccountIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := NewAccount("pod", 1000)
		a, b := pod.Child("a", 10), pod.Child("b", 10)
		la, lb := must[*Lease](t)(a.Acquire(10)), must[*Lease](t)(b.Acquire(10))
		for _, x := range []*Account{a, b} {
			go func() {
				l, err := x.AcquireWait(t.Context(), 5)
				if err != nil && x == b {
					t.Error(err)
				}
				l.Release()
			}()
			synctest.Wait()
		}
		lb.Release()
		synctest.Wait()
		used(t, b, 0)
		a.Close() // ends the other wait
		la.Release()
		synctest.Wait()
		used(t, pod, 0)
	})
}

func TestAcquireWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAccount("a", 10)
		l := must[*Lease](t)(a.Acquire(10))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		t0 := time.Now()
		_, err := a.AcquireWait(ctx, 1)
		overloaded(t, err, "a")
		if d := time.Since(t0); d != 5*time.Second {
			t.Errorf("waited %v", d)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		stop(ErrShutdown)
		if _, err := a.AcquireWait(ctx, 1); !errors.Is(err, ErrShutdown) {
			t.Errorf("got %v", err)
		}
		l.Release()
		if n := a.root.n.Load(); n != 0 {
			t.Errorf("%d waiters left", n)
		}
	})
}

func TestCountersNeverPassTheirLimitUnderContention(t *testing.T) {
	pod := NewAccount("pod", 1000)
	a, b := pod.Child("a", 700), pod.Child("b", 700)
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, x := range []*Account{pod, a, b} {
				if n := x.Used(); n < 0 || n > x.Limit() {
					t.Errorf("%s shows %d of %d", x.Scope(), n, x.Limit())
					return
				}
			}
		}
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			from, to := a, b
			if i%2 == 0 {
				from, to = b, a
			}
			for n := range 3000 {
				l, err := from.Acquire(int64(n % 300))
				if err != nil {
					continue
				}
				_ = l.Move(to)
				l.Shrink(int64(n % 100))
				go l.Release()
				l.Release()
			}
		})
	}
	wg.Wait()
	close(stop)
	watch.Wait()
	for end := time.Now().Add(20 * time.Second); pod.Used() != 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	used(t, pod, 0)
	used(t, a, 0)
	used(t, b, 0)
}

// FuzzAccounts does any sequence of operations on a tree of accounts and compares each counter with the sum of the leases below it.
func FuzzAccounts(f *testing.F) {
	f.Add([]byte{0, 10, 1, 20, 2, 250, 3, 4, 80, 41, 121, 162, 203, 244, 5, 6, 7})
	f.Add([]byte("move, shrink, close, release, and again"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		pod := NewAccount("pod", 1000)
		conn := pod.Child("conn", 600)
		accounts := []*Account{pod, conn, pod.Child("session", 500), conn.Child("tunnel", 200), conn.Child("free", 0)}
		var leases []*Lease
		for i := 0; i+1 < len(ops); i += 2 {
			a, n := accounts[int(ops[i]>>3)%len(accounts)], int64(ops[i+1])
			var l *Lease
			if len(leases) > 0 {
				l = leases[int(ops[i+1])%len(leases)]
			}
			switch ops[i] % 8 {
			case 0, 1, 2:
				if got, err := a.Acquire(n * 3); err == nil {
					leases = append(leases, got)
				} else if _, full := errors.AsType[*Overloaded](err); !full && !errors.Is(err, ErrStopped) {
					t.Fatal(err)
				}
			case 3:
				from := l.Account()
				if err := l.Move(a); err != nil && l.Account() != from {
					t.Fatal("a refused move changed who pays")
				} else if err == nil && l != nil && l.Account() != a {
					t.Fatal("a move did not change who pays")
				}
			case 4:
				l.Shrink(n)
			case 5, 6:
				l.Release()
			case 7:
				if n == 7 {
					a.Close()
				}
			}
			for _, x := range accounts {
				var sum int64
				for _, l := range leases {
					for y := l.Account(); y != nil; y = y.Parent() {
						if y == x {
							sum += l.Size()
						}
					}
				}
				if x.Used() != sum || sum > x.Limit() || sum < 0 {
					t.Fatalf("%s: %d used, %d leased, limit %d", x.Scope(), x.Used(), sum, x.Limit())
				}
			}
		}
		for _, l := range leases {
			l.Release()
		}
		used(t, pod, 0)
	})
}

// Most scopes count bytes and say so, the others count things.
func TestARefusalTellsItsUnit(t *testing.T) {
	for _, row := range []struct {
		full Overloaded
		want string
	}{
		{Overloaded{Scope: "session_bytes", Limit: 100, Used: 90, Size: 20, RetryAfter: time.Second}, "overloaded: session_bytes has 90 of 100 bytes in use, 20 more wanted; retry in 1s"},
		{Overloaded{Scope: "calls", Limit: 64, Used: 64, Size: 1, RetryAfter: time.Second}, "overloaded: calls has 64 of 64 in use, 1 more wanted; retry in 1s"},
	} {
		if got := row.full.Error(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
