package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// linked gives the client's side of a link and the pod's.
func linked(t *testing.T, plan Plan) (*Link, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l, err := Dial(t.Context(), listener.Addr().String(), plan)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Reset(); l.Wait(); pod.Close() })
	deadline := time.Now().Add(patience)
	_ = pod.SetDeadline(deadline)
	_ = l.SetDeadline(deadline)
	return l, pod
}

func read(t *testing.T, from io.Reader, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBytesAndEndsPass(t *testing.T) {
	l, pod := linked(t, Plan{Delay: time.Millisecond})
	sent := bytes.Repeat([]byte("0123456789"), 20_000)
	go func() { _, _ = l.Write(sent) }()
	if got := read(t, pod, len(sent)); !bytes.Equal(got, sent) {
		t.Error("what came to the pod is not what was sent")
	}
	if _, err := pod.Write([]byte("back")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, l, 4); string(got) != "back" {
		t.Errorf("%q came back", got)
	}
	pod.Close()
	if _, err := l.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the pod's end the client reads %v", err)
	}
	select {
	case <-l.PodLeft():
	case <-time.After(patience):
		t.Error("the pod's end is not told")
	}
}

func TestACutComesInTheMiddleAndIsAReset(t *testing.T) {
	l, pod := linked(t, Plan{CutAfter: 100})
	go func() { _, _ = l.Write(make([]byte, 1000)) }()
	got, err := io.ReadAll(pod)
	if !errors.Is(err, syscall.ECONNRESET) || len(got) > 100 {
		t.Errorf("the pod read %d bytes and %v, want at most 100 and a reset", len(got), err)
	}
}

func TestASilentLinkPassesNothingAndNoEnd(t *testing.T) {
	l, pod := linked(t, Plan{})
	if _, err := l.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	read(t, pod, 1)
	l.Silence()
	if _, err := l.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	_ = l.Conn.(*net.TCPConn).CloseWrite()
	_ = pod.SetReadDeadline(time.Now().Add(600 * time.Millisecond))
	// A piece that was under way when the silence began may still arrive; the end never does.
	for {
		_, err := pod.Read(make([]byte, 64))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatalf("the pod learnt of an end: %v", err)
		}
	}
	if _, err := pod.Write(make([]byte, 1<<20)); err != nil {
		t.Fatalf("the pod's bytes are to disappear: %v", err)
	}
	pod.Close()
	select {
	case <-l.PodLeft():
	case <-time.After(patience):
		t.Error("that the pod gave it up is not told")
	}
}

func TestAThrottledLinkIsSlow(t *testing.T) {
	l, pod := linked(t, Plan{BytesPerS: 20_000})
	begun := time.Now()
	go func() { _, _ = l.Write(make([]byte, 40_000)) }()
	read(t, pod, 40_000)
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("40,000 bytes took %s at 20,000 a second", took)
	}
}
