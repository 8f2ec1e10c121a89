package inspect

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/acpod/acpod/runtime/kernel"
)

// maxSeries bounds the label pairs that one scrape takes from the tree. Kinds and scopes are words of the code, so this is
// never reached unless somebody makes one of what a peer chose; then the rest is counted under "other".
const maxSeries = 256

var (
	descActors  = desc("acpod_actors", "Living actors.", "kind", "state")
	descQueueN  = desc("acpod_queue_messages", "Messages waiting in mailboxes.", "kind")
	descQueueB  = desc("acpod_queue_bytes", "Bytes of the messages waiting in mailboxes.", "kind")
	descOldest  = desc("acpod_queue_oldest_seconds", "Age of the message that waits longest.", "kind")
	descTurn    = desc("acpod_turn_longest_seconds", "Age of the turn that runs longest.", "kind")
	descOwed    = desc("acpod_obligations", "Obligations in the book of the kernel.", "kind")
	descUsed    = desc("acpod_account_used_bytes", "Bytes charged to accounts, summed over the accounts of a scope.", "scope")
	descLimit   = desc("acpod_account_limit_bytes", "Largest limit of an account of the scope.", "scope")
	descFullest = desc("acpod_account_fullest_ratio", "Use of the fullest account of the scope, 0 to 1.", "scope")
	descRefused = desc("acpod_refused_total", "Refusals of all actors since the start.", "kind", "scope")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// meters is a registry of its own: the process's default one holds what libraries put there.
type meters struct {
	registry *prometheus.Registry
	exits    *prometheus.CounterVec
	restarts *prometheus.CounterVec
}

func newMeters(i *Inspector) *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		exits:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acpod_exits_total", Help: "Generations that ended."}, []string{"kind", "outcome"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acpod_restarts_total", Help: "Generations that follow another."}, []string{"kind"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "acpod_build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": i.opts.Version, "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build, m.exits, m.restarts, &treeCollector{i},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *meters) exited(e kernel.Exit) {
	outcome := "ended"
	switch {
	case e.Abandoned:
		outcome = "abandoned"
	case e.Crashed:
		outcome = "crashed"
	}
	m.exits.WithLabelValues(e.Kind, outcome).Inc()
	if e.Next != 0 {
		m.restarts.WithLabelValues(e.Kind).Inc()
	}
}

// treeCollector reads the tree once a scrape.
type treeCollector struct{ i *Inspector }

// Describe implements prometheus.Collector. Saying nothing makes it unchecked: the figures of the pod are not known beforehand.
func (t *treeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (t *treeCollector) Collect(out chan<- prometheus.Metric) {
	now := t.i.opts.Now()
	s := sums{}
	var scopes []string // on the way to the node, the root's first
	t.i.opts.Walk(func(n kernel.Node, depth int) bool {
		// A node without an account of its own shows its parent's.
		own := depth == 0 || scopes[depth-1] != n.Account.Scope
		scopes = append(scopes[:depth], n.Account.Scope)
		kind := n.Kind
		s.add(descActors, 1, kind, n.State)
		s.add(descQueueN, float64(n.Queue.N), kind)
		s.add(descQueueB, float64(n.Queue.Bytes), kind)
		s.add(descOwed, float64(len(n.Owes)), kind)
		s.atLeast(descOldest, float64(passed(now, n.Queue.Oldest))/1000, kind)
		if n.Doing != nil {
			s.atLeast(descTurn, float64(passed(now, n.Doing.Since))/1000, kind)
		}
		if !own || n.Account.Scope == "" {
			return true
		}
		s.add(descUsed, float64(n.Account.Used), n.Account.Scope)
		s.atLeast(descLimit, float64(n.Account.Limit), n.Account.Scope)
		if n.Account.Limit > 0 {
			s.atLeast(descFullest, float64(n.Account.Used)/float64(n.Account.Limit), n.Account.Scope)
		}
		return true
	})
	for at, v := range s {
		labels := []string{at.a, at.b}
		if at.b == "" {
			labels = labels[:1]
		}
		out <- prometheus.MustNewConstMetric(at.desc, prometheus.GaugeValue, v, labels...)
	}
	for _, r := range t.i.opts.Refusals() { // bounded by the kernel
		out <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(r.Count), r.Kind, r.Scope)
	}
	for _, c := range t.i.opts.Counters() {
		if c.Label == "" {
			out <- prometheus.MustNewConstMetric(desc(c.Name, c.Help), prometheus.CounterValue, float64(c.Value))
			continue
		}
		out <- prometheus.MustNewConstMetric(desc(c.Name, c.Help, c.Label), prometheus.CounterValue, float64(c.Value), c.Is)
	}
	for _, figure := range t.i.opts.Figures(t.i.opts.Walk.shallow()) {
		out <- prometheus.MustNewConstMetric(desc("acpod_pod_"+figure.Name, "The pod as a whole; see /debug/tree."), prometheus.GaugeValue, float64(figure.Value))
	}
}

type series struct {
	desc *prometheus.Desc
	a, b string
}

type sums map[series]float64

func (s sums) at(d *prometheus.Desc, labels []string) series {
	at := series{desc: d, a: labels[0]}
	if len(labels) > 1 {
		at.b = labels[1]
	}
	if _, known := s[at]; !known && len(s) >= maxSeries {
		at.a = "other"
		if at.b != "" {
			at.b = "other"
		}
	}
	return at
}

func (s sums) add(d *prometheus.Desc, v float64, labels ...string) { s[s.at(d, labels)] += v }

func (s sums) atLeast(d *prometheus.Desc, v float64, labels ...string) {
	at := s.at(d, labels)
	s[at] = max(s[at], v)
}
