package pod

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// late is a part of the pod that takes its time to start.
type late struct{ until <-chan struct{} }

func (l late) Start(c *kernel.Ctx) error {
	select {
	case <-l.until:
	case <-c.Context().Done():
	}
	return nil
}

func (late) Receive(*kernel.Ctx, kernel.Msg) error { return nil }

// A caller that finds the pod's address in its configuration asks as soon as the socket is there.
func TestWhoComesBeforeEverythingRunsWaitsAndIsServed(t *testing.T) {
	l, log, signals := prepared(t)
	started := make(chan struct{})
	l.children = append(l.children, child{spec: kernel.Spec{Name: "late", New: func() kernel.Behavior { return late{started} }}})
	addresses := l.sockets.addresses()
	answers := make(chan int, 2)
	for _, url := range []string{"http://" + addresses.Public + "/readyz", "http://" + addresses.Facade + "/nowhere"} {
		go func() {
			transport := &http.Transport{DisableKeepAlives: true}
			response, err := (&http.Client{Transport: transport, Timeout: kerneltest.Deadline}).Get(url)
			if err != nil {
				t.Error(err)
				answers <- 0
				return
			}
			_ = response.Body.Close()
			answers <- response.StatusCode
		}()
	}
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	kerneltest.Eventually(t, "the listeners", func() bool {
		running := 0
		for _, child := range l.kernel.Tree().Children {
			if (child.Name == "public" || child.Name == "facade") && child.State == "running" {
				running++
			}
		}
		return running == 2
	})
	select {
	case status := <-answers:
		t.Errorf("one is answered %d before everything runs", status)
		answers <- status
	case <-time.After(100 * time.Millisecond):
	}
	close(started)
	for range 2 {
		if status := <-answers; status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("one is answered %d", status)
		}
	}
	signals <- syscall.SIGTERM
	if err := ends(t, log, ended); err != nil {
		t.Error(err)
	}
}
