package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpod/acpod/actors/session"
)

// each runs a test of the interface on both that implement it.
func each(t *testing.T, opts Options, test func(t *testing.T, s session.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, NewMemory(opts)) })
	t.Run("files", func(t *testing.T) { test(t, open(t, t.TempDir(), opts)) })
}

func TestARecordComesBackToTheByte(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		for n, d := range []session.Durable{durable(0), {ID: id(1), Cwd: "/", Created: start, Updated: start}} {
			idle(t, s, d)
			got, _ := take(t, s, n)
			if diff := cmp.Diff(d, got); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestALeaseIsLostToTheNextLife(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		ctx, d := t.Context(), durable(1)
		first := create(t, s, d)
		_, second := take(t, s, 1)
		if second.Generation <= first.Generation {
			t.Fatalf("generation %d after %d", second.Generation, first.Generation)
		}
		for name, err := range map[string]error{"put": s.Put(ctx, first, d), "release": s.Release(ctx, first, d), "delete": s.Delete(ctx, first)} {
			if !errors.Is(err, session.ErrLeaseLost) {
				t.Errorf("%s with the older lease: %v", name, err)
			}
		}
		d.Agent = "another"
		if err := s.Put(ctx, second, d); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, second, d); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{"put": s.Put(ctx, second, d), "release": s.Release(ctx, second, d), "delete": s.Delete(ctx, second)} {
			if !errors.Is(err, session.ErrLeaseLost) {
				t.Errorf("%s after it was let go of: %v", name, err)
			}
		}
		got, third := take(t, s, 1)
		if got.Agent != "another" || third.Generation <= second.Generation {
			t.Errorf("%+v, generation %d", got, third.Generation)
		}
		if err := s.Delete(ctx, third); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Take(ctx, id(1)); !errors.Is(err, session.ErrNoRecord) {
			t.Errorf("after it was deleted: %v", err)
		}
		if err := s.Put(ctx, third, d); !errors.Is(err, session.ErrLeaseLost) {
			t.Errorf("put after it was deleted: %v", err)
		}
		if f := s.Figures(); f.Records != 0 || f.Held != 0 {
			t.Errorf("%+v", f)
		}
	})
}

func TestAnIdIsGivenOnce(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		create(t, s, durable(1))
		bad := (*session.RecordError)(nil)
		if _, err := s.Create(t.Context(), durable(1)); !errors.As(err, &bad) {
			t.Errorf("%v", err)
		}
		if _, _, err := s.Take(t.Context(), id(2)); !errors.Is(err, session.ErrNoRecord) {
			t.Errorf("one that there is not: %v", err)
		}
	})
}

func TestAListIsOfOneKeyAndOneClient(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		for n, of := range []struct {
			key    string
			client [32]byte
		}{{"laptop", anna}, {"laptop", bert}, {"phone", anna}, {"laptop", [32]byte{}}, {"", [32]byte{}}, {"", anna}} {
			for _, n := range []int{n + 1, n + 17} {
				d := durable(n)
				d.Key, d.Client = of.key, of.client
				if n > 16 {
					idle(t, s, d)
				} else {
					create(t, s, d)
				}
			}
		}
		for _, row := range []struct {
			key    string
			client [32]byte
			want   string
		}{
			{"laptop", anna, "11 1"}, {"laptop", bert, "12 2"}, {"phone", anna, "13 3"}, {"phone", bert, ""}, {"laptop", [32]byte{}, ""}, {"", [32]byte{}, ""}, {"", anna, "16 6"},
		} {
			if got := listed(t, s, row.key, row.client); got != row.want {
				t.Errorf("%q %x: %q, want %q", row.key, row.client[0], got, row.want)
			}
		}
		if list, err := s.List(t.Context(), "laptop", anna, 1); err != nil || len(list) != 1 || list[0].ID != id(17) {
			t.Errorf("%v, %v", list, err)
		}
	})
}

func TestASweepTakesWhatNobodyHolds(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		create(t, s, durable(1))
		for n := 2; n <= 5; n++ {
			idle(t, s, durable(n))
		}
		_, l := take(t, s, 3)
		if removed, err := s.Sweep(t.Context(), start.Add(5*time.Second)); err != nil || removed != 2 {
			t.Errorf("%d, %v", removed, err)
		}
		if got := listed(t, s, "laptop", anna); got != "5 3 1" {
			t.Errorf("%q", got)
		}
		if err := s.Put(t.Context(), l, durable(3)); err != nil {
			t.Error(err)
		}
		if f := s.Figures(); f.Records != 3 || f.Held != 2 || f.Forgotten != 0 {
			t.Errorf("%+v", f)
		}
	})
}

func TestTheOldestOfTheKeyThatHasMostMakesRoom(t *testing.T) {
	each(t, Options{Records: 6}, func(t *testing.T, s session.Store) {
		held := create(t, s, durable(0)) // the oldest of all, and in use
		phone := durable(1)
		phone.Key = "phone"
		idle(t, s, phone)
		for n := 2; n <= 9; n++ {
			idle(t, s, durable(n))
		}
		if got := listed(t, s, "phone", anna); got != "1" {
			t.Errorf("of a key that has one: %q", got)
		}
		if got := listed(t, s, "laptop", anna); got != "9 8 7 6 5 0" {
			t.Errorf("%q", got)
		}
		if f := s.Figures(); f.Forgotten != 3 || f.Records != 7 || f.Held != 1 {
			t.Errorf("%+v", f)
		}
		if err := s.Put(t.Context(), held, durable(0)); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Take(t.Context(), id(2)); !errors.Is(err, session.ErrNoRecord) {
			t.Errorf("%v", err)
		}
	})
}

func TestARecordThatIsTooLongIsRefusedAndTheOldOneStays(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		l := create(t, s, durable(1))
		long := durable(1)
		long.LastTurn = make([]byte, session.DurableBytes)
		bad := (*session.RecordError)(nil)
		if err := s.Put(t.Context(), l, long); !errors.As(err, &bad) || bad.Do != "write" {
			t.Errorf("%v", err)
		}
		if err := s.Release(t.Context(), l, long); !errors.As(err, &bad) {
			t.Errorf("%v", err)
		}
		if got, _ := take(t, s, 1); cmp.Diff(got, durable(1)) != "" {
			t.Errorf("%+v", got)
		}
	})
}

func TestWhatIsAskedTooLateIsNotDone(t *testing.T) {
	each(t, Options{}, func(t *testing.T, s session.Store) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Create(over, durable(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if _, _, err := s.Take(t.Context(), id(1)); !errors.Is(err, session.ErrNoRecord) {
			t.Errorf("%v", err)
		}
	})
}
