package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/pod"
)

// maxEvents is how many events of the actors concerned are told.
const maxEvents = 20

// evidence collects what can be seen of a breach while it is fresh, on a goroutine of its own: who sees a breach is in the middle of
// something.
type evidence struct {
	seed   uint64
	log    *slog.Logger
	flight string
	pods   func() []*pod.Pod
	queue  chan invariant.Breach
	done   chan struct{}
}

func newEvidence(o Options, pods func() []*pod.Pod) *evidence {
	e := &evidence{seed: o.Seed, log: o.Log, flight: o.Flight, pods: pods, queue: make(chan invariant.Breach, 64), done: make(chan struct{})}
	go func() {
		defer close(e.done)
		for breach := range e.queue {
			e.collect(breach)
		}
	}()
	return e
}

// breach is called with the first breach of each promise.
func (e *evidence) breach(b invariant.Breach) {
	select {
	case e.queue <- b:
	default: // there are not as many promises
	}
}

// close returns when all is told.
func (e *evidence) close() {
	close(e.queue)
	<-e.done
}

func (e *evidence) collect(b invariant.Breach) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	log := e.log.With("promise", string(b.Name))
	log.Error("a promise is broken", "how", b.Text, "seed", e.seed)
	for i, p := range e.pods() {
		tree, unread := p.Tree(ctx)
		var words []string
		for _, word := range b.Words {
			if word = actorOf(word, tree); word != "" {
				words = append(words, word)
			}
		}
		events, most := p.Events(words...), maxEvents
		if len(words) == 0 {
			most = maxEvents / 4 // of everybody: what happened last
		}
		for _, event := range events[max(0, len(events)-most):] {
			log.Error("an event of the actors concerned", "pod", i, "event", event)
		}
		if unread == nil {
			for _, word := range words {
				if node := tree.Find(word); node != nil {
					node.Children = nil
					log.Error("an actor concerned", "pod", i, "node", fmt.Sprintf("%+v", *node))
				}
			}
		}
		for _, line := range p.LogTail(5) {
			log.Error("the end of the pod's log", "pod", i, "line", line)
		}
		if e.flight == "" {
			continue
		}
		file := fmt.Sprintf("%s.%s.%d.flight", e.flight, b.Name, i)
		recording, err := p.Flight(ctx)
		if err == nil {
			err = os.WriteFile(file, recording, 0o644)
		}
		if err != nil {
			log.Error("there is no flight recording", "pod", i, "why", err)
		} else {
			log.Error("there is a flight recording, for go tool trace", "pod", i, "file", file)
		}
	}
}

// actorOf takes the name of an actor out of a word that may be a socket's name: "extension 3, socket 1 (conn ID)" is the connection with
// that id, as long as the tree has it. tree may be nil.
func actorOf(word string, tree *pod.Node) (name string) {
	_, rest, found := strings.Cut(word, "(conn ")
	if !found {
		return word[strings.LastIndexByte(word, '/')+1:]
	}
	id := strings.TrimSuffix(rest, ")")
	if tree != nil {
		tree.Each(func(n *pod.Node) {
			if n.Attrs["id"] == id {
				name = n.Name()
			}
		})
	}
	return name
}
