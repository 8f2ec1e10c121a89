package scale

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/lxzan/gws"
)

// EchoAt says where an echo server listens.
type EchoAt struct {
	Echo  string `json:"echo"`  // host:port of the WebSocket
	Debug string `json:"debug"` // host:port; GET / collects garbage and answers with a Runtime
}

// ServeEcho is the least server that could stand in the pod's place: gws as it comes, and each message goes back to where it came
// from. It calls ready when it listens and returns when the context ends; sockets that are open then stay so until their clients
// end them. It is meant to be a process of its own.
func ServeEcho(ctx context.Context, ready func(EchoAt) error) error {
	echoes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	figures, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = echoes.Close()
		return err
	}
	debug := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r := ownRuntime()
		_, _ = fmt.Fprintf(w, `{"heap_bytes":%d,"stack_bytes":%d,"goroutines":%d}`, r.Heap, r.Stacks, r.Goroutines)
	})}
	upgrader := gws.NewUpgrader(echo{}, &gws.ServerOption{})
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if socket, err := upgrader.Upgrade(w, r); err == nil {
			go socket.ReadLoop() // ends with its client
		}
	})}
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	serving.Go(func() { failed <- debug.Serve(figures) })
	serving.Go(func() { failed <- server.Serve(echoes) })
	err = ready(EchoAt{echoes.Addr().String(), figures.Addr().String()})
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	_, _ = server.Close(), debug.Close()
	serving.Wait()
	return err
}

type echo struct{ gws.BuiltinEventHandler }

// OnMessage implements gws.Event.
func (echo) OnMessage(socket *gws.Conn, message *gws.Message) {
	_ = socket.WriteMessage(message.Opcode, message.Bytes())
	_ = message.Close()
}

// ownRuntime collects garbage and gives the figures of this process.
func ownRuntime() Runtime {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Runtime{int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine())}
}
