package caller

import (
	"context"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// sending is when a request got its connection and when it was written. net/http tells it from goroutines of its own.
type sending struct {
	mu      sync.Mutex
	begun   time.Time // when the pod began to wait for it
	written time.Time // zero: not, or not whole
}

// born is a connection that knows when it was asked for: the pod's clock for its first request runs from then on, also when the
// connection first waits for a request that wants it.
type born struct {
	net.Conn
	at time.Time
}

func dial(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		at := time.Now()
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &born{conn, at}, nil
	}
}

// trace lets s follow the requests of a context.
func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.begun, s.written = time.Now(), time.Time{}
			if fresh, ok := info.Conn.(*born); ok && !info.Reused {
				s.begun = fresh.at
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if info.Err == nil {
				s.written = time.Now()
			}
		},
	})
}

// late tells whether the request was not written whole within d.
func (s *sending) late(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.IsZero() || s.written.Sub(s.begun) >= d
}
