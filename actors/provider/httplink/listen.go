package httplink

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// listenAnew opens the stream by which the server says what belongs to no request, once it has taken notifications/initialized.
// Of one session there is one.
func (l *httpLink) listenAnew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up || l.modern {
		return
	}
	l.unlistenLocked()
	ctx, cancel := context.WithCancel(l.ctx)
	l.unlisten = cancel
	l.running.Go(func() { l.listen(ctx) })
}

func (l *httpLink) unlistenLocked() {
	if l.unlisten != nil {
		l.unlisten()
		l.unlisten = nil
	}
}

// listen reads that stream, and opens it again when it ends, until the server says that it has none (405) or the session is over.
func (l *httpLink) listen(ctx context.Context) {
	var m mark
	for fruitless := 0; ; {
		begun := time.Now()
		last := m.id
		err := l.listenOnce(ctx, &m)
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

func (l *httpLink) listenOnce(ctx context.Context, m *mark) error {
	room, err := acquire(ctx, l.to.Account(), exchangeBytes)
	if err != nil {
		return err
	}
	defer room.Release()
	resp, end, err := l.get(ctx, l.where(), m.id)
	if err != nil {
		return err
	}
	defer end()
	return l.hear(ctx, resp, m, nil)
}

// hear hands on what a stream brings that belongs to no one request, until it ends. first, unless nil, is given each event before, and
// says whether that was all. An event that does not fit is counted and skipped.
func (l *httpLink) hear(ctx context.Context, resp *http.Response, m *mark, first func(name string, data []byte) (taken bool, err error)) error {
	r := newReader(resp.Body, l.to.Account(), l.limit())
	defer r.close()
	r.from(*m)
	defer func() { *m = r.mark() }()
	for {
		name, err := r.next(ctx, false)
		if loss, ok := errors.AsType[*lossError](err); ok && ctx.Err() == nil {
			l.to.Refused(scopeOfLoss(loss.cause))
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
