package clientcheck

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// door lets one client in at a time.
type door struct {
	key     string
	events  events
	address string

	taken atomic.Bool // a socket is open
	shut  atomic.Bool // nobody is let in, as by a pod that starts again

	server  *http.Server
	serving sync.WaitGroup
	readers sync.WaitGroup // of sockets; started by the run
}

// openDoor serves on a listener until it is left.
func openDoor(ctx context.Context, listener net.Listener, key string) *door {
	d := &door{key: key, events: events{ctx, make(chan event)}, address: listener.Addr().String()}
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	d.serving.Go(func() { _ = d.server.Serve(listener) })
	return d
}

// leave closes the listener. All sockets have to be closed, and the context ended.
func (d *door) leave() {
	_ = d.server.Close()
	d.serving.Wait()
	d.readers.Wait()
}

// free lets the next one in.
func (d *door) free() { d.taken.Store(false) }

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/acp" && !has(r.Header, "Upgrade", "websocket") { // a page that was typed, a probe
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			http.NotFound(w, r)
		}
		return
	}
	e := judgeUpgrade(r, d.key)
	if e.status == http.StatusSwitchingProtocols && (d.shut.Load() || !d.taken.CompareAndSwap(false, true)) {
		w.Header().Set("Retry-After", "1")
		e.refuse(http.StatusServiceUnavailable, "no place at the moment")
	}
	if !d.events.tell(event{what: attempted, entry: e, at: time.Now()}) {
		return
	}
	if e.status != http.StatusSwitchingProtocols {
		if e.status == http.StatusUpgradeRequired {
			w.Header().Set("Upgrade", "websocket")
		}
		http.Error(w, e.text, e.status)
		return
	}
	s, err := upgrade(w, r, e, d.events)
	if err != nil {
		d.free()
		return
	}
	if e.wrongKey {
		_ = s.close(time.Second, 4401, "wrong key")
		_ = s.conn.Close()
		d.free()
		return
	}
	if !d.events.tell(event{what: opened, socket: s, entry: e}) { // the run starts its reader
		_ = s.conn.Close()
	}
}
