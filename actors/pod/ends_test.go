package pod

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// prepared is a pod with all that it composed, not started yet.
func prepared(t *testing.T) (*life, *kerneltest.Log, chan os.Signal) {
	t.Helper()
	loaded, err := config.LoadBytes("acpod.toml", []byte(quietConfig), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, log, signals := t.TempDir(), &kerneltest.Log{}, make(chan os.Signal, 2)
	if err := os.WriteFile(filepath.Join(home, "ready.json"), []byte(`{"public":"of a killed pod"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := prepare(Options{
		Config: loaded, Log: slog.New(slog.NewTextHandler(log, nil)), ReadyFile: filepath.Join(home, "ready.json"), Version: "v1",
		Executable: executable, Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, Signals: signals,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.ready.remove(); l.sockets.close(); l.ledger.close(); l.closeRecords() })
	return l, log, signals
}

func ends(t *testing.T, log *kerneltest.Log, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(kerneltest.Deadline):
		t.Fatalf("it does not end:\n%s", log)
		return nil
	}
}

// A permanent child that crashes again and again takes the pod down with it: a pod that only looks alive would be worse.
func TestPodWithAChildThatCannotLiveEndsWithAnErrorAndALastSnapshot(t *testing.T) {
	l, log, _ := prepared(t)
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	kerneltest.Eventually(t, "the ready file", func() bool { _, err := os.Stat(l.opts.ReadyFile); return err == nil })
	_ = l.sockets.public.Close() // whatever takes the listening socket away: no generation can serve it
	err := ends(t, log, ended)
	if err == nil || !strings.HasPrefix(err.Error(), "the pod gave up: ") || !strings.Contains(err.Error(), "public") {
		t.Errorf("ended with %v", err)
	}
	text := log.String()
	at := strings.Index(text, "the pod gives up")
	if at < 0 || !strings.Contains(text[at:], `\"path\":\"pod/gateway\"`) || !strings.Contains(text[:at], `msg="actor crashed" actor=pod/public`) {
		t.Errorf("no last snapshot:\n%s", text)
	}
}

func TestASignalBeforeThePodIsReadyStopsItWithoutAWordOfListening(t *testing.T) {
	l, log, signals := prepared(t)
	if _, err := os.Stat(l.opts.ReadyFile); !os.IsNotExist(err) {
		t.Errorf("a killed pod's ready file outlives the start: %v", err)
	}
	signals <- syscall.SIGTERM
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	if err := ends(t, log, ended); err != nil {
		t.Errorf("ended with %v", err)
	}
	if strings.Contains(log.String(), "listening") || !strings.Contains(log.String(), "msg=stopped") {
		t.Errorf("%s", log)
	}
	if _, err := os.Stat(l.opts.ReadyFile); !os.IsNotExist(err) {
		t.Errorf("there is a ready file: %v", err)
	}
}

func TestASecondSignalEndsWhateverIsWaitedFor(t *testing.T) {
	l, log, signals := prepared(t)
	forever, ended := make(chan struct{}), make(chan error, 1)
	defer close(forever)
	go func() { ended <- l.unlessSignalled(func() error { <-forever; return nil }) }()
	signals <- syscall.SIGINT
	if err := ends(t, log, ended); !errors.Is(err, ErrSecondSignal) {
		t.Errorf("%v", err)
	}
	if err := l.unlessSignalled(func() error { return errTest }); !errors.Is(err, errTest) {
		t.Errorf("%v", err)
	}
	if err := errors.Join(l.parent.Close(t.Context()), l.guardian.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

var errTest = errors.New("test")

// A peer that announces a body and sends none keeps its connection only for as long as a body may take.
func TestABodyThatNeverComesHoldsNoConnection(t *testing.T) {
	s := startPod(t, quietConfig)
	conns := map[string]net.Conn{}
	for _, at := range []string{s.at.Public, s.at.Debug} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintf(conn, "POST /nowhere HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\n\r\nx", at); err != nil {
			t.Fatal(err)
		}
		conns[at] = conn
	}
	for at, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout + kerneltest.Deadline))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is held", at)
		}
	}
	s.signals <- syscall.SIGTERM
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
