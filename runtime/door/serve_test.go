package door

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A generation that is told to end answers what is open, and its successor serves the same socket.
func TestAGenerationEndsWithItsLastWordsAndLeavesTheSocket(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := NewSocket(listener)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	for generation := range 2 {
		begun, finish := make(chan struct{}), make(chan struct{})
		srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-finish
			_, _ = io.WriteString(w, "last words")
		})}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- socket.View(0, nil).Serve(ctx, srv, time.Minute) }()
		answer := make(chan string, 1)
		go func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
			response, err := client.Get("http://" + socket.Addr().String())
			if err != nil {
				answer <- err.Error()
				return
			}
			defer func() { _ = response.Body.Close() }()
			body, _ := io.ReadAll(response.Body)
			answer <- string(body)
		}()
		<-begun
		cancel()
		close(finish)
		if got := <-answer; got != "last words" {
			t.Errorf("generation %d: the open request got %q", generation, got)
		}
		if err := <-ended; err != nil {
			t.Errorf("generation %d was told to end and gave %v", generation, err)
		}
	}
	// A server that ends by itself says why.
	srv := &http.Server{ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- socket.View(0, nil).Serve(context.Background(), srv, time.Second) }()
	_ = listener.Close()
	if err := <-ended; err == nil {
		t.Error("a server whose listener was lost ended without a reason")
	}
}
