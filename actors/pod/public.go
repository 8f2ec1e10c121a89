package pod

import (
	"net/http"
	"sync/atomic"

	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

// phase is what /readyz tells.
type phase struct{ ready atomic.Bool }

// publicHandler is everything on the public listener. acp decides alone about GET /acp; all else stands behind the door.
// page may be nil: then there is nothing at /.
func publicHandler(self kernel.Ref, rules door.Rules, acp, page http.Handler, p *phase) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.ready.Load() {
			plain(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		plain(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("/acp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", http.MethodGet)
		plain(w, http.StatusMethodNotAllowed, "open a WebSocket here with GET")
	})
	if page != nil {
		mux.Handle("GET /{$}", page)
		mux.Handle("GET /playground/", page)
	}
	guarded := rules.Guard(mux, refusalsOf(self))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/acp" {
			acp.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

func plain(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// refusalsOf counts what the door of a listener refuses at the actor that serves it.
func refusalsOf(self kernel.Ref) func(door.Reason) {
	return func(r door.Reason) { self.CountRefusal("door_" + string(r)) }
}
