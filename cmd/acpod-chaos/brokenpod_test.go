package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// A pod that is broken on purpose: a sound one behind a proxy that follows the frames of every WebSocket and changes what a
// test wants changed. All the rest passes to the byte, the handshake too.

// broken is what a proxy does wrong. Each function may be nil. A function of messages gives the messages to send on in their
// place; link is the connection, for what goes the other way.
type broken struct {
	handshake func(request string) string
	toPod     func(l *link, message []byte) [][]byte
	toClient  func(l *link, message []byte) [][]byte
}

// link is one connection through the proxy. Its two directions are two goroutines; each side is written under its lock.
type link struct {
	client, pod side
	mu          sync.Mutex
	held        []byte      // of toPod
	timer       *time.Timer // that sends it on
	swallow     map[string]bool
}

type side struct {
	conn net.Conn
	mu   sync.Mutex
}

// breakPod serves a broken pod in front of a sound one and gives its address.
func breakPod(t *testing.T, sound string, how broken) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var links sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	over := false
	keep := func(conn net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		if open = append(open, conn); over {
			conn.Close()
		}
	}
	links.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			keep(conn)
			links.Go(func() { how.carry(conn, sound, keep) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		over = true
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		links.Wait()
	})
	return "ws://" + listener.Addr().String() + "/acp"
}

// carry takes one connection from its handshake to its end.
func (b broken) carry(client net.Conn, sound string, keep func(net.Conn)) {
	defer client.Close()
	fromClient := bufio.NewReader(client)
	request, err := head(fromClient)
	if err != nil {
		return
	}
	pod, err := net.Dial("tcp", sound)
	if err != nil {
		return
	}
	keep(pod)
	defer pod.Close()
	if b.handshake != nil {
		request = b.handshake(request)
	}
	if _, err := io.WriteString(pod, request); err != nil {
		return
	}
	fromPod := bufio.NewReader(pod)
	answer, err := head(fromPod)
	if err != nil {
		return
	}
	if _, err := io.WriteString(client, answer); err != nil {
		return
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 101") {
		response, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(answer), fromPod)), nil)
		if err == nil {
			_, _ = io.Copy(client, response.Body)
		}
		return
	}
	l := &link{client: side{conn: client}, pod: side{conn: pod}, swallow: map[string]bool{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pump(l, fromClient, &l.pod, true, b.toPod) // what it cannot send any more the other pump explains
	}()
	pump(l, fromPod, &l.client, false, b.toClient)
	client.Close()
	pod.Close()
	<-ended
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// head reads an HTTP head as it is.
func head(from *bufio.Reader) (string, error) {
	var b strings.Builder
	lines := textproto.NewReader(from)
	for {
		line, err := lines.ReadLine()
		if err != nil {
			return "", err
		}
		b.WriteString(line + "\r\n")
		if line == "" {
			return b.String(), nil
		}
	}
}

// pump carries frames one way; messages are put together, control frames pass as they are.
func pump(l *link, from *bufio.Reader, to *side, masked bool, change func(*link, []byte) [][]byte) {
	var message []byte
	var opcode byte
	dead := false
	for {
		first, payload, err := readFrame(from)
		if err != nil {
			return
		}
		switch {
		case first&0x08 != 0:
			dead = to.send(first, payload, masked) != nil || dead
			continue
		case first&0x0f != 0:
			opcode = first & 0x0f
		}
		if message == nil {
			message = payload
		} else {
			message = append(message, payload...)
		}
		if first&0x80 == 0 {
			continue
		}
		whole := message
		message = nil
		changed := [][]byte{whole}
		if change != nil && opcode == 1 {
			changed = change(l, whole)
		}
		for _, one := range changed {
			dead = to.send(0x80|opcode, one, masked) != nil || dead
		}
		if dead && !masked {
			return
		}
	}
}

func readFrame(from *bufio.Reader) (first byte, payload []byte, err error) {
	var b [8]byte
	if _, err := io.ReadFull(from, b[:2]); err != nil {
		return 0, nil, err
	}
	first = b[0]
	masked, length := b[1]&0x80 != 0, uint64(b[1]&0x7f)
	switch length {
	case 126:
		_, err = io.ReadFull(from, b[:2])
		length = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		_, err = io.ReadFull(from, b[:8])
		length = binary.BigEndian.Uint64(b[:])
	}
	if err != nil || length > 64<<20 {
		return 0, nil, fmt.Errorf("a frame of %d bytes: %w", length, io.ErrUnexpectedEOF)
	}
	var key [4]byte
	if masked {
		if _, err := io.ReadFull(from, key[:]); err != nil {
			return 0, nil, err
		}
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(from, payload); err != nil {
		return 0, nil, err
	}
	if masked {
		unmask(key, payload)
	}
	return first, payload, nil
}

// unmask works on words: the frames of these tests are large.
func unmask(key [4]byte, payload []byte) {
	word := uint64(binary.LittleEndian.Uint32(key[:]))
	word |= word << 32
	for ; len(payload) >= 8; payload = payload[8:] {
		binary.LittleEndian.PutUint64(payload, binary.LittleEndian.Uint64(payload)^word)
	}
	for i := range payload {
		payload[i] ^= key[i&3]
	}
}

// send writes one frame; a mask of zeros leaves the payload as it is.
func (s *side) send(first byte, payload []byte, masked bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var mask byte
	if masked {
		mask = 0x80
	}
	frame := []byte{first}
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, mask|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, mask|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, mask|127), uint64(n))
	}
	if masked {
		frame = append(frame, 0, 0, 0, 0)
	}
	buffers := net.Buffers{frame, payload}
	_, err := buffers.WriteTo(s.conn)
	return err
}

// hangUp closes the client's side with that code.
func (l *link) hangUp(code uint16) {
	_ = l.client.send(0x88, binary.BigEndian.AppendUint16(nil, code), false)
}

// tell sends a message to the client that the pod did not send.
func (l *link) tell(message string) { _ = l.client.send(0x81, []byte(message), false) }

// swapPipelined exchanges the ids of a ping and of a session/list that was sent behind it without waiting. A ping waits here for a
// moment, to see whether one comes.
func (l *link) swapPipelined(message []byte) [][]byte {
	const moment = 50 * time.Millisecond
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.held
	l.held = nil
	if l.timer != nil {
		l.timer.Stop()
	}
	switch {
	case before != nil && bytes.Contains(message, []byte(`"method":"session/list"`)):
		one, two := idOf(before), idOf(message)
		return [][]byte{bytes.Replace(before, one, two, 1), bytes.Replace(message, two, one, 1)}
	case before != nil:
		return [][]byte{before, message}
	case bytes.Contains(message, []byte(`"method":"_wirecheck/ping"`)) && len(message) < 200 && idOf(message) != nil:
		l.held = message
		l.timer = time.AfterFunc(moment, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.held != nil {
				_ = l.pod.send(0x81, l.held, true)
				l.held = nil
			}
		})
		return nil
	}
	return [][]byte{message}
}

// idOf is the literal "id":… of a message of wire-check, whose ids are short.
func idOf(message []byte) []byte {
	from := bytes.Index(message, []byte(`"id":`))
	if from < 0 {
		return nil
	}
	to := bytes.IndexByte(message[from:], ',')
	if to < 0 {
		return nil
	}
	return message[from : from+to]
}
