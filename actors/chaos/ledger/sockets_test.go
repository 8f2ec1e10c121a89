package ledger

import (
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestARequestIsAnsweredOnceOrItsSocketEnds(t *testing.T) {
	for _, test := range []struct {
		name    string
		history func(*Requests)
		breaks  invariant.Name
	}{
		{"answered once", func(r *Requests) {
			r.Send("1", "initialize", epoch, time.Minute)
			r.Answer("1")
			r.Check(epoch.Add(time.Hour))
		}, ""},
		{"answered twice", func(r *Requests) {
			r.Send("1", "initialize", epoch, time.Minute)
			r.Answer("1")
			r.Answer("1")
		}, invariant.AnsweredOnce},
		{"answered and never asked", func(r *Requests) { r.Answer("1") }, invariant.AnsweredOnce},
		{"an id in another spelling is another id", func(r *Requests) {
			r.Send("1", "initialize", epoch, time.Minute)
			r.Answer(`"1"`)
		}, invariant.AnsweredOnce},
		{"never answered", func(r *Requests) {
			r.Send("1", "initialize", epoch, time.Minute)
			r.Check(epoch.Add(2 * time.Minute))
		}, invariant.AnsweredOnce},
		{"answered after it was overdue", func(r *Requests) {
			r.Send("1", "initialize", epoch, time.Minute)
			r.Check(epoch.Add(2 * time.Minute))
			r.Answer("1")
		}, invariant.AnsweredOnce},
		{"the socket ended", func(r *Requests) {
			r.Send("1", "initialize", epoch, time.Minute)
			r.Close()
			r.Check(epoch.Add(time.Hour))
		}, ""},
		{"two requests with one id are owed two answers", func(r *Requests) {
			r.Send("1", "a", epoch, time.Minute)
			r.Send("1", "a", epoch, time.Minute)
			r.Answer("1")
			r.Answer("1")
		}, ""},
		{"two requests with one id and three answers", func(r *Requests) {
			r.Send("1", "a", epoch, time.Minute)
			r.Send("1", "a", epoch, time.Minute)
			r.Answer("1")
			r.Answer("1")
			r.Answer("1")
		}, invariant.AnsweredOnce},
		{"two requests with one id and one answer", func(r *Requests) {
			r.Send("1", "a", epoch, time.Minute)
			r.Send("1", "a", epoch, time.Minute)
			r.Answer("1")
			r.Check(epoch.Add(time.Hour))
		}, invariant.AnsweredOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := invariant.NewBook(nil)
			test.history(NewRequests(book, "socket"))
			wantBroken(t, book, test.breaks)
		})
	}
}

func TestThePodDoesNotUseAnIDTwiceWhileItIsOpen(t *testing.T) {
	book := invariant.NewBook(nil)
	a := NewAsked(book, "socket")
	a.Ask("1", "mcp/connect")
	a.Reply("1")
	a.Ask("1", "mcp/message")
	if broken := book.Broken(); len(broken) != 0 {
		t.Fatalf("an id was used again after its answer, and %v is broken", broken)
	}
	a.Ask("1", "mcp/message")
	wantBroken(t, book, invariant.AnsweredOnce)
}

func TestAConnectionIsDisconnectedOnceOrItsSocketEnds(t *testing.T) {
	const grace = time.Minute
	for _, test := range []struct {
		name    string
		history func(*Connections)
		breaks  invariant.Name
	}{
		{"disconnected once", func(c *Connections) {
			c.Open("s#1", "s")
			c.Disconnect("s#1")
			c.Over("s", epoch)
			c.Check(epoch.Add(time.Hour), grace)
		}, ""},
		{"disconnected twice", func(c *Connections) {
			c.Open("s#1", "s")
			c.Disconnect("s#1")
			c.Disconnect("s#1")
		}, invariant.DisconnectedOnce},
		{"disconnected on the wrong socket", func(c *Connections) { c.Disconnect("s#1") }, invariant.DisconnectedOnce},
		{"its server is over and it stays", func(c *Connections) {
			c.Open("s#1", "s")
			c.Over("s", epoch)
			c.Check(epoch.Add(2*grace), grace)
		}, invariant.DisconnectedOnce},
		{"its server is over and there is still time", func(c *Connections) {
			c.Open("s#1", "s")
			c.Over("s", epoch)
			c.Check(epoch.Add(grace/2), grace)
			c.Disconnect("s#1")
		}, ""},
		{"another's server is over", func(c *Connections) {
			c.Open("s#1", "s")
			c.Over("t", epoch)
			c.Check(epoch.Add(2*grace), grace)
			c.Close()
		}, ""},
		{"the socket ended", func(c *Connections) {
			c.Open("s#1", "s")
			c.Over("s", epoch)
			c.Close()
			c.Check(epoch.Add(2*grace), grace)
		}, ""},
		{"an id that was given twice proves nothing", func(c *Connections) {
			c.Open("s#1", "s")
			c.Exempt("s#1")
			c.Disconnect("s#1")
			c.Disconnect("s#1")
			c.Open("s#2", "s")
			c.Disconnect("s#2")
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := invariant.NewBook(nil)
			test.history(NewConnections(book, "socket"))
			wantBroken(t, book, test.breaks)
		})
	}
}

func TestASessionBelongsToOneExtension(t *testing.T) {
	for _, test := range []struct {
		name    string
		history func(*Sessions)
		breaks  invariant.Name
	}{
		{"each has its own", func(s *Sessions) {
			s.Opened("a", 1)
			s.Opened("b", 2)
			s.Token("x", 1)
			s.Token("y", 2)
			s.Listed("a", 1)
		}, ""},
		{"one is opened twice", func(s *Sessions) { s.Opened("a", 1); s.Opened("a", 2) }, invariant.OwnClient},
		{"a token goes to two", func(s *Sessions) { s.Token("x", 1); s.Token("x", 2) }, invariant.OwnClient},
		{"a token comes back to the same", func(s *Sessions) { s.Opened("a", 1); s.Token("x", 1); s.Token("x", 1) }, ""},
		{"a list shows another's", func(s *Sessions) { s.Opened("a", 1); s.Listed("a", 2) }, invariant.OwnClient},
		{"a claim is refused", func(s *Sessions) { s.Claimed(2, false, "session/resume") }, ""},
		{"a claim is served", func(s *Sessions) { s.Claimed(2, true, "session/resume") }, invariant.OwnClient},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := invariant.NewBook(nil)
			test.history(NewSessions(book))
			wantBroken(t, book, test.breaks)
		})
	}
}

func TestAnotherSessionIsNeverAnOwnOne(t *testing.T) {
	s := NewSessions(invariant.NewBook(nil))
	if got := s.Other(1, func(int) int { return 0 }); got != "" {
		t.Errorf("of no sessions, %q is another's", got)
	}
	s.Opened("mine", 1)
	s.Opened("other", 2)
	for pick := range 2 {
		if got := s.Other(1, func(int) int { return pick }); got != "other" && got != "" {
			t.Errorf("%q is another's session for extension 1", got)
		}
	}
}

func TestQuantilesAreNearlyRightAndNeverTooLow(t *testing.T) {
	tally := NewTally()
	for i := range 1000 {
		tally.Add("result", time.Duration(i+1)*time.Millisecond)
	}
	tally.Count("not_made")
	l := tally.Latency()
	for _, q := range []struct{ got, want float64 }{{l.P50, 500}, {l.P90, 900}, {l.P99, 990}} {
		if q.got < q.want || q.got > q.want*1.05 {
			t.Errorf("a quantile is %.1f ms, want %.1f to %.1f", q.got, q.want, q.want*1.05)
		}
	}
	if l.N != 1000 || l.Max != 1000 {
		t.Errorf("%d latencies up to %.1f ms, want 1000 up to 1000", l.N, l.Max)
	}
	if ends := tally.Ends(); ends["result"] != 1000 || ends["not_made"] != 1 {
		t.Errorf("the ends are %v", ends)
	}
}

func TestTheConnectionsOfAServerThatStandAreCounted(t *testing.T) {
	c := NewConnections(invariant.NewBook(nil), "socket")
	standing := func(when string, want int) {
		t.Helper()
		if n := c.Standing("s"); n != want {
			t.Errorf("%s %d connections stand, want %d", when, n, want)
		}
	}
	c.Open("t#1", "t")
	standing("of another server", 0)
	c.Open("s#1", "s")
	c.Open("s#2", "s")
	standing("opened twice", 2)
	c.Disconnect("s#1")
	standing("one disconnected", 1)
	c.Over("s", time.Now())
	standing("when the server is over", 0)
}
