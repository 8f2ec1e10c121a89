package capability

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// finding is what came of a search.
type finding struct {
	text  string
	after time.Duration
}

// search makes a search on a goroutine of its own.
func (w *world) search(q Query) chan finding {
	out := make(chan finding, 1)
	go func() {
		begun := time.Now()
		text, lease, err := Search(context.Background(), w.caller, q)
		if err != nil {
			text = []byte(err.Error())
		}
		lease.Release()
		out <- finding{string(text), time.Since(begun)}
	}()
	synctest.Wait()
	return out
}

func TestTheFirstSearchWaitsForConfiguredServersAndFindsThem(t *testing.T) {
	notes, files := newServer("notes", Idle, nil), newServer("files", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{notes, files}, func(w *world) {
		w.attach(shop("shop.buy"))
		search := w.search(Query{})
		a, b := notes.asked(t), files.asked(t)
		time.Sleep(time.Second)
		notes.lists("add_note")
		found(a)
		time.Sleep(time.Second)
		files.lists("read_file", "add_note")
		found(b)
		f := <-search
		for _, name := range []string{`"name":"add_note"`, `"name":"read_file"`, `"name":"notes.add_note"`, `"name":"shop.buy"`} {
			if !strings.Contains(f.text, name) {
				t.Errorf("%s is not in %s", name, f.text)
			}
		}
		if f.after != 2*time.Second || !strings.Contains(f.text, `"pending":[]`) || !strings.Contains(f.text, `"unavailable":[]`) {
			t.Errorf("after %v: %s", f.after, f.text)
		}
		if f = <-w.search(Query{}); f.after != 0 {
			t.Errorf("the second search took %v", f.after)
		}
		for name, at := range map[string]*fakeServer{"add_note": files, "notes.add_note": notes, "files.read_file": files} {
			c := w.call(Request{Name: name})
			call, q := at.next(t)
			if call.Owner == "" {
				t.Error("nobody's call")
			}
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
	})
}

func TestAServerThatHangsFailsOrRefusesDelaysNoOtherPastTheBound(t *testing.T) {
	hangs, broken, strange, well := newServer("hangs", Connecting, nil), newServer("broken", Idle, nil), newServer("strange", Idle, nil), newServer("well", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{hangs, broken, strange, well}, func(w *world) {
		search := w.search(Query{})
		broken.fails("no such file")
		strange.become(Toolset{State: LoggedOut, Reason: "the server answered 401"})
		well.lists("go")
		found(broken.asked(t))
		found(strange.asked(t))
		found(well.asked(t))
		f := <-search
		if f.after != SettleTimeout {
			t.Errorf("it waited %v", f.after)
		}
		for _, want := range []string{`"pending":["hangs"]`, `{"provider":"broken","error":"broken failed: no such file"}`, `{"provider":"strange","error":"strange refuses the pod's credentials: the server answered 401"}`, `"name":"go"`} {
			if !strings.Contains(f.text, want) {
				t.Errorf("%s is not in %s", want, f.text)
			}
		}
		for name, want := range map[string]Code{"hangs.x": NotAttached, "broken.x": NotAttached, "strange.x": NeedsLogin, "well.x": Unknown, "nope": Unknown} {
			c := w.call(Request{Name: name})
			for _, s := range []*fakeServer{broken, strange} {
				for s.probe.Pending() > 0 {
					found(s.asked(t))
				}
			}
			if e := c.wait(); e.code() != want {
				t.Errorf("%s: %v", name, e.err)
			}
		}
		c := w.call(Request{Name: "go"})
		_, q := well.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Errorf("the one that is well: %v", e.err)
		}
	})
}

func TestOnlyServersThatMayHaveANameAreWokenByACallOfIt(t *testing.T) {
	for _, tc := range []struct {
		what, name string
		woken      []string
		want       Code
	}{
		{"a plain name that two filters allow", "send", []string{"mail", "chat"}, MalformedName},
		{"a plain name that one filter allows", "read", []string{"mail"}, MalformedName},
		{"a qualified name", "chat.go", []string{"chat"}, Unknown},
		{"a qualified name that the filter does not allow", "chat.read", nil, Unknown},
		{"a name that no filter allows", "delete", nil, MalformedName},
		{"a name of the client's server", "shop.gone", nil, Unknown},
		{"a server that the client declared and the policy does not grant", "evil.x", nil, ServerNotGranted},
	} {
		mail, chat := newServer("mail", Idle, nil).but("delete"), newServer("chat", Idle, nil).but("read", "delete")
		runWith(t, DeskConfig{}, []*fakeServer{mail, chat}, func(w *world) {
			w.attach(shop("shop.buy"))
			w.signal(Declared{[]string{"evil"}})
			c := w.call(Request{Name: tc.name})
			var woken []string
			for _, s := range []*fakeServer{mail, chat} {
				for s.probe.Pending() > 0 {
					s.lists("other")
					q := s.asked(t)
					woken = append(woken, s.server)
					found(q)
				}
			}
			if e := c.wait(); e.code() != tc.want || e.after != 0 {
				t.Errorf("%s: %v after %v", tc.what, e.err, e.after)
			}
			if strings.Join(woken, " ") != strings.Join(tc.woken, " ") {
				t.Errorf("%s: woken %q, want %q", tc.what, woken, tc.woken)
			}
		})
	}
}

func TestACallOfAQualifiedNameStartsNothingElseAndKeepsItsMeaning(t *testing.T) {
	mail, chat := newServer("mail", Idle, nil), newServer("chat", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{mail, chat}, func(w *world) {
		own := w.attach(shop("shop.buy", "send"))
		for _, name := range []string{"shop.buy", "shop.send"} { // the session's own are there, and wait for nobody
			c := w.call(Request{Name: name})
			_, q := own.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil || e.after != 0 {
				t.Errorf("%s: %v after %v", name, e.err, e.after)
			}
		}
		c := w.call(Request{Name: "chat.send"})
		chat.lists("send", "shop.send")
		found(chat.asked(t))
		_, q := chat.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Error(e.err)
		}
		w.reachedNobody(mail.fakeSource)
		search := w.search(Query{})
		mail.lists("send")
		found(mail.asked(t))
		f := <-search
		for name, at := range map[string]*fakeSource{"send": chat.fakeSource, "mail.send": mail.fakeSource, "shop.send": own, "chat.shop.send": chat.fakeSource} {
			if !strings.Contains(f.text, `"name":"`+name+`"`) {
				t.Errorf("%s is not in %s", name, f.text)
			}
			c := w.call(Request{Name: name})
			_, q := at.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
	})
}

func TestAConfiguredToolKeepsThePlainNameBeforeANewOneOfTheClient(t *testing.T) {
	files := newServer("files", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{files}, func(w *world) {
		own := w.attach(shop("read", "shop.buy"))
		search := w.search(Query{})
		files.lists("read", "shop.buy")
		found(files.asked(t))
		<-search
		for name, at := range map[string]*fakeSource{"read": files.fakeSource, "shop.read": own, "shop.buy": files.fakeSource, "shop.shop.buy": own, "files.read": files.fakeSource} {
			c := w.call(Request{Name: name})
			_, q := at.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
	})
}

func TestWhatWasShownOnceKeepsItsMeaningWhenAServerListsMore(t *testing.T) {
	files, notes := newServer("files", Ready, tools("read")), newServer("notes", Ready, tools("add"))
	runWith(t, DeskConfig{}, []*fakeServer{files, notes}, func(w *world) {
		<-w.search(Query{})
		w.attach(shop("list"))
		notes.lists("add", "read", "list") // a list that changed is there at the next search, and waits for nobody
		f := <-w.search(Query{})
		if f.after != 0 {
			t.Errorf("it waited %v", f.after)
		}
		for name, provider := range map[string]string{"read": "files", "notes.read": "notes", "list": BrowserProvider, "notes.list": "notes", "add": "notes"} {
			c, ok := byName(w.view.Load().Catalog(), name)
			if !ok || c.Provider != provider {
				t.Errorf("%s is of %q", name, c.Provider)
			}
		}
		notes.become(Toolset{State: Idle, List: tools("read")})
		if _, ok := byName(w.view.Load().Catalog(), "add"); ok {
			t.Error("a tool that is not listed any more is shown")
		}
		if e := w.call(Request{Name: "add"}).wait(); e.code() != MalformedName {
			t.Errorf("a tool that is not listed any more: %v", e.err)
		}
	})
}

func byName(list []Capability, name string) (Capability, bool) {
	for _, c := range list {
		if c.Name == name {
			return c, true
		}
	}
	return Capability{}, false
}

func TestWhereAConfiguredServerStandsIsShown(t *testing.T) {
	s := newServer("files", Ready, tools("read"))
	runWith(t, DeskConfig{}, []*fakeServer{s}, func(w *world) {
		<-w.search(Query{})
		for state, want := range map[State]Availability{Ready: Available, Idle: Available, Connecting: Available, Failed: Unreachable, LoggedOut: LoginNeeded} {
			s.become(Toolset{State: state, Reason: "why", List: s.Tools().List})
			c, ok := byName(w.view.Load().Catalog(), "read")
			if !ok || c.Availability != want {
				t.Errorf("%v: %v %v", state, ok, c.Availability)
			}
			if gone := len(w.view.Load().Unavailable()) == 1; gone != (state == Failed || state == LoggedOut || state == Ready) { // a ready one says what is left out
				t.Errorf("%v: %+v", state, w.view.Load().Unavailable())
			}
		}
		for reason, pending := range map[string]int{"": 1, "no answer": 0} { // one that was tried before is not about to be there
			s.become(Toolset{State: Connecting, Reason: reason})
			if v := w.view.Load(); len(v.Pending()) != pending || len(v.Unavailable()) != 1-pending {
				t.Errorf("%q: %v %+v", reason, v.Pending(), v.Unavailable())
			}
		}
		s.become(Toolset{State: Failed, Reason: strings.Repeat("long ", 500)})
		if u := w.view.Load().Unavailable(); len(u) != 1 || len(u[0].Error) > 400 {
			t.Errorf("the reason is not bounded: %+v", u)
		}
	})
}

func TestACallWakesAServerThatHasListedWhateverItsState(t *testing.T) {
	s := newServer("files", Ready, tools("read"))
	runWith(t, DeskConfig{}, []*fakeServer{s}, func(w *world) {
		for _, state := range []State{Idle, Failed, LoggedOut, Connecting} {
			s.become(Toolset{State: state, List: s.Tools().List})
			c := w.call(Request{Name: "read"})
			_, q := s.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%v: %v", state, e.err)
			}
		}
	})
}

func TestWhyACallOfAConfiguredServerWasNotMadeIsTold(t *testing.T) {
	s := newServer("files", Ready, tools("write", "read!"))
	runWith(t, DeskConfig{}, []*fakeServer{s}, func(w *world) {
		for _, tc := range []struct {
			tool  string
			cause error
			want  Code
			text  string
		}{
			{"write", &NotSent{ErrNeedsLogin}, NeedsLogin, "log in"},
			{"write", &NotSent{&BreakerError{RetryAfter: 42 * time.Second}}, BreakerOpen, "42s"},
			{"write", &NotSent{&kernel.Overloaded{Scope: "provider_calls", Limit: 1, Used: 1, Size: 1}}, TooMuch, "provider_calls"},
			{"write", &NotSent{errors.New("no such file")}, NotAttached, "no such file"},
			{"write", &NotSent{ErrTimeout}, TimedOut, `"files"`},
			{"write", errors.New("the process exited with code 1; its stderr ends: boom"), OutcomeUnknown, "boom"},
			{"read", errors.New("the process exited with code 1; its stderr ends: boom"), NotAttached, "boom"},
			{"write", ErrTimeout, OutcomeUnknown, `"files"`},
			{"read", ErrTimeout, TimedOut, `"files"`},
		} {
			c := w.call(Request{Name: tc.tool})
			_, q := s.next(t)
			q.Fail(tc.cause)
			e := c.wait()
			if e.code() != tc.want || !strings.Contains(e.err.Error(), tc.text) || strings.Contains(e.err.Error(), "\n") {
				t.Errorf("%s, %v: %v", tc.tool, tc.cause, e.err)
			}
		}
	})
}

func TestTheAuditKnowsTheServerOfWhatItRefused(t *testing.T) {
	files := newServer("files", Ready, tools("read")).but("write")
	runWith(t, DeskConfig{}, []*fakeServer{files}, func(w *world) {
		w.attach(shop("shop.buy"))
		w.signal(Declared{[]string{"evil"}})
		for name, provider := range map[string]string{"files.write": "files", "files.nope": "files", "evil.x": BrowserProvider, "nope": "-", "shop.x.y": "-"} {
			w.call(Request{Name: name}).wait()
			entries := w.trail.all()
			if e := entries[len(entries)-1]; e.Event != EventRefused || e.Provider != provider || e.Filtered != (name == "files.write") {
				t.Errorf("%s: %+v", name, e)
			}
		}
		w.call(Request{Name: "read", Arguments: []byte(`{"n":"x"}`)}).wait()
		entries := w.trail.all()
		if e := entries[len(entries)-1]; e.Provider != "files" || e.Tool != "read" || e.Outcome != string(BadArguments) {
			t.Errorf("bad arguments: %+v", e)
		}
	})
}

func TestEachSessionHasAServerOfItsOwnWhereThatIsSaid(t *testing.T) {
	template := &fakeIsolated{fakeServer: newServer("browser", Idle, nil).but("close")}
	run(t, DeskConfig{Configured: []Configured{template}}, func(w *world) {
		if w.call(Request{Name: "browser.close"}).wait(); len(template.made) != 0 {
			t.Fatal("one was started for a tool that the filter leaves out")
		}
		search := w.search(Query{})
		if len(template.made) != 1 {
			t.Fatalf("%d were started by the first search", len(template.made))
		}
		own := template.made[0]
		own.lists("open")
		found(own.asked(t))
		if f := <-search; !strings.Contains(f.text, `"name":"open"`) {
			t.Errorf("got %s", f.text)
		}
		use := func(s *fakeServer) {
			t.Helper()
			c := w.call(Request{Name: "open"})
			_, q := s.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Error(e.err)
			}
		}
		use(own)
		if child, ok := tree(w.k.Tree(), "browser"); !ok || child.Path != w.desk.Path()+"/browser" {
			t.Errorf("it stands at %q", child.Path)
		}
		own.ref.Stop(nil) // it ends for good
		synctest.Wait()
		template.become(Toolset{State: Idle, List: tools("open")}) // what it listed is known without it
		c := w.call(Request{Name: "open"})
		if len(template.made) != 2 {
			t.Fatalf("%d were started", len(template.made))
		}
		_, q := template.made[1].next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Error(e.err)
		}
		if err := w.desk.Signal(Attach{nil}); err != nil { // a fault of our own ends the desk, and with it what is its own
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c = w.call(Request{Name: "open"})
		if len(template.made) != 3 {
			t.Fatalf("%d were started", len(template.made))
		}
		_, q = template.made[2].next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Error(e.err)
		}
	})
}

// tree finds an actor by its name.
func tree(n kernel.Node, name string) (kernel.Node, bool) {
	if n.Name == name {
		return n, true
	}
	for _, child := range n.Children {
		if found, ok := tree(child, name); ok {
			return found, true
		}
	}
	return kernel.Node{}, false
}

func TestNoCallOutlivesItsMaximum(t *testing.T) {
	s := newServer("files", Ready, tools("read"))
	runWith(t, DeskConfig{Limits: DeskLimits{CallMax: 3 * time.Second}}, []*fakeServer{s}, func(w *world) {
		c := w.call(Request{Name: "read"})
		call, q := s.next(t)
		if d := time.Until(call.Limit); d != 3*time.Second || call.Deadline.After(call.Limit) {
			t.Errorf("its limit is in %v, its deadline %v", d, time.Until(call.Deadline))
		}
		w.answer(q, "ok")
		c.wait()
	})
}

func TestAKeyAtTheOperatorsServerIsNotThatOfAClientsOfTheSameName(t *testing.T) {
	files := newServer("shop", Ready, tools("pay"))
	runWith(t, DeskConfig{}, []*fakeServer{files}, func(w *world) {
		own := w.attach(shop("pay"))
		<-w.search(Query{})
		for name, at := range map[string]*fakeSource{"pay": files.fakeSource, "shop.pay": own} {
			c := w.call(Request{Name: name, Key: "k"})
			_, q := at.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
		if err := w.desk.Signal(Attach{nil}); err != nil { // a fault of our own: what it knew is in the ledger
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, name := range []string{"pay", "shop.pay"} {
			if e := w.call(Request{Name: name, Key: "k"}).wait(); e.code() != OutcomeUnknown {
				t.Errorf("%s: %v", name, e.err)
			}
		}
	})
}

func TestAServerThatHangsHoldsUpOneSearchAndNotEach(t *testing.T) {
	hangs, well := newServer("hangs", Connecting, nil), newServer("well", Ready, tools("go"))
	runWith(t, DeskConfig{}, []*fakeServer{hangs, well}, func(w *world) {
		if f := <-w.search(Query{}); f.after != SettleTimeout {
			t.Errorf("the first waited %v", f.after)
		}
		if f := <-w.search(Query{}); f.after != 0 || !strings.Contains(f.text, `"pending":["hangs"]`) || !strings.Contains(f.text, `"name":"go"`) {
			t.Errorf("the second waited %v: %s", f.after, f.text)
		}
		if e := w.call(Request{Name: "nope"}).wait(); e.after != 0 || e.code() != Unknown {
			t.Errorf("a plain name waited %v: %v", e.after, e.err)
		}
		if e := w.call(Request{Name: "hangs.x"}).wait(); e.after != SettleTimeout || e.code() != NotAttached {
			t.Errorf("its own name waited %v: %v", e.after, e.err)
		}
		hangs.become(Toolset{State: Connecting}) // another attempt
		search := w.search(Query{})
		q := hangs.asked(t)
		time.Sleep(time.Second)
		hangs.lists("come")
		found(q)
		if f := <-search; f.after != time.Second || !strings.Contains(f.text, `"name":"come"`) {
			t.Errorf("the next attempt: %v %s", f.after, f.text)
		}
	})
}

func TestANameWhoseToolIsGoneLeadsToNoOther(t *testing.T) {
	files := newServer("files", Ready, tools("shop.go"))
	runWith(t, DeskConfig{}, []*fakeServer{files}, func(w *world) {
		c := w.call(Request{Name: "shop.go"})
		_, q := files.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Fatal(e.err)
		}
		files.lists("other")
		s := w.attach(shop("go"))
		if e := w.call(Request{Name: "shop.go"}).wait(); e.code() == "" {
			t.Error("it led to another tool")
		}
		w.reachedNobody(s)
	})
}
