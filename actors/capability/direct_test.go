package capability

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func (w *world) direct(ctx context.Context, names ...string) []string {
	var got []string
	for _, c := range Direct(ctx, w.caller, names) {
		got = append(got, c.Name+" of "+c.Provider)
	}
	return got
}

func TestDirectToolsAreWhatTheCallerMayExecuteUnderTheNamesThatWereConfigured(t *testing.T) {
	files, mail := newServer("files", Ready, tools("read", "write")).but("write"), newServer("mail", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{files, mail}, func(w *world) {
		own := w.attach(newSource("shop", Ready, tools("shop.buy", "list")))
		over, cancel := context.WithCancel(context.Background())
		cancel()
		names := []string{"shop.buy", "files.read", "files.write", "mail.send", "list", "read", "nobody.x"}
		if got, want := fmt.Sprint(w.direct(over, names...)), "[shop.buy of openab-browser files.read of files]"; got != want {
			t.Errorf("without a wait: %s, want %s", got, want)
		}
		w.reachedNobody(mail.fakeSource)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		out := make(chan []string, 1)
		begun := time.Now()
		go func() { out <- w.direct(ctx, names...) }()
		synctest.Wait()
		q := mail.asked(t)
		time.Sleep(time.Second)
		mail.lists("send")
		found(q)
		got := fmt.Sprint(<-out)
		if want := "[shop.buy of openab-browser files.read of files mail.send of mail list of openab-browser read of files]"; got != want || time.Since(begun) != time.Second {
			t.Errorf("after %v: %s, want %s", time.Since(begun), got, want)
		}
		for name, at := range map[string]*fakeSource{"shop.buy": own, "list": own, "files.read": files.fakeSource, "mail.send": mail.fakeSource, "read": files.fakeSource} {
			c := w.call(Request{Name: name})
			_, q := at.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
		w.signal(Detach{own})
		if got, want := fmt.Sprint(w.direct(over, names...)), "[files.read of files mail.send of mail read of files]"; got != want {
			t.Errorf("when a server has gone: %s, want %s", got, want)
		}
	})
}

func TestAServerThatHangsHoldsAListOfDirectToolsUpNoLongerThanItsCallerWaits(t *testing.T) {
	mail := newServer("mail", Connecting, nil)
	runWith(t, DeskConfig{}, []*fakeServer{mail}, func(w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		begun := time.Now()
		if got := w.direct(ctx, "mail.send"); len(got) != 0 || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), got)
		}
	})
}
