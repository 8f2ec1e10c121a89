package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// Each cell of the table in docs/calls.md: what the first caller is told, what its repeat is told, and how often the server ran the tool.

// lost is who or what ends, and when.
type lost struct{ what, when string }

// repeater is who makes a call, and makes it again.
type repeater struct {
	token, key bool
	tool       string
}

func (r repeater) String() string {
	who := map[bool]string{true: "token", false: "anonymous"}[r.token]
	return fmt.Sprintf("%s, %s, %s", who, map[bool]string{true: "a key", false: "no key"}[r.key], strings.TrimPrefix(r.tool, "files."))
}

func TestWhatBecomesOfACallAndOfItsRepeat(t *testing.T) {
	const write, read = "files.write", "files.read"
	token, tokenKey := repeater{true, false, write}, repeater{true, true, write}
	anonymous, anonymousKey := repeater{false, false, write}, repeater{false, true, write}
	reads, readsKey := repeater{true, false, read}, repeater{true, true, read}
	for at, cells := range map[lost]map[repeater]string{
		{"the caller", "before"}: {
			token: "gone, ok, 1", tokenKey: "gone, ok, 1", anonymous: "gone, ok, 1", anonymousKey: "gone, ok, 1", reads: "gone, ok, 1", readsKey: "gone, ok, 1"},
		{"the caller", "during"}: {
			token: "gone, ok, 1", tokenKey: "gone, ok, 1", anonymous: "gone, ok, 2", anonymousKey: "gone, ok, 1", reads: "gone, ok, 2", readsKey: "gone, ok, 2"},
		{"the caller", "after"}: {
			token: "missed, ok, 1", tokenKey: "missed, ok, 1", anonymous: "missed, ok, 2", anonymousKey: "missed, ok, 1", reads: "missed, ok, 2", readsKey: "missed, ok, 1"},
		{"the server", "before"}: {
			token: "detached, ok, 1", tokenKey: "detached, ok, 1", anonymous: "detached, ok, 1", anonymousKey: "detached, ok, 1", reads: "detached, ok, 1", readsKey: "detached, ok, 1"},
		{"the server", "unsent"}: {
			token: "detached, ok, 1", tokenKey: "detached, ok, 1", anonymous: "detached, ok, 1", anonymousKey: "detached, ok, 1", reads: "detached, ok, 1", readsKey: "detached, ok, 1"},
		{"the server", "during"}: {
			token: "outcome_unknown, ok, 2", tokenKey: "outcome_unknown, outcome_unknown, 1", anonymous: "outcome_unknown, ok, 2", anonymousKey: "outcome_unknown, outcome_unknown, 1",
			reads: "detached, ok, 2", readsKey: "detached, ok, 2"},
		{"the server", "after"}: {
			token: "ok, ok, 2", tokenKey: "ok, ok, 1", anonymous: "ok, ok, 2", anonymousKey: "ok, ok, 1", reads: "ok, ok, 2", readsKey: "ok, ok, 1"},
		{"the pod", "before"}: {
			token: "cancelled, ok, 1", tokenKey: "cancelled, ok, 1", anonymous: "cancelled, ok, 1", anonymousKey: "cancelled, ok, 1", reads: "cancelled, ok, 1", readsKey: "cancelled, ok, 1"},
		{"the pod", "during"}: {
			token: "outcome_unknown, ok, 2", tokenKey: "outcome_unknown, outcome_unknown, 1", anonymous: "outcome_unknown, ok, 2", anonymousKey: "outcome_unknown, outcome_unknown, 1",
			reads: "cancelled, ok, 2", readsKey: "cancelled, ok, 2"},
		{"the pod", "after"}: {
			token: "ok, ok, 2", tokenKey: "ok, outcome_unknown, 1", anonymous: "ok, ok, 2", anonymousKey: "ok, outcome_unknown, 1", reads: "ok, ok, 2", readsKey: "ok, outcome_unknown, 1"},
	} {
		for who, want := range cells {
			t.Run(fmt.Sprintf("%s ends %s, %s", at.what, at.when, who), func(t *testing.T) {
				s := newServer("files", Idle, nil)
				ledger := newMemoryLedger()
				runWith(t, DeskConfig{Ledger: ledger, Owner: "owner"}, []*fakeServer{s}, func(w *world) {
					if got := (&repeated{w: w, s: s, at: at, who: who, ledger: ledger}).play(t); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				})
			})
		}
	}
}

type repeated struct {
	w      *world
	s      *fakeServer
	at     lost
	who    repeater
	ledger Ledger
	ran    int
}

func (x *repeated) request() Request {
	r := Request{Name: x.who.tool, Arguments: []byte(`{"n":1}`)}
	if x.who.key {
		r.Key = "k"
	}
	return r
}

func (x *repeated) caller() Caller {
	who := x.w.caller
	if !x.who.token {
		who.Token = [32]byte{}
	}
	return who
}

func (x *repeated) play(t *testing.T) string {
	w, s := x.w, x.s
	first := w.callAs(x.caller(), x.request())
	asked := s.asked(t)
	if x.at.when == "before" {
		x.lose(t, first, asked, nil)
	} else {
		s.lists("write", "read!")
		found(asked)
		_, sent := s.next(t)
		if x.at.when == "unsent" {
			sent.Fail(&NotSent{ErrDetached})
		} else {
			x.ran++
			x.lose(t, first, nil, sent)
		}
	}
	said := "gone"
	if e := first.wait(); x.at != (lost{"the caller", "before"}) && x.at != (lost{"the caller", "during"}) {
		said = x.told(e)
	}
	if x.at.what == "the caller" && x.at.when == "after" {
		said = "missed"
	}
	again := w.callAs(x.caller(), x.request())
	for range 4 { // what reaches the server is answered
		synctest.Wait()
		for s.probe.Pending() > 0 {
			switch g := s.probe.Next(t); m := g.Msg.(type) {
			case discover:
				s.lists("write", "read!")
				found(g.Question)
			case Call:
				m.Bytes.Release()
				x.ran++
				w.answer(g.Question, "again")
			}
		}
	}
	return fmt.Sprintf("%s, %s, %d", said, x.told(again.wait()), x.ran)
}

// lose ends what is to end.
func (x *repeated) lose(t *testing.T, first *pendingCall, asked, sent *kernel.Question) {
	w, s := x.w, x.s
	answer := func() { w.answer(sent, "done") }
	switch x.at.what {
	case "the caller":
		if x.at.when == "after" {
			answer()
			x.missed(first)
			return
		}
		first.hang()
		switch {
		case asked != nil:
			s.lists("write", "read!")
			found(asked)
		case !(x.who.token || x.who.key) || x.who.tool == "files.read":
			time.Sleep(time.Minute) // nobody joins it
		default: // it runs on, and is joined
			go func() { time.Sleep(time.Second); sent.Answer(Result{Raw: []byte(`{"content":[]}`)}, nil) }()
		}
	case "the server":
		switch {
		case asked != nil:
			s.fails("it does not start")
			found(asked)
		case x.at.when == "after":
			answer()
			s.fails("it has ended")
		default:
			sent.Fail(errors.New("the process was killed by signal 9"))
		}
	case "the pod":
		if x.at.when == "after" {
			answer()
		}
		w.desk.Stop(nil)
		synctest.Wait()
		w.view = new(atomic.Pointer[View]) // and the next life begins
		w.desk = kerneltest.Spawn(t, w.parent, DeskSpec("next", DeskConfig{Tag: "#12b9377c", Owner: "owner", View: w.view, Open: w.open, Audit: w.trail,
			Grants: all("shop"), Ledger: x.ledger, Configured: []Configured{s}}))
		w.caller.Desk, w.caller.View = w.desk, w.view
	}
}

// missed has the first caller find out that nobody reads its answer.
func (x *repeated) missed(first *pendingCall) {
	e := <-first.end
	raw := []byte(`{"content":[{"type":"text","text":"done"}]}`)
	lease, err := x.w.k.Account().Acquire(int64(len(raw)))
	if err != nil {
		x.w.t.Fatal(err)
	}
	r := x.request()
	r.Token, r.sha, r.Arguments = x.caller().Token, sha256.Sum256(r.Arguments), nil
	(&Delivery{Raw: raw, reads: x.who.tool == "files.read", lease: lease, who: x.caller(), call: r}).Missed()
	synctest.Wait()
	first.end <- e
}

func (x *repeated) told(e ending) string {
	if e.err != nil {
		return string(e.code())
	}
	return "ok"
}

// The hash in the audit is that of the contract.
func TestTheHashOfNoArgumentsIsTheContracts(t *testing.T) {
	sum := argsSHA(nil)
	if got := hex.EncodeToString(sum[:8]); got != "44136fa355b3678a" {
		t.Errorf("got %s", got)
	}
}
