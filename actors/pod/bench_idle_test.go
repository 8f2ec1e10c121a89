package pod

import (
	"bufio"
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kerneltest"
)

// idler is a client that costs its own process next to nothing: a socket, no goroutine and no buffer.
type idler struct{ socket net.Conn }

// dialIdler connects, opens a session with one server, serves its tool list, and then leaves the socket alone.
func dialIdler(b *testing.B, address string) *idler {
	b.Helper()
	socket, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(socket.SetDeadline(time.Now().Add(kerneltest.Deadline)))
	_, err = fmt.Fprintf(socket, "GET /acp HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n", address)
	must(err)
	in := bufio.NewReader(socket)
	response, err := http.ReadResponse(in, nil)
	must(err)
	if response.StatusCode != http.StatusSwitchingProtocols {
		b.Fatal(response.Status)
	}
	must(writeFrame(socket, []byte(benchInitialize)))
	must(writeFrame(socket, fmt.Appendf(nil, benchNewSession, benchServer)))
	opened, ready := false, false
	for !opened || !ready {
		text, err := readFrame(in)
		must(err)
		var f answered
		must(json.Unmarshal(text, &f, json.MatchCaseInsensitiveNames(true)))
		if f.Error != nil {
			b.Fatalf("%s", text)
		}
		opened = opened || f.Method == "" && f.ID == 2
		ready = ready || f.ready()
		if reply := handshake(f); reply != nil {
			must(writeFrame(socket, replyHead, strconv.AppendInt(nil, int64(f.ID), 10), []byte(`,"result":`), reply, []byte("}")))
		}
	}
	must(socket.SetDeadline(time.Time{}))
	return &idler{socket}
}

// readFrame reads one whole text message of the server.
func readFrame(in *bufio.Reader) ([]byte, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	n := uint64(head[1])
	switch n {
	case 126:
		long := make([]byte, 2)
		if _, err := io.ReadFull(in, long); err != nil {
			return nil, err
		}
		n = uint64(binary.BigEndian.Uint16(long))
	case 127:
		return nil, fmt.Errorf("a frame that is longer than a handshake's")
	}
	if head[0] != 0x81 {
		return nil, fmt.Errorf("a frame that begins with %#x", head[0])
	}
	text := make([]byte, n)
	_, err := io.ReadFull(in, text)
	return text, err
}
