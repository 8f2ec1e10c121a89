package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// silentSockets is how many sockets that never say anything stand before the door.
const silentSockets = 2000

// floods opens that many sockets to the pod with some words, or none, and leaves them open until the end of the test;
// last is when the last one came so far.
func floods(t *testing.T, p *pod, n int, words string) (opened, last *atomic.Int64, over *sync.WaitGroup) {
	t.Helper()
	opened, last, over = &atomic.Int64{}, &atomic.Int64{}, &sync.WaitGroup{}
	var mu sync.Mutex
	var conns []net.Conn
	for range 4 {
		over.Go(func() {
			for range n / 4 {
				conn, err := net.DialTimeout("tcp", p.Public, patience)
				if err != nil {
					continue // the backlog is full for a moment
				}
				mu.Lock()
				conns = append(conns, conn)
				mu.Unlock()
				opened.Add(1)
				last.Store(time.Now().UnixNano())
				if words != "" {
					_, _ = io.WriteString(conn, words)
				}
			}
		})
	}
	t.Cleanup(func() {
		over.Wait()
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	return opened, last, over
}

// worksAmong has a client come, open a session and work, and come again, for as long as there are others in its way.
func worksAmong(t *testing.T, p *pod, over *sync.WaitGroup, within time.Duration) {
	t.Helper()
	done := make(chan struct{})
	go func() { over.Wait(); close(done) }()
	for after := 0; after < 3; {
		select {
		case <-done:
			after++
		default:
		}
		began := time.Now()
		var e *extension
		eventually(t, "a way in", func() bool {
			var err error
			e, _, err = tryDial(t, p)
			return err == nil
		})
		if took := time.Since(began); took > within {
			t.Errorf("a client that speaks waited %v", took)
		}
		e.hello()
		session := e.newSession()
		e.call("session/list", object{})
		e.call("session/close", object{"sessionId": session})
		e.hangUp()
	}
}

// Two thousand connections that never send a request, against a listener with room for a fifth of them: who sends one is served.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"nothing": "", "half a head": "GET /acp HTTP/1.1\r\nHost: local"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, with(baseConfig, "agent.driver", `"none"`, "limits.connections", "128", "limits.handshakes", "64"))
			witness := dial(t, p)
			witness.hello()
			began := time.Now()
			opened, last, over := floods(t, p, silentSockets, words)
			worksAmong(t, p, over, 40*time.Second)
			if opened.Load() < silentSockets*9/10 {
				t.Fatalf("only %d came", opened.Load())
			}
			public, _ := p.tree().find("/public")
			least := int64(1)
			if took := time.Unix(0, last.Load()).Sub(began); took < 9*time.Second {
				least = 1000 // nobody was closed for its time
			}
			if public.Refused["http_displaced"] < least || public.Refused["http_connections"] != 0 {
				t.Errorf("the tree shows %v", public.Refused)
			}
			witness.call("session/list", object{})
			response, err := http.Get("http://" + p.Public + "/healthz")
			if err != nil || response.StatusCode != 200 {
				t.Fatalf("healthz: %v %v", response, err)
			}
			_ = response.Body.Close()
			witness.hangUp()
			p.rest()
			p.slotsAtRest()
		})
	}
}

// A connection without a request is closed after ten seconds, whether there is need of its place or not.
func TestAConnectionWithoutARequestIsClosed(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	conn, err := net.Dial("tcp", p.Public)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	_ = conn.SetReadDeadline(began.Add(patience))
	if _, err := conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("it is still open: %v", err)
	}
	if took := time.Since(began); took < 8*time.Second {
		t.Errorf("it was closed after %v", took)
	}
}

// Two thousand WebSockets that never say initialize, against a pod that takes 64 handshakes at once: who says it gets in, and
// works as if there were nobody else.
func TestSilentWebSocketsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`, "limits.connections", "1000", "limits.handshakes", "64"))
	witness := dial(t, p)
	witness.hello()
	_, _, over := floods(t, p, silentSockets, comesIn+"\r\n")
	worksAmong(t, p, over, 40*time.Second)
	for range 3 { // and when all of them are there already
		_, _, over = floods(t, p, 200, comesIn+"\r\n")
		worksAmong(t, p, over, 40*time.Second)
	}
	if n := p.inUse("handshakes"); n > 64 {
		t.Errorf("%d handshakes are in flight", n)
	}
	gateway, _ := p.tree().find("/gateway")
	if gateway.Refused["handshake_displaced"] < 3 || gateway.Refused["handshakes"] < 1000 {
		t.Errorf("the tree shows %v", gateway.Refused)
	}
	witness.call("session/list", object{})
	witness.hangUp()
}
