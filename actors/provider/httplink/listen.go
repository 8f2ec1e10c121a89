package httplink

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
)

// Bounds of the wait for the server's own stream, before requests go.
const (
	askTimeout = 2 * time.Second        // until it was asked for
	askGrace   = 100 * time.Millisecond // then, for its head: there are servers that write it with the first event
)

// listenAnew opens the stream by which the server says what belongs to no request, once it has taken notifications/initialized.
// Of one session there is one. It waits until the server was asked for it: what a server would say by a stream that is not there yet, a
// question during a call even, it says to nobody.
func (l *httpLink) listenAnew() {
	asked := make(chan struct{})
	l.mu.Lock()
	if !l.up || l.modern {
		l.mu.Unlock()
		return
	}
	l.unlistenLocked()
	ctx, cancel := context.WithCancel(l.ctx)
	l.unlisten = cancel
	l.running.Go(func() { l.listen(ctx, sync.OnceFunc(func() { close(asked) })) })
	l.mu.Unlock()
	late := time.NewTimer(askTimeout)
	defer late.Stop()
	select {
	case <-asked:
	case <-late.C:
	case <-ctx.Done():
	}
}

func (l *httpLink) unlistenLocked() {
	if l.unlisten != nil {
		l.unlisten()
		l.unlisten = nil
	}
}

// listen reads that stream, and opens it again when it ends, until the server says that it has none (405) or the session is over.
// asked is called when the server was asked for the first, at the latest when that came to nothing.
func (l *httpLink) listen(ctx context.Context, asked func()) {
	var m mark
	for fruitless, first := 0, true; ; first = false {
		begun := time.Now()
		last := m.id
		err := l.listenOnce(ctx, &m, first, asked)
		switch {
		case ctx.Err() != nil:
			return
		case isFinal(err):
			return
		case m.id != last || time.Since(begun) >= longStream:
			fruitless = 0
		default:
			fruitless++
		}
		if m.lost {
			m.id, m.lost = "", false
			l.to.Refused("long_event_id")
		}
		if !wait(ctx, m.pause(fruitless)) {
			return
		}
	}
}

// listenOnce reads it once. One that is not the first, and takes up nothing where it ended, leaves a gap: what the server said meanwhile is
// lost.
func (l *httpLink) listenOnce(ctx context.Context, m *mark, first bool, asked func()) error {
	defer asked()
	room, err := acquire(ctx, l.to.Account(), exchangeBytes)
	if err != nil {
		return err
	}
	defer room.Release()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { time.AfterFunc(askGrace, asked) },
	})
	stream, err := l.get(traced, l.where(), m.id)
	if err != nil {
		return err
	}
	defer stream.Close()
	asked()
	if who, ok := l.to.(link.Listener); ok && !first && m.id == "" {
		who.Missed()
	}
	return l.hear(ctx, stream, m, nil)
}

// hear hands on what a stream brings that belongs to no one request, until it ends. first, unless nil, is given each event before, and
// says whether that was all. An event that does not fit is counted and skipped.
func (l *httpLink) hear(ctx context.Context, stream io.Reader, m *mark, first func(name string, data []byte) (taken bool, err error)) error {
	r := newReader(stream, l.to.Account(), l.limit())
	defer r.close()
	r.from(*m)
	defer func() { *m = r.mark() }()
	for {
		name, err := r.next(ctx, -1)
		if loss, ok := errors.AsType[*lossError](err); ok && ctx.Err() == nil {
			l.passesBy(loss, nil)
			continue
		}
		if err != nil {
			return err
		}
		frame, lease := r.data.take()
		if first != nil {
			if taken, err := first(name, frame); taken || err != nil {
				lease.Release()
				if err != nil {
					return err
				}
				continue
			}
		}
		if !l.isMessage(name, frame) {
			lease.Release()
			continue
		}
		l.deliver(ctx, frame, lease, nil)
	}
}
