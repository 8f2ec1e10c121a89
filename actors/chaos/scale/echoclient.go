package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/acpod/acpod/actors/chaos/wire"
)

// echoClient is to the echo server what an extension is to the pod: one socket of the same kind with one goroutine that reads. A call
// is one message that comes back; it has no caller, no session and no meaning.
type echoClient struct {
	socket *wire.Socket
	filler string // what each message ends with

	mu      sync.Mutex
	waiting map[int]chan struct{} // by the number of the call
	ended   chan struct{}
	err     error // after ended
}

// errEcho says that what came back was not sent.
var errEcho = errors.New("a message came back that was not sent")

func dialEcho(ctx context.Context, d wire.Dial, filler string) (*echoClient, error) {
	socket, err := wire.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	c := &echoClient{socket: socket, filler: filler, ended: make(chan struct{})}
	go c.read()
	return c, nil
}

// read is the client's one goroutine.
func (c *echoClient) read() {
	defer close(c.ended)
	for {
		text, err := c.socket.Read()
		if err == nil {
			err = c.take(text)
		}
		if err != nil {
			c.err = err
			c.socket.Reset()
			return
		}
	}
}

func (c *echoClient) take(text []byte) error {
	number, rest, _ := bytes.Cut(text, []byte{' '})
	n, err := strconv.Atoi(string(number))
	c.mu.Lock()
	came, waits := c.waiting[n]
	delete(c.waiting, n)
	c.mu.Unlock()
	if err != nil || !waits || len(rest) > len(c.filler) || string(rest) != c.filler[len(c.filler)-len(rest):] {
		return fmt.Errorf("%w: %.64q", errEcho, text)
	}
	close(came)
	return nil
}

// call sends one message, whose length does not depend on its number, and waits until it is back.
func (c *echoClient) call(ctx context.Context, number int) error {
	came := make(chan struct{})
	c.mu.Lock()
	if c.waiting == nil {
		c.waiting = map[int]chan struct{}{}
	}
	c.waiting[number] = came
	c.mu.Unlock()
	head := strconv.Itoa(number) + " "
	if err := c.socket.Text([]byte(head + c.filler[min(len(head), len(c.filler)):])); err != nil {
		return &failure{"transport", err}
	}
	select {
	case <-came:
		return nil
	case <-c.ended:
		return &failure{"transport", c.err}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *echoClient) leave(context.Context) error {
	err := c.socket.Close(1000, "")
	c.abandon()
	return err
}

func (c *echoClient) abandon() { c.socket.Reset(); <-c.ended }

func (c *echoClient) traffic() (in, out int64) { return c.socket.BytesIn(), c.socket.BytesOut() }
