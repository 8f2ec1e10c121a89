package connection

import (
	"testing"
	"time"
)

func TestTheSixtyFourthRefusalInTenSecondsEnds(t *testing.T) {
	start := time.Now()
	for _, test := range []struct {
		name  string
		gap   time.Duration
		n     int
		spent int // the refusal that ends it, 0 = none
	}{
		{"at once", 0, 64, 64},
		{"63 are not enough", 0, 63, 0},
		{"evenly, just within", 158 * time.Millisecond, 64, 64},
		{"evenly, just not", 159 * time.Millisecond, 1000, 0},
		{"one a second", time.Second, 1000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r refusals
			spent := 0
			for i := 1; i <= test.n && spent == 0; i++ {
				if r.spend(start.Add(time.Duration(i) * test.gap)) {
					spent = i
				}
			}
			if spent != test.spent {
				t.Errorf("ended at %d, want %d", spent, test.spent)
			}
		})
	}
}

func TestOldRefusalsAreForgotten(t *testing.T) {
	var r refusals
	now := time.Now()
	for range 63 {
		r.spend(now)
	}
	if now = now.Add(refusalWindow); r.spend(now) {
		t.Error("63 refusals of ten seconds ago and one of now ended it")
	}
	for i := range 62 {
		if r.spend(now) {
			t.Fatalf("ended after %d of now", i+2)
		}
	}
	if !r.spend(now) {
		t.Error("64 refusals of now did not end it")
	}
	if r.total() != 127 {
		t.Errorf("counted %d, want 127", r.total())
	}
}
