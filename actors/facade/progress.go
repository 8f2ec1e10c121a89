package facade

import (
	"bytes"
	"sync"
)

// progressQueue is how many notes wait for a client; more are dropped, as the next one says more than the one before.
const progressQueue = 16

// longestProgress is the longest note that is passed on, in bytes. A note says how far a call is and has a line of text.
const longestProgress = 4 << 10

// progress passes the notes of one call on as events. The response becomes a stream with the first of them; a call
// without any is answered as a plain response. It has one goroutine, which ends before close returns.
type progress struct {
	paced   *pacedWriter
	token   []byte
	notes   chan []byte
	ended   chan struct{}
	closing sync.Once

	// streaming and err belong to the goroutine until ended is closed.
	streaming bool
	err       error
}

func startProgress(p *pacedWriter, token []byte) *progress {
	pr := &progress{paced: p, token: bytes.Clone(token), notes: make(chan []byte, progressQueue), ended: make(chan struct{})}
	go pr.write()
	return pr
}

// offer takes one note. It runs on the turn of a source: it copies and never blocks. A note after the end is dropped.
func (p *progress) offer(params []byte) {
	if len(params) > longestProgress {
		return
	}
	select {
	case <-p.ended:
	case p.notes <- bytes.Clone(params):
	default:
	}
}

func (p *progress) write() {
	defer close(p.ended)
	for params := range p.notes {
		if params == nil {
			return
		}
		note, ok := progressNote(params, p.token)
		if !ok || p.err != nil {
			continue
		}
		if !p.streaming {
			p.streaming = true
			p.err = startStream(p.paced)
		}
		if p.err == nil {
			p.err = sendEvent(p.paced, note)
		}
	}
}

// close ends the goroutine; what waits is still written. The nil note is the end: the channel itself is not closed, since
// a source may offer at any time.
func (p *progress) close() {
	p.closing.Do(func() { p.notes <- nil })
	<-p.ended
}

// respond implements responder.
func (p *progress) respond(a answer) error {
	p.close()
	switch {
	case p.err != nil:
		return p.err
	case p.streaming:
		return sendEvent(p.paced, a)
	}
	return p.paced.respond(a)
}
