package conform

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// fakePod is a pod that knows nothing but initialize; what else it does is the test's.
type fakePod struct {
	gws.BuiltinEventHandler
	answer func(c *gws.Conn, f jsonrpc.Frame) bool // true: it was dealt with
}

// startFake serves a fake pod and gives its address. It is gone, with all its connections, when the test ends.
func startFake(t *testing.T, answer func(c *gws.Conn, f jsonrpc.Frame) bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pod := &fakePod{answer: answer}
	upgrader := gws.NewUpgrader(pod, &gws.ServerOption{ReadMaxPayloadSize: 1 << 20, SubProtocols: []string{"acp.v1"}})
	var open sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r)
		if err != nil {
			return
		}
		mu.Lock()
		conns = append(conns, conn.NetConn())
		mu.Unlock()
		open.Add(1)
		go func() { defer open.Done(); conn.ReadLoop() }()
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		open.Wait()
	})
	return "ws://" + listener.Addr().String() + "/acp"
}

func (p *fakePod) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	f, _ := jsonrpc.Scan([]byte(strings.Clone(string(m.Bytes()))))
	switch {
	case p.answer != nil && p.answer(c, f):
	case f.Method == "initialize":
		_ = c.WriteString(string(jsonrpc.AppendResult(nil, f.ID, []byte(`{"protocolVersion":1,"agentInfo":{"name":"fake","version":"1"}}`))))
	case f.Kind == jsonrpc.Request:
		_ = c.WriteString(string(jsonrpc.AppendError(nil, f.ID, jsonrpc.UnknownMethod(f.Method))))
	}
}
