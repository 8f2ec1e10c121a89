package stdio

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAStallOfThePodIsNoSilenceOfTheChild(t *testing.T) {
	read, pauses := int64(0), 0
	untilSilent(func() int64 { return read }, func() bool {
		if pauses++; pauses == 2 { // the reader comes to run only after the pause in which all stood still
			read = 100
		}
		return true
	})
	if read != 100 || pauses != 2+looks {
		t.Errorf("it was silence after %d pauses, with %d bytes read", pauses, read)
	}
}

func TestWhoGoesOnTalkingIsHeardNoLongerThanLastWordsTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Link{eof: make(chan struct{})}
		over := make(chan struct{})
		go func() { // another of the group, which holds the child's stdout
			for {
				select {
				case <-over:
					return
				case <-time.After(silence / 10):
					l.read.Add(1)
				}
			}
		}()
		go func() {
			defer close(over)
			l.listen(t.Context())
		}()
		select {
		case <-over:
		case <-time.After(10 * lastWords):
			t.Error("the end of a child whose stdout another goes on writing to is not told")
		}
	})
}
