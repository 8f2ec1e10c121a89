package pod

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keptEvents is how many events of a pod are at hand.
const keptEvents = 2000

// ring keeps the last events of the pod's actors as they are told: "start {…}" or "exit {…}".
type ring struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	events []string
}

// watchEvents follows /debug/events until the pod is let go. A stream that is cut, as one that cannot keep up is, is taken up again.
func (p *Pod) watchEvents() {
	if p.debug == "" || p.ring != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.ring = &ring{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.ring.done)
		stream := &http.Client{Transport: &http.Transport{}}
		defer stream.CloseIdleConnections()
		for last := ""; ctx.Err() == nil; {
			p.follow(ctx, stream, &last)
			select {
			case <-ctx.Done():
			case <-p.ended:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
}

func (p *Pod) follow(ctx context.Context, client *http.Client, last *string) {
	request, err := p.request(ctx, "/debug/events")
	if err != nil {
		return
	}
	if *last != "" {
		request.Header.Set("Last-Event-ID", *last)
	}
	response, err := client.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for what := ""; lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			*last = value
		case "event":
			what = value
		case "data":
			p.ring.add(what + " " + value)
		}
	}
}

func (r *ring) add(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == keptEvents {
		r.events = append(r.events[:0], r.events[1:]...)
	}
	r.events = append(r.events, event)
}

func (r *ring) stop() {
	r.cancel()
	<-r.done
}

// Events are the last starts and exits of the pod's actors, oldest first; with words given, those that contain one of them.
func (p *Pod) Events(words ...string) []string {
	if p.ring == nil {
		return nil
	}
	p.ring.mu.Lock()
	defer p.ring.mu.Unlock()
	if len(words) == 0 {
		return append([]string(nil), p.ring.events...)
	}
	var found []string
	for _, event := range p.ring.events {
		for _, word := range words {
			if strings.Contains(event, word) {
				found = append(found, event)
				break
			}
		}
	}
	return found
}
