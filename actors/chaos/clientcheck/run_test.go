package clientcheck

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
)

// quick is a run that waits little for what must not come, and long for what has to.
func quick() Config {
	return Config{
		Timeout: 20 * time.Second, Step: 20 * time.Second, Patience: 20 * time.Second,
		hold: 10 * time.Millisecond, quiet: 5 * time.Millisecond, outage: 100 * time.Millisecond, large: 32 << 10,
	}
}

// check runs a client against a check and gives the report.
func check(ctx context.Context, t *testing.T, cfg Config, c *client) (*Report, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.url = Address(listener.Addr())
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	var living sync.WaitGroup
	living.Go(func() { c.live(ctx) })
	defer living.Wait()
	defer cancel()
	return Run(ctx, listener, cfg)
}

// of gives the rows with that outcome.
func of(r *Report, status tally.Status) (names []string) {
	for _, row := range r.Rows {
		if row.Status == status {
			names = append(names, row.Name)
		}
	}
	return names
}

func explain(r *Report) string {
	var b strings.Builder
	_ = r.Text(&b)
	return b.String()
}

// A client that does everything as it should passes every row that its generations have.
func TestAGoodClientPasses(t *testing.T) {
	t.Parallel()
	const keyless, prompts, early, inbound, about = rowKey, rowPrompt, rowEarly, rowInbound, rowRequests
	for generations, lacks := range map[string][]string{
		"A": nil, "B": nil, "0": nil, "0ABC": nil, "C": {rowConnect, rowDistinct, rowHandshake, rowInitialized, rowNoNote, rowNoServer, rowDisconnect, rowEnded, rowOther},
	} {
		t.Run(generations, func(t *testing.T) {
			t.Parallel()
			r, err := check(t.Context(), t, quick(), &client{generations: generations})
			if err != nil || !r.OK() {
				t.Fatalf("%v\n%s", err, explain(r))
			}
			skipped := map[string]bool{keyless: true, prompts: true, early: true, inbound: true, about: true}
			for _, name := range lacks {
				skipped[name] = true
			}
			for _, name := range of(r, tally.Skipped) {
				if !skipped[name] {
					t.Errorf("%q is skipped\n%s", name, explain(r))
				}
				delete(skipped, name)
			}
			for name := range skipped {
				t.Errorf("%q was asked, and there was nothing to ask", name)
			}
			if text := explain(r); r.Ended != "" || strings.Contains(text, "the socket had ended") {
				t.Errorf("a whole run is told as if it had been cut\n%s", text)
			}
		})
	}
}

func TestNobodyComes(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := quick()
	cfg.Timeout = 50 * time.Millisecond
	if _, err := Run(t.Context(), listener, cfg); !errors.Is(err, ErrNobody) {
		t.Errorf("ended with %v", err)
	}
	if _, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second); err == nil {
		t.Error("it still listens")
	}
}
