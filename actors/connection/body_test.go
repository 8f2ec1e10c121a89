package connection

import (
	"errors"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// TestABodyIsWrittenFromWhereItLies: what is large in a request is carried with its own lease, which pays at the connection
// until the frame is out.
func TestABodyIsWrittenFromWhereItLies(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	body := []byte(`{"a": "` + strings.Repeat("x", 600_000) + `"}`)
	lease, err := s.ref.Account().Acquire(int64(len(body)))
	must(t, err)
	idle := s.client.(*client).account.Used()
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message", Params: []byte(`{"p":`), Body: body, Tail: []byte("}"), Bytes: lease})
	c.expect(`{"jsonrpc":"2.0","id":1,"method":"mcp/message","params":{"p":` + string(body) + `}}`)
	kerneltest.Eventually(t, "the body is paid for no more", func() bool {
		return lease.Size() == 0 && s.client.(*client).account.Used() <= idle+askBytes+kernel.AnswerBytes
	})
}

// TestABodyThatFindsNoRoomStaysItsOwners: a request that was refused has taken nothing over.
func TestABodyThatFindsNoRoomStaysItsOwners(t *testing.T) {
	p := startPod(t, Config{ConnectionBytes: 1 << 20})
	c := p.hello()
	s := p.open(c, 1)
	body := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	lease, err := s.ref.Account().Acquire(int64(len(body)))
	must(t, err)
	kerneltest.Do(t, s.ref, func(k *kernel.Ctx) {
		_, err = s.client.Request(k, tunnel.Out{Stream: "t", Method: "mcp/message", Params: []byte(`{"p":`), Body: body, Tail: []byte("}"), Bytes: lease})
	})
	var full *kernel.Overloaded
	if !errors.As(err, &full) || full.Scope != "connection_bytes" {
		t.Errorf("got %v", err)
	}
	if lease.Account() != s.ref.Account() || lease.Size() != int64(len(body)) {
		t.Errorf("the lease is of %d bytes", lease.Size())
	}
	lease.Release()
	c.ping()
}
