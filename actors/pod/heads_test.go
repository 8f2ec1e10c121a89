package pod

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kerneltest"
)

// A head costs by its lines as much as by its bytes, and nobody has paid for it yet.
func TestAHeadOfTooManyLinesOrBytesIsRefusedByEveryListener(t *testing.T) {
	s := startPod(t, quietConfig)
	lines := func(n, size int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("a", size))
		}
		return b.String()
	}
	for _, address := range []string{s.at.Public, s.at.Facade, s.at.Debug} {
		for name, row := range map[string]struct {
			head    string
			refused bool
		}{
			"an ordinary head":   {lines(30, 50), false},
			"too many lines":     {lines(headerLines+1, 1), true},
			"too many bytes":     {lines(50, (headerBytes+8<<10)/50), true},
			"one line too large": {lines(1, headerBytes+8<<10), true},
		} {
			socket, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_ = socket.SetDeadline(time.Now().Add(kerneltest.Deadline))
			_, _ = fmt.Fprintf(socket, "GET /nowhere HTTP/1.1\r\nHost: %s\r\n%s\r\n", address, row.head)
			response, err := http.ReadResponse(bufio.NewReader(socket), nil)
			if err != nil {
				t.Errorf("%s, %s: %v", address, name, err)
			} else if got := response.StatusCode == http.StatusRequestHeaderFieldsTooLarge; got != row.refused {
				t.Errorf("%s, %s: %s", address, name, response.Status)
			}
			_ = socket.Close()
		}
	}
	s.signals <- syscall.SIGTERM
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
