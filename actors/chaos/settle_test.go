package chaos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/pod"
	"github.com/acpod/acpod/actors/chaos/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A pod in which one client leaves something behind before the attack has broken a promise, and is attacked all the same.
func TestWhatOneClientLeavesBehindIsABreachAndNoError(t *testing.T) {
	for _, test := range []struct {
		name, figures, account string
		breaks                 []invariant.Name
	}{
		{"nothing", `"sessions":0`, `"used":0,"limit":9`, nil},
		{"bytes", `"sessions":0`, `"used":3,"limit":9`, []invariant.Name{invariant.Accounts}},
		{"a token", `"tokens_live":1`, `"used":0,"limit":9`, []invariant.Name{invariant.Accounts, invariant.TokensBalance}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/debug/tree" {
					fmt.Fprint(w, "go_goroutines 1\nprocess_resident_memory_bytes 1\n")
					return
				}
				fmt.Fprintf(w, `{"path":"pod","account":{%s},"pod":{"worst_case_bytes":100,"bytes_limit":9,%s}}`, test.account, test.figures)
			}))
			defer server.Close()
			p := pod.Attach("ws://127.0.0.1:1/acp", server.URL, "")
			defer p.Stop(t.Context())
			book := invariant.NewBook(nil)
			r := &run{o: Options{Spawn: true}, book: book}
			s := &watch.State{Pod: p, Book: book, Secrets: watch.NewSecrets(book), Name: "x", Factor: 1}
			if err := r.settle(t.Context(), s, time.Millisecond); err != nil {
				t.Errorf("it ended with %v", err)
			}
			broken := book.Broken()
			slices.Sort(broken)
			if !slices.Equal(broken, test.breaks) {
				t.Errorf("broken are %v, want %v: %+v", broken, test.breaks, book.Verdicts())
			}
			if s.Began().Goroutines != 1 {
				t.Errorf("the baseline is %+v", s.Began())
			}
		})
	}
}
