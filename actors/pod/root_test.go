package pod

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// part is a child of the root that tells when it starts and stops.
type part struct {
	name string
	tell func(string)
	fail error
}

func (p *part) Start(*kernel.Ctx) error {
	p.tell("start " + p.name)
	return p.fail
}
func (p *part) Receive(*kernel.Ctx, kernel.Msg) error { return nil }
func (p *part) Stop(*kernel.Ctx, error)               { p.tell("stop " + p.name) }

func TestRootStartsInOrderAndStopsInReverse(t *testing.T) {
	var mu sync.Mutex
	var told []string
	tell := func(s string) { mu.Lock(); told = append(told, s); mu.Unlock() }
	k := kernel.New(kernel.Options{})
	var children []child
	at := &place{}
	if !at.find().IsZero() {
		t.Error("a place is found before anybody is there")
	}
	names := []string{"audit", "debug", "gateway", "sessions"}
	for _, name := range names {
		children = append(children, child{spec: kernel.Spec{Name: name, Restart: kernel.Permanent, New: func() kernel.Behavior { return &part{name: name, tell: tell} }}})
	}
	children[3].at = at
	if _, err := k.Root(rootSpec(children)); err != nil {
		t.Fatal(err)
	}
	kerneltest.Eventually(t, "all run", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == len(names) })
	kerneltest.Eventually(t, "the place is known", func() bool { return at.find().Path() == "pod/sessions" })
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Deadline)
	defer cancel()
	if report := k.Shutdown(ctx); !report.Empty() {
		t.Fatal(report)
	}
	var stops []string
	for _, s := range told {
		if name, ok := strings.CutPrefix(s, "stop "); ok {
			stops = append(stops, name)
		}
	}
	slices.Reverse(stops)
	if !slices.Equal(stops, names) {
		t.Errorf("stopped in the order %v, reversed", stops)
	}
}

func TestRootThatGivesUpLogsTheTree(t *testing.T) {
	log := &kerneltest.Log{}
	k := kernel.New(kernel.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	spec := kernel.Spec{
		Name: "gateway", Restart: kernel.Permanent, Backoff: kernel.Backoff{Min: time.Microsecond, Max: time.Millisecond},
		New: func() kernel.Behavior {
			return &part{name: "gateway", tell: func(string) {}, fail: errors.New("the cause of it all")}
		},
	}
	calm := kernel.Spec{Name: "audit", New: func() kernel.Behavior { return &part{name: "audit", tell: func(string) {}} }}
	if _, err := k.Root(rootSpec([]child{{spec: calm}, {spec: spec}})); err != nil {
		t.Fatal(err)
	}
	select {
	case <-k.Done():
	case <-time.After(kerneltest.Deadline):
		t.Fatal("the root does not give up")
	}
	var intensity *kernel.IntensityError
	if !errors.As(k.Cause(), &intensity) {
		t.Errorf("cause: %v", k.Cause())
	}
	text := log.String()
	at := strings.Index(text, "the pod gives up")
	if at < 0 || !strings.Contains(text[at:], "the cause of it all") || !strings.Contains(text[at:], `\"path\":\"pod/audit\"`) {
		t.Errorf("the log does not tell it:\n%s", text)
	}
}

type crash struct{}

// crashing lets a test end a generation of a server from within.
type crashing struct{ server }

func (s *crashing) Receive(c *kernel.Ctx, m kernel.Msg) error {
	if _, ok := m.(crash); ok {
		return errors.New("asked to")
	}
	return s.server.Receive(c, m)
}

func TestServerOfALaterGenerationServesTheSameSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := door.NewSocket(l)
	if err != nil {
		t.Fatal(err)
	}
	k := kerneltest.Start(t, kernel.Options{})
	defer func() { _ = socket.Close() }()
	root, _ := kerneltest.Root(t, k)
	stopped := make(chan struct{}, 4)
	cfg := serverConfig{
		name: "public", socket: socket, connections: 16, writeTimeout: time.Minute,
		handler: func(self kernel.Ref) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, self.Path()) })
		},
		stopping: func() { stopped <- struct{}{} },
		attrs:    map[string]any{"keyed": false},
	}
	spec := serverSpec(cfg)
	spec.Backoff = kernel.Backoff{Min: time.Microsecond, Max: time.Millisecond}
	spec.New = func() kernel.Behavior { return &crashing{server{cfg: cfg}} }
	ref := kerneltest.Spawn(t, root, spec)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: kerneltest.Deadline}
	get := func() string {
		t.Helper()
		response, err := client.Get("http://" + socket.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := get(); got != ref.Path() {
		t.Errorf("%q", got)
	}
	if err := ref.Tell(crash{}); err != nil {
		t.Fatal(err)
	}
	<-ref.Done()
	if got := get(); got != ref.Path() || ref.Current().Gen() == ref.Gen() {
		t.Errorf("%q of generation %d", got, ref.Current().Gen())
	}
	<-stopped
}
