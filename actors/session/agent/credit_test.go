package agent

import "testing"

// Two lines that became one take one line and the bytes of both, until that one has left.
func TestJoinedCreditsAreOneLineWithTheBytesOfBoth(t *testing.T) {
	of, other := NewCredits(), NewCredits()
	take := func(c *Credits, n int) *Credit {
		t.Helper()
		got, err := c.Take(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one, two, foreign := take(of, 100), take(of, 20), take(other, 7)
	if both, ok := one.Join(foreign); ok || both != one {
		t.Error("credits of two readers were joined")
	}
	both, ok := one.Join(two)
	if lines, bytes := of.Taken(); !ok || lines != 1 || bytes != 120 {
		t.Errorf("%v: %d lines with %d bytes are out", ok, lines, bytes)
	}
	two.Done() // it is nobody's any more
	if both, ok = both.Join(nil); !ok {
		t.Error("nothing was refused")
	}
	var none *Credit
	if both, ok = none.Join(both); !ok {
		t.Error("nothing refused something")
	}
	both.Done()
	foreign.Done()
	for _, c := range []*Credits{of, other} {
		if lines, bytes := c.Taken(); lines != 0 || bytes != 0 {
			t.Errorf("%d lines with %d bytes are out at rest", lines, bytes)
		}
	}
}

// A line is given back by the very join, so that a reader that waits for one goes on.
func TestAJoinWakesTheReader(t *testing.T) {
	c := NewCredits()
	all := make([]*Credit, CreditLines)
	for i := range all {
		all[i], _ = c.Take(t.Context(), 1)
	}
	passed := make(chan error, 1)
	go func() {
		_, err := c.Take(t.Context(), 1)
		passed <- err
	}()
	all[0].Join(all[1])
	if err := <-passed; err != nil {
		t.Error(err)
	}
}
