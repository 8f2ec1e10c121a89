package watch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/pod"
)

// shown is a pod that shows what a test says.
type shown struct {
	mu            sync.Mutex
	tree, metrics string
	then          []string // trees that are shown later, one look after the other
}

func (s *shown) set(tree, metrics string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree, s.metrics = tree, metrics
}

func (s *shown) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/debug/tree":
		fmt.Fprint(w, s.tree)
		if len(s.then) > 0 {
			s.tree, s.then = s.then[0], s.then[1:]
		}
	case "/metrics":
		fmt.Fprint(w, s.metrics)
	default:
		http.NotFound(w, r)
	}
}

const restingTree = `{"path":"pod","kind":"pod","account":{"used":0,"limit":100},"owes":[],"children":[
 {"path":"pod/gateway","account":{"used":0,"limit":100},"children":[]},{"path":"pod/sessions","account":{"used":0,"limit":100},"children":[]}],
 "pod":{"bytes_used":0,"bytes_limit":100,"worst_case_bytes":1000,"tokens_live":0,"calls_in_flight":0,"agents":0,"connections":0,"sessions":0}}`

const restingMetrics = `# HELP x
process_resident_memory_bytes 500
go_goroutines 10
process_open_fds 5
acpod_tokens_minted_total 3
acpod_tokens_revoked_total{why="closed"} 2
acpod_tokens_revoked_total{why="crash"} 1
acpod_pod_tokens_live 0
acpod_mcp_connections_opened_total 4
acpod_mcp_connections_closed_total{how="disconnected"} 3
acpod_mcp_connections_closed_total{how="socket_gone"} 1
acpod_exits_total{kind="agent",outcome="crashed"} 3
`

func watched(t *testing.T) (*State, *shown) {
	t.Helper()
	s := &shown{tree: restingTree, metrics: restingMetrics}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p := pod.Attach("ws://127.0.0.1:1/acp", server.URL, "")
	t.Cleanup(func() { _, _ = p.Stop(t.Context()) })
	book := invariant.NewBook(nil)
	return &State{Pod: p, Book: book, Secrets: NewSecrets(book), Name: "x", Factor: 1}, s
}

func TestAPodThatShowsABrokenPromiseIsNamed(t *testing.T) {
	replace := func(text, old, new string) string {
		t.Helper()
		out := ""
		for i := 0; i+len(old) <= len(text); i++ {
			if text[i:i+len(old)] == old {
				return text[:i] + new + text[i+len(old):]
			}
		}
		t.Fatalf("%q is not in the text", old)
		return out
	}
	for _, test := range []struct {
		name          string
		tree, metrics string // what is shown after the baseline
		breaks        invariant.Name
	}{
		{"all is as it should be", restingTree, restingMetrics, ""},
		{"an account is over its limit", replace(restingTree, `"used":0,"limit":100},"owes"`, `"used":101,"limit":100},"owes"`), restingMetrics, invariant.Accounts},
		{"an account is below zero", replace(restingTree, `"used":0`, `"used":-1`), restingMetrics, invariant.Accounts},
		{"an account is not empty at rest", replace(restingTree, `"used":0`, `"used":1`), restingMetrics, invariant.Accounts},
		{"something is owed at rest", replace(restingTree, `"owes":[]`, `"owes":[{"name":"token","for_ms":5}]`), restingMetrics, invariant.Accounts},
		{"a connection is left at rest", replace(restingTree, `"children":[]}`, `"children":[{"path":"pod/gateway/conn-1"}]}`), restingMetrics, invariant.Accounts},
		{"a mailbox holds more than its account", replace(restingTree, `"path":"pod/gateway"`, `"path":"pod/gateway","queue":{"n":1,"bytes":50,"oldest_ms":1}`), restingMetrics, invariant.Accounts},
		{"memory is over the worst case", restingTree, replace(restingMetrics, "memory_bytes 500", "memory_bytes 1001"), invariant.Memory},
		{"goroutines are left", restingTree, replace(restingMetrics, "goroutines 10", "goroutines 20"), invariant.BackToBaseline},
		{"files are left", restingTree, replace(restingMetrics, "fds 5", "fds 50"), invariant.BackToBaseline},
		{"a token is lost", restingTree, replace(restingMetrics, "minted_total 3", "minted_total 4"), invariant.TokensBalance},
		{"a token of nobody's is live", replace(restingTree, `"tokens_live":0`, `"tokens_live":1`), restingMetrics, invariant.TokensBalance},
		{"a token is revoked twice", restingTree, replace(restingMetrics, `{why="crash"} 1`, `{why="crash"} 2`), invariant.TokensBalance},
		{"a connection is lost", restingTree, replace(restingMetrics, "opened_total 4", "opened_total 5"), invariant.DisconnectedOnce},
		{"an actor crashed", restingTree, restingMetrics + `acpod_exits_total{kind="tunnel",outcome="crashed"} 1` + "\n", invariant.Alive},
		{"an agent was abandoned", restingTree, restingMetrics + `acpod_exits_total{kind="agent",outcome="abandoned"} 1` + "\n", invariant.Alive},
		{"the tree shows a session id", replace(restingTree, `"kind":"pod"`, `"kind":"`+session+`"`), restingMetrics, invariant.NoSecret},
		{"the tree shows a line end of a peer", replace(restingTree, `"kind":"pod"`, `"kind":"pod","attrs":{"name":"one\ntwo"}`), restingMetrics, invariant.LogLines},
		{"nothing can be read", "", "", invariant.Alive},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, shows := watched(t)
			if err := s.Baseline(t.Context()); err != nil {
				t.Fatal(err)
			}
			shows.set(test.tree, test.metrics)
			for range persistent {
				_, _ = s.Look(t.Context())
			}
			s.Rest(t.Context(), time.Millisecond, Slack{Goroutines: 2, FDs: 2})
			broken := s.Book.Broken()
			named := test.breaks == "" && len(broken) == 0
			for _, name := range broken {
				named = named || name == test.breaks
			}
			if !named {
				t.Errorf("broken are %v, want %q: %+v", broken, test.breaks, s.Book.Verdicts())
			}
		})
	}
}

func TestADifferenceOfOneScrapeIsNoBreach(t *testing.T) {
	s, shows := watched(t)
	for i := range 2 * persistent {
		metrics := restingMetrics
		if i%2 == 0 { // a token is minted between the reading of two figures
			metrics = "acpod_tokens_minted_total 9\nacpod_tokens_revoked_total 3\nacpod_pod_tokens_live 5\n"
		}
		shows.set(restingTree, metrics)
		if _, err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if broken := s.Book.Broken(); len(broken) != 0 {
		t.Errorf("broken are %v: %+v", broken, s.Book.Verdicts())
	}
}

// A pod with one connection and two sessions, whose desk and tunnel show the account of their session.
func peopled(used int64, queued string) string {
	return fmt.Sprintf(`{"path":"pod","account":{"used":%d,"limit":1000,"scope":"pod_bytes"},"children":[
 {"path":"pod/gateway","account":{"used":%d,"limit":1000,"scope":"pod_bytes"}%s,"children":[
  {"path":"pod/gateway/conn-1","account":{"used":16,"limit":100,"scope":"connection_bytes"}}]},
 {"path":"pod/sessions","account":{"used":%d,"limit":1000,"scope":"pod_bytes"},"children":[
  {"path":"pod/sessions/sess-1","account":{"used":30,"limit":200,"scope":"session_bytes"},"children":[
   {"path":"pod/sessions/sess-1/desk","account":{"used":30,"limit":200,"scope":"session_bytes"}},
   {"path":"pod/sessions/sess-1/tunnel-1","account":{"used":30,"limit":200,"scope":"session_bytes"},"queue":{"n":1,"bytes":9}}]},
  {"path":"pod/sessions/sess-2","account":{"used":4,"limit":1000,"scope":"session_bytes"}}]}],
 "pod":{"bytes_used":%d,"connections":1,"sessions":2,"tokens_live":2}}`, used, used, queued, used, used)
}

func TestEachAccountCountsOnceInTheSumOfAPod(t *testing.T) {
	nameless, err := pod.ParseTree([]byte(strings.ReplaceAll(peopled(51, ""), `"scope"`, `"other"`)))
	if err != nil || nameless.Astray() != 0 {
		t.Errorf("of a pod that does not say whose accounts are whose %d bytes are astray (%v)", nameless.Astray(), err)
	}
	for _, test := range []struct {
		used   int64
		queued string
		astray int64
	}{
		{50, "", 0},
		{57, `,"queue":{"n":1,"bytes":7}`, 0},
		{51, "", 1},
		{49, "", -1},
	} {
		tree, err := pod.ParseTree([]byte(peopled(test.used, test.queued)))
		if err != nil {
			t.Fatal(err)
		}
		if astray := tree.Astray(); astray != test.astray {
			t.Errorf("of %d bytes %d are astray, want %d", test.used, astray, test.astray)
		}
	}
}

func TestBytesThatNobodyBelowThePodHasAreNamed(t *testing.T) {
	s, shows := watched(t)
	metrics := "acpod_tokens_minted_total 2\nacpod_pod_tokens_live 2\n"
	leaks := func(used func(i int) int64) []invariant.Name {
		t.Helper()
		s.Book = invariant.NewBook(nil)
		for i := range 2 * persistent {
			shows.set(peopled(used(i), ""), metrics)
			tree, err := s.Pod.Tree(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.equality(tree, 0)
		}
		return s.Book.Broken()
	}
	if broken := leaks(func(int) int64 { return 50 }); len(broken) != 0 {
		t.Errorf("a sum that is right broke %v", broken)
	}
	if broken := leaks(func(i int) int64 { return 50 + int64(i) }); len(broken) != 0 {
		t.Errorf("a sum that moves broke %v", broken)
	}
	if broken := leaks(func(int) int64 { return 57 }); len(broken) != 1 || broken[0] != invariant.Accounts {
		t.Errorf("a leak of 7 bytes broke %v", broken)
	}
	if broken := leaks(func(int) int64 { return 45 }); len(broken) != 1 || broken[0] != invariant.Accounts {
		t.Errorf("parts with more than the whole broke %v", broken)
	}
}

func TestBytesOfNobodyInAPodThatWorksAreNamedWhenTheyHaveStayedTooLong(t *testing.T) {
	for _, test := range []struct {
		name         string
		looks        int
		pause        time.Duration
		used, breaks int64
	}{
		{"for many looks and long", persistent, homeless / (persistent - 1), 57, 1},
		{"for many looks, and it may still find its reader", persistent, homeless / persistent, 57, 0},
		{"long, and few looks", persistent - 1, homeless, 57, 0},
		{"the sum is right", persistent, homeless, 50, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, shows := watched(t)
			now := time.Unix(1e9, 0)
			s.clock = func() time.Time { return now }
			shows.set(peopled(test.used, ""), "acpod_tokens_minted_total 2\nacpod_pod_tokens_live 2\n")
			for range test.looks {
				if _, err := s.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
				now = now.Add(test.pause)
			}
			if broken := s.Book.Broken(); int64(len(broken)) != test.breaks || len(broken) > 0 && broken[0] != invariant.Accounts {
				t.Errorf("broken are %v", broken)
			}
		})
	}
}

func TestAQuietPodIsGivenTimeUntilItsSumIsRight(t *testing.T) {
	s, shows := watched(t)
	shows.set(peopled(57, ""), "")
	shows.then = []string{peopled(57, ""), peopled(50, "")}
	s.Quiet(t.Context(), time.Minute)
	if broken := s.Book.Broken(); len(broken) != 0 {
		t.Errorf("broken are %v", broken)
	}
	shows.set(peopled(57, ""), "")
	s.Quiet(t.Context(), (persistent+1)*quietPause)
	if broken := s.Book.Broken(); len(broken) != 1 || broken[0] != invariant.Accounts {
		t.Errorf("a leak broke %v", broken)
	}
}
