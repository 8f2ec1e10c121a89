package connection

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// served is one frame that a server sent.
type served struct {
	first   byte
	payload []byte
}

// readServed reads one frame of a server, which masks nothing.
func readServed(r io.Reader) (served, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return served{}, err
	}
	n := uint64(head[1])
	var ext [8]byte
	switch n {
	case 126:
		if _, err := io.ReadFull(r, ext[6:]); err != nil {
			return served{}, err
		}
		n = binary.BigEndian.Uint64(ext[:])
	case 127:
		if _, err := io.ReadFull(r, ext[:]); err != nil {
			return served{}, err
		}
		n = binary.BigEndian.Uint64(ext[:])
	}
	if n > 64<<20 {
		return served{}, fmt.Errorf("a frame of %d bytes", n)
	}
	f := served{first: head[0], payload: make([]byte, n)}
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

func testWriter(socket net.Conn) *writer {
	cfg := Config{}.withDefaults()
	return &writer{wire: newWire(socket, bufio.NewReader(socket), testAccount(1<<20), &cfg), socket: socket, out: newOutbox(&cfg), cfg: &cfg, stats: newCounters()}
}

func TestPartsLeaveAsOneMessage(t *testing.T) {
	for _, sizes := range [][3]int{{1, 0, 0}, {125, 0, 0}, {100, 26, 0}, {40, 70_000, 1}, {0, 0, 0}, {10, fragmentBytes - 10, 1}, {10, 3*fragmentBytes + 7, 1}, {fragmentBytes, fragmentBytes, 0}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			socket := &script{}
			w := testWriter(socket)
			f := &outFrame{stream: "s"}
			var want []byte
			for i, n := range sizes {
				f.parts[i] = bytes.Repeat([]byte{byte('a' + i)}, n)
				want = append(want, f.parts[i]...)
			}
			var fate []bool
			f.done = func(written bool) { fate = append(fate, written) }
			must(t, w.out.push(f))
			w.out.finish(true)
			if exit := w.run(); exit != nil {
				t.Fatal(exit)
			}
			var got []byte
			var last byte
			for n := 0; socket.written.Len() > 0; n++ {
				frame, err := readServed(&socket.written)
				must(t, err)
				opcode := byte(opText)
				if n > 0 {
					opcode = opContinue
				}
				if frame.first&0x0f != opcode || len(frame.payload) > fragmentBytes {
					t.Fatalf("fragment %d has opcode %d and %d bytes", n, frame.first&0x0f, len(frame.payload))
				}
				if last&finalBit != 0 {
					t.Fatal("something follows the final fragment")
				}
				last = frame.first
				got = append(got, frame.payload...)
			}
			if last&finalBit == 0 || !bytes.Equal(got, want) {
				t.Errorf("%d bytes arrived of %d, final %v", len(got), len(want), last&finalBit != 0)
			}
			if !slices.Equal(fate, []bool{true}) {
				t.Errorf("done was told %v", fate)
			}
		})
	}
}

// TestAPongGoesBetweenFragments: a large message holds up a pong for one fragment only.
func TestAPongGoesBetweenFragments(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	w := testWriter(server)
	must(t, w.out.push(&outFrame{stream: "s", parts: [3][]byte{make([]byte, 3*fragmentBytes)}}))
	over := make(chan *Exit, 1)
	go func() { over <- w.run() }()
	var order []byte
	for len(order) < 4 {
		f, err := readServed(client)
		must(t, err)
		order = append(order, f.first)
		if len(order) == 1 {
			w.out.answerPing([]byte("now"))
		}
	}
	if at := slices.Index(order, finalBit|opPong); at < 1 || at > 2 {
		t.Errorf("frames came as %x", order)
	}
	w.out.finish(true)
	if exit := <-over; exit != nil {
		t.Error(exit)
	}
}

func TestAnAbortEndsAMessageBetweenFragments(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	w := testWriter(server)
	fate := make(chan bool, 1)
	must(t, w.out.push(&outFrame{stream: "s", parts: [3][]byte{make([]byte, 3*fragmentBytes)}, done: func(written bool) { fate <- written }}))
	over := make(chan *Exit, 1)
	go func() { over <- w.run() }()
	_, err := readServed(client)
	must(t, err)
	w.out.finish(false)
	go func() { _, _ = io.Copy(io.Discard, client) }()
	if exit := <-over; exit != nil {
		t.Error(exit)
	}
	if <-fate {
		t.Error("done was told that the message was written")
	}
}

// TestAPeerThatAcceptsNothingIsTimedOutASlowOneIsNot is about the deadline of a write: it is for no progress at all.
func TestAPeerThatAcceptsNothingIsTimedOutASlowOneIsNot(t *testing.T) {
	for _, test := range []struct {
		name   string
		every  time.Duration // how often the peer takes a piece; 0 = never
		reason Reason
	}{
		{"nothing", 0, WriteTimeout},
		{"slow", 29 * time.Second, ""},
		{"too slow", 31 * time.Second, WriteTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer client.Close()
				w := testWriter(server)
				must(t, w.out.push(text("s", string(make([]byte, 300)))))
				w.out.finish(true)
				over := make(chan struct{})
				if test.every > 0 {
					go func() {
						piece := make([]byte, 10)
						for {
							select {
							case <-time.After(test.every):
								_, _ = client.Read(piece)
							case <-over:
								return
							}
						}
					}()
				}
				exit := w.run()
				close(over)
				_ = server.Close()
				switch {
				case test.reason == "" && exit != nil:
					t.Errorf("ended: %v", exit)
				case test.reason != "" && (exit == nil || exit.Reason != test.reason || !errors.Is(exit, os.ErrDeadlineExceeded)):
					t.Errorf("got %v", exit)
				}
			})
		})
	}
}

func TestCloseFrames(t *testing.T) {
	f, err := readServed(bytes.NewReader(closeFrame(1009, "too large")))
	must(t, err)
	if f.first != 0x88 || binary.BigEndian.Uint16(f.payload) != 1009 || string(f.payload[2:]) != "too large" {
		t.Errorf("got %x %q", f.first, f.payload)
	}
	f, err = readServed(bytes.NewReader(closeFrame(1013, string(make([]byte, 500)))))
	must(t, err)
	if len(f.payload) != 125 {
		t.Errorf("a close frame of %d bytes", len(f.payload))
	}
}
