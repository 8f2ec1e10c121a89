package pod

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// A handler of the public or the debug listener that panics is answered, counted in the tree, and stands in the log with its stack
// at the level at which everybody logs; the server goes on.
func TestAPanicOfAServerIsNeverInvisible(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := door.NewSocket(listener)
	if err != nil {
		t.Fatal(err)
	}
	log := &kerneltest.Log{}
	k := kerneltest.Start(t, kernel.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))})
	parent, _ := kerneltest.Root(t, k)
	ref := kerneltest.Spawn(t, parent, serverSpec(serverConfig{name: "debug", socket: socket, connections: 8, handler: func(kernel.Ref) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/panics", func(http.ResponseWriter, *http.Request) { panic("boom") })
		mux.HandleFunc("/answers", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
		return mux
	}}))
	t.Cleanup(func() { _ = socket.Close() })
	for path, want := range map[string]int{"/panics": http.StatusInternalServerError, "/answers": http.StatusOK} {
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: kerneltest.Deadline}).Get("http://" + socket.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
	for _, want := range []string{"level=ERROR", "a request panicked", "server=debug", "boom", "server_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %.2000s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines for one panic", n)
	}
	var node kernel.Node
	for _, child := range k.Tree().Children {
		if child.Name == ref.Name() {
			node = child
		}
	}
	if node.Refused["panic"] != 1 || node.Restarts != 0 {
		t.Errorf("%+v", node)
	}
}
