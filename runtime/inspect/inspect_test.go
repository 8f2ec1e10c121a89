package inspect

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

type stuck struct{}

// house is a kernel with a root, one child that holds something, and an inspector over it.
func house(t *testing.T, o Options) (*Inspector, kernel.Ref, http.Handler) {
	t.Helper()
	var i *Inspector
	k := kerneltest.Start(t, kernel.Options{OnExit: func(e kernel.Exit) { i.Exited(e) }})
	o.Walk, o.Refusals = k.Walk, k.Refusals
	i = New(o)
	root, _ := kerneltest.Root(t, k)
	child := kerneltest.NewProbe()
	child.OnStart = func(c *kernel.Ctx) error {
		c.Attr("name", "\x1b[31m"+strings.Repeat("x", 100))
		c.Own("mcp/disconnect", func(context.Context, error) {})
		c.Refuse("outbound_bytes")
		return nil
	}
	spec := child.Spec("conn-1")
	spec.Kind, spec.Scope, spec.Limit = "conn", "connection_bytes", 1<<20
	ref := kerneltest.Spawn(t, root, spec)
	kerneltest.Do(t, ref, func(*kernel.Ctx) {})
	return i, ref, i.Handler()
}

func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return v
}

func TestTreeHasTheShapeOfTheContract(t *testing.T) {
	_, _, h := house(t, Options{Figures: func(root kernel.Node) []Figure { return []Figure{{"connections", int64(root.Kids)}} }})
	var root map[string]any
	kerneltest.Eventually(t, "the turns that made the house are over", func() bool { // "doing" is there while one runs
		root = decode[map[string]any](t, get(t, h, "/debug/tree"))
		return root["doing"] == nil && root["children"].([]any)[0].(map[string]any)["doing"] == nil
	})
	want := []string{"account", "children", "gen", "kind", "owes", "path", "pod", "queue", "refused", "restarts", "since_ms", "state"}
	if got := slices.Sorted(maps.Keys(root)); !slices.Equal(got, want) {
		t.Errorf("members of the root: %v, want %v", got, want)
	}
	if pod := root["pod"].(map[string]any); pod["connections"] != 1.0 {
		t.Errorf("pod: %v", pod)
	}
	child := root["children"].([]any)[0].(map[string]any)
	if got := slices.Sorted(maps.Keys(child)); !slices.Equal(got, []string{"account", "attrs", "children", "gen", "kind", "owes", "path", "queue", "refused", "restarts", "since_ms", "state"}) {
		t.Errorf("members of a node: %v", got)
	}
	if child["path"] != root["path"].(string)+"/conn-1" || child["kind"] != "conn" || child["state"] != "running" {
		t.Errorf("%v", child)
	}
	if got := slices.Sorted(maps.Keys(child["queue"].(map[string]any))); !slices.Equal(got, []string{"bytes", "n", "oldest_ms"}) {
		t.Errorf("queue: %v", got)
	}
	if a := child["account"].(map[string]any); a["limit"] != float64(1<<20) || a["used"] == nil || a["scope"] != "connection_bytes" {
		t.Errorf("account: %v", a)
	}
	if owed := child["owes"].([]any); len(owed) != 1 || owed[0].(map[string]any)["name"] != "mcp/disconnect" || owed[0].(map[string]any)["for_ms"] == nil {
		t.Errorf("owes: %v", owed)
	}
	if child["refused"].(map[string]any)["outbound_bytes"] != 1.0 {
		t.Errorf("refused: %v", child["refused"])
	}
	if name := child["attrs"].(map[string]any)["name"].(string); strings.ContainsRune(name, 0x1b) || len([]rune(name)) > 64 {
		t.Errorf("what a peer chose is not escaped and cut: %q", name)
	}
	if list, ok := child["children"].([]any); !ok || len(list) != 0 {
		t.Errorf("a leaf has an empty list of children, not %v", child["children"])
	}
}

func TestTreeIsReadWhileATurnIsStuck(t *testing.T) {
	block := make(chan struct{})
	probe := kerneltest.NewProbe()
	probe.On = func(_ *kernel.Ctx, m kernel.Msg) (bool, error) {
		if _, ok := m.(stuck); ok {
			<-block
			return true, nil
		}
		return false, nil
	}
	k := kerneltest.Start(t, kernel.Options{})
	h := New(Options{Walk: k.Walk}).Handler()
	root, _ := kerneltest.Root(t, k)
	ref := kerneltest.Spawn(t, root, probe.Spec("slow"))
	for range 3 {
		if err := ref.Tell(stuck{}); err != nil {
			t.Fatal(err)
		}
	}
	defer close(block)
	var node Node
	kerneltest.Eventually(t, "the turn shows", func() bool {
		node = decode[Node](t, get(t, h, "/debug/tree/"+ref.Path()))
		return node.Doing != nil && node.Doing.Type == "inspect.stuck" // it was in Start before
	})
	if node.Queue.N != 2 || node.Queue.Bytes != 2*kernel.MessageBytes {
		t.Errorf("%+v doing %+v", node, node.Doing)
	}
}

func TestTreeCanBeNarrowed(t *testing.T) {
	_, ref, h := house(t, Options{})
	if top := decode[Root](t, get(t, h, "/debug/tree?depth=0")); len(top.Children) != 0 || top.Hidden != 1 {
		t.Errorf("depth 0: %+v", top)
	}
	if top := decode[Root](t, get(t, h, "/debug/tree?kind=conn")); len(top.Children) != 1 {
		t.Errorf("kind conn: %+v", top)
	}
	if top := decode[Root](t, get(t, h, "/debug/tree?kind=nothing")); len(top.Children) != 0 || top.Path == "" {
		t.Errorf("a kind that nobody is: %+v", top)
	}
	for _, path := range []string{ref.Path(), "conn-1"} { // with the root's name and without
		if node := decode[Node](t, get(t, h, "/debug/tree/"+path)); node.Path != ref.Path() {
			t.Errorf("%s gave %s", path, node.Path)
		}
	}
	for path, status := range map[string]int{"/debug/tree/nobody": 404, "/debug/tree?depth=x": 400, "/debug/tree?depth=-1": 400, "/nowhere": 404} {
		if w := get(t, h, path); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
}

func TestKeyIsAskedForEverythingButThePage(t *testing.T) {
	_, _, h := house(t, Options{AuthKey: "the key"})
	for _, path := range []string{"/debug/tree", "/debug/tree/x", "/debug/events", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/profile", "/debug/pprof/symbol", "/debug/pprof/trace"} {
		for _, bad := range []string{"", "Bearer", "Bearer ", "Bearer other", "Basic the key", "the key"} {
			if w := get(t, h, path, "Authorization", bad); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %q: %d", path, bad, w.Code)
			}
		}
	}
	for _, path := range []string{"/debug/", "/debug/page.js", "/debug/page.css"} {
		if w := get(t, h, path); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := get(t, h, "/debug/tree", "Authorization", "Bearer the key"); w.Code != http.StatusOK {
		t.Errorf("with the key: %d", w.Code)
	}
}

func TestPageHasNoInlineCodeAndWritesNoMarkup(t *testing.T) {
	_, _, h := house(t, Options{})
	w := get(t, h, "/debug/")
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy: %s", policy)
	}
	html := w.Body.String()
	for _, bad := range []string{"<style", " onclick", " style=", "<script>", "javascript:"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q in it", bad)
		}
	}
	script := get(t, h, "/debug/page.js").Body.String()
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"} {
		if strings.Contains(script, bad) {
			t.Errorf("the script uses %s: text of peers could become markup", bad)
		}
	}
}

func TestEventsTellEndsAsTheyHappenAndAgainToThoseWhoComeBack(t *testing.T) {
	i, ref, h := house(t, Options{})
	server := httptest.NewServer(h)
	defer server.Close()
	defer i.Close() // streams end first, or the server would wait for them
	read := func(last string, count int) []Event {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+"/debug/events", nil)
		r.Header.Set("Last-Event-ID", last)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("content type %s", kind)
		}
		var found []Event
		lines := bufio.NewScanner(answer.Body)
		for len(found) < count && lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e Event
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				found = append(found, e)
			}
		}
		return found
	}
	first := make(chan []Event, 1)
	go func() { first <- read("", 1) }()
	kerneltest.Eventually(t, "the watcher is there", func() bool {
		i.events.mu.Lock()
		defer i.events.mu.Unlock()
		return len(i.events.watchers) == 1
	})
	ref.Stop(errors.New("line one\nline two"))
	got := <-first
	if len(got) != 1 || got[0].Path != ref.Path() || got[0].Gen != ref.Gen() || strings.Contains(got[0].Cause, "\n") || got[0].Crashed {
		t.Errorf("%+v", got)
	}
	if again := read("0", 1); len(again) != 1 || again[0] != got[0] {
		t.Errorf("who comes back must find what it missed: %+v", again)
	}
	if missed := i.events; len(missed.kept) != 1 {
		t.Errorf("kept: %+v", missed.kept)
	}
}

func TestStartsAreEventsOfTheirOwnKind(t *testing.T) {
	e := newEvents()
	e.started(time.Unix(7, 0), kernel.Started{Path: "pod/x", Name: "x", Kind: "thing", Gen: 9, Follows: 4})
	e.ended(time.Unix(8, 0), kernel.Exit{Path: "pod/x", Kind: "thing", Gen: 9})
	_, seen := e.watch(0)
	if len(seen) != 2 {
		t.Fatalf("%+v", seen)
	}
	if got := frame(seen[0]); !strings.HasPrefix(got, "id: 1\nevent: start\ndata: {\"id\":1,\"at\":") || !strings.HasSuffix(got, `"path":"pod/x","kind":"thing","gen":9,"follows":4}`+"\n\n") {
		t.Errorf("%q", got)
	}
	if got := frame(seen[1]); !strings.HasPrefix(got, "id: 2\nevent: exit\n") || !strings.Contains(got, `"crashed":false`) {
		t.Errorf("%q", got)
	}
}

func TestSlowWatcherIsDroppedAndTheKernelNeverWaits(t *testing.T) {
	e := newEvents()
	w, _ := e.watch(0)
	for n := range watcherEvents + keptEvents {
		e.ended(time.Unix(int64(n), 0), kernel.Exit{Path: "p", Gen: uint64(n)})
	}
	if !w.dropped || len(e.watchers) != 0 || len(e.kept) != keptEvents {
		t.Errorf("dropped %v, %d watchers, %d kept", w.dropped, len(e.watchers), len(e.kept))
	}
	count := 0
	for range w.events {
		count++
	}
	if count != watcherEvents {
		t.Errorf("%d events were queued, want %d", count, watcherEvents)
	}
	e.leave(w) // a second end does nothing
	for range maxWatchers {
		if w, _ := e.watch(0); w == nil {
			t.Fatal("refused too early")
		}
	}
	if w, _ := e.watch(0); w != nil {
		t.Error("one watcher too many was taken")
	}
	e.close()
	if w, _ := e.watch(0); w != nil || len(e.watchers) != 0 {
		t.Error("a closed stream takes watchers")
	}
}

func TestMetricsComeFromTheTreeWithBoundedLabels(t *testing.T) {
	_, ref, h := house(t, Options{Version: "v1", Figures: func(kernel.Node) []Figure { return []Figure{{"tokens_live", 3}} },
		Counters: func() []Counter {
			return []Counter{{"acpod_things_total", "Things.", "", "", 5}, {"acpod_ends_total", "Ends.", "reason", "quiet", 7}, {"acpod_ends_total", "Ends.", "reason", "loud", 0}}
		}})
	ref.Stop(nil)
	<-ref.Done()
	var text string
	kerneltest.Eventually(t, "the end is counted", func() bool {
		text = get(t, h, "/metrics").Body.String()
		return strings.Contains(text, `acpod_exits_total{kind="conn",outcome="ended"} 1`)
	})
	for _, want := range []string{`acpod_build_info{go="go`, `version="v1"`, "acpod_pod_tokens_live 3", "acpod_things_total 5", `acpod_ends_total{reason="quiet"} 7`, `acpod_ends_total{reason="loud"} 0`, `acpod_actors{kind="`, `acpod_account_limit_bytes{scope="pod_bytes"}`, `acpod_refused_total{kind="conn",scope="outbound_bytes"} 1`, "go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "conn-1") {
		t.Error("a name became a label")
	}
	s := sums{}
	for n := range 10 * maxSeries {
		s.add(descActors, 1, "kind", strings.Repeat("x", n+1))
	}
	if len(s) > maxSeries+1 || s[series{descActors, "other", "other"}] == 0 {
		t.Errorf("%d series", len(s))
	}
}

func TestProfilesAreServedOneAtATime(t *testing.T) {
	i, _, h := house(t, Options{})
	w := get(t, h, "/debug/pprof/goroutine?debug=1")
	if body, _ := io.ReadAll(w.Body); w.Code != http.StatusOK || !strings.Contains(string(body), "goroutine profile") {
		t.Errorf("%d %s", w.Code, body)
	}
	if w := get(t, h, "/debug/pprof/profile?seconds=1e9"); w.Code != http.StatusBadRequest {
		t.Errorf("a profile of years: %d", w.Code)
	}
	first := make(chan int)
	go func() { first <- get(t, h, "/debug/pprof/trace?seconds=0.5").Code }()
	kerneltest.Eventually(t, "one is being made", func() bool { return len(i.profiles) == 1 })
	if w := get(t, h, "/debug/pprof/heap"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("a second one at once: %d", w.Code)
	}
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	if w := get(t, h, "/debug/pprof/heap"); w.Code != http.StatusOK {
		t.Errorf("after it: %d", w.Code)
	}
}

func TestATraceIsHeldUpToItsBound(t *testing.T) {
	_, _, h := house(t, Options{})
	if w := get(t, h, "/debug/pprof/trace?seconds=0.05"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "go 1.") {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
	c := &capped{full: make(chan struct{})}
	piece := make([]byte, 1<<20)
	for range traceBytes>>20 + 10 {
		if n, err := c.Write(piece); n != len(piece) || err != nil { // an error would end the runtime's reader for good
			t.Fatal(n, err)
		}
	}
	select {
	case <-c.full:
	default:
		t.Error("it is not full")
	}
	if c.size > traceBytes || len(c.pieces) != traceBytes>>20 {
		t.Errorf("%d bytes in %d pieces", c.size, len(c.pieces))
	}
}
