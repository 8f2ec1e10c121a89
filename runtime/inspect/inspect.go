package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/acpod/acpod/runtime/kernel"
)

// Figure is one number of the pod as a whole, shown in the tree's `pod` object under Name and as the gauge acpod_pod_<Name>.
type Figure struct {
	Name  string // lower case with underscores; a word of the code
	Value int64
}

// Counter is one number that only grows, counted by a part of the pod. Label is a word of the code such as "reason", empty for a
// counter without one; Is is its value, from a closed set, never a name or anything that a peer chose.
type Counter struct {
	Name, Help string // Name as Prometheus wants it, with _total at its end
	Label, Is  string
	Value      int64
}

// Options of an inspector. Walk is needed, the rest may be zero.
type Options struct {
	// Walk goes through the tree; it is called on the goroutine of each request and must not need a turn of any actor.
	Walk Walk
	// Figures are the pod's own numbers. root comes with its children, and of what is below them with the number only (Kids).
	Figures func(root kernel.Node) []Figure
	// Counters are what parts of the pod have counted so far; nil = none. It is called once a scrape and must not block.
	Counters func() []Counter
	// Refusals are all refusals so far, by kind and scope, none of which ever falls; nil = none. Made for kernel.Kernel.Refusals.
	Refusals func() []kernel.Refusal
	// Flight is the recorder behind /debug/flight; nil = off.
	Flight *Flight
	// AuthKey is the bearer token that everything but the page's files asks for; empty = none.
	AuthKey string
	// Version is a label of acpod_build_info.
	Version string
	// Now is the kernel's clock; nil = time.Now.
	Now func() time.Time
}

// Inspector serves one kernel. Its methods are safe from any goroutine.
type Inspector struct {
	opts   Options
	key    [sha256.Size]byte
	events *events
	meters *meters
	trees  chan struct{} // a place for each tree that is being written
	// profiles has a place for the profile that is being made.
	profiles chan struct{}
}

// New prepares an inspector; it starts nothing.
func New(o Options) *Inspector {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Figures == nil {
		o.Figures = func(kernel.Node) []Figure { return nil }
	}
	if o.Counters == nil {
		o.Counters = func() []Counter { return nil }
	}
	if o.Refusals == nil {
		o.Refusals = func() []kernel.Refusal { return nil }
	}
	i := &Inspector{opts: o, key: sha256.Sum256([]byte(o.AuthKey)), events: newEvents(), trees: make(chan struct{}, treesAtOnce), profiles: make(chan struct{}, 1)}
	i.meters = newMeters(i)
	return i
}

// Exited takes one end of a generation: it is made for kernel.Options.OnExit. It never blocks.
func (i *Inspector) Exited(e kernel.Exit) {
	i.events.ended(i.opts.Now(), e)
	i.meters.exited(e)
}

// Started takes one start of a generation: it is made for kernel.Options.OnStart. It never blocks.
func (i *Inspector) Started(s kernel.Started) { i.events.started(i.opts.Now(), s) }

// Close ends all streams of events, so that a server that serves them can shut down. Later ones end at once.
func (i *Inspector) Close() { i.events.close() }

// Handler serves everything.
func (i *Inspector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/debug/", http.StatusFound))
	mux.Handle("GET /debug/{$}", pageFile("index.html"))
	mux.Handle("GET /debug/page.js", pageFile("page.js"))
	mux.Handle("GET /debug/page.css", pageFile("page.css"))
	mux.Handle("GET /debug/tree", i.keyed(http.HandlerFunc(i.serveTree)))
	mux.Handle("GET /debug/tree/{path...}", i.keyed(http.HandlerFunc(i.serveTree)))
	mux.Handle("GET /debug/events", i.keyed(http.HandlerFunc(i.serveEvents)))
	mux.Handle("GET /debug/flight", i.keyed(http.HandlerFunc(i.serveFlight)))
	mux.Handle("GET /metrics", i.keyed(promhttp.HandlerFor(i.meters.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 30 * time.Second})))
	i.handleProfiles(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		// A profile takes as long as it was asked to; everything else has to be taken in time, and the stream of events sets its own.
		deadline := time.Now().Add(answerTimeout)
		if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			deadline = time.Time{}
		}
		_ = http.NewResponseController(w).SetWriteDeadline(deadline)
		mux.ServeHTTP(w, r)
	})
}

// answerTimeout is how long a client may take to read an answer.
const answerTimeout = 30 * time.Second

// keyed asks for the bearer token when there is one.
func (i *Inspector) keyed(next http.Handler) http.Handler {
	if i.opts.AuthKey == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := r.Header["Authorization"]
		ok := false
		if len(lines) == 1 {
			scheme, token, _ := strings.Cut(lines[0], " ")
			given := sha256.Sum256([]byte(strings.TrimSpace(token)))
			ok = strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], i.key[:]) == 1
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send debug.auth_key as Authorization: Bearer", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
