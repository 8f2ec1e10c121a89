package pod

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

func TestPublicListenerServesItsRoutesBehindTheDoor(t *testing.T) {
	acp := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	var now phase
	handler := publicHandler(kernel.Ref{}, door.Rules{Loopback: true}, acp, page, &now)
	bare := publicHandler(kernel.Ref{}, door.Rules{}, acp, nil, &now)
	for _, c := range []struct {
		name, method, path, host, origin string
		handler                          http.Handler
		ready                            bool
		status                           int
	}{
		{"alive", "GET", "/healthz", "localhost", "", handler, false, 200},
		{"alive while it drains", "HEAD", "/healthz", "localhost", "", handler, false, 200},
		{"not ready", "GET", "/readyz", "localhost", "", handler, false, 503},
		{"ready", "GET", "/readyz", "localhost", "", handler, true, 200},
		{"the page", "GET", "/", "localhost", "", handler, true, 202},
		{"no page", "GET", "/", "example.org", "", bare, true, 404},
		{"an upgrade", "GET", "/acp", "localhost", "", handler, true, 418},
		{"an upgrade is judged by acp alone", "GET", "/acp", "evil.example", "https://evil.example", handler, true, 418},
		{"no upgrade", "POST", "/acp", "localhost", "", handler, true, 405},
		{"HEAD is no upgrade", "HEAD", "/acp", "localhost", "", handler, true, 405},
		{"a foreign POST to acp", "POST", "/acp", "localhost", "https://evil.example", handler, true, 403},
		{"below acp is nothing of its own", "GET", "/acp/x", "evil.example", "", handler, true, 403},
		{"foreign host", "GET", "/healthz", "evil.example", "", handler, true, 403},
		{"foreign origin", "GET", "/", "localhost", "https://evil.example", handler, true, 403},
		{"foreign host, any method", "DELETE", "/healthz", "evil.example", "", handler, true, 403},
		{"other method", "DELETE", "/healthz", "localhost", "", handler, true, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			now.ready.Store(c.ready)
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%d, want %d", w.Code, c.status)
			}
			if c.status == 405 && c.path == "/acp" && w.Header().Get("Allow") != "GET" {
				t.Errorf("Allow: %q", w.Header().Get("Allow"))
			}
		})
	}
}
