package wire

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Dial is how a socket is opened. The zero value of each field is what an ordinary client does.
type Dial struct {
	URL        string      // ws://host:port/path
	Key        string      // the bearer key; empty sends none
	ByProtocol bool        // send the key as subprotocol openab.bearer.<key> and not in Authorization
	Origin     string      // the Origin header; empty sends none
	Host       string      // the Host header; empty is the URL's
	Header     http.Header // more headers, as they are; they come after ours, and may double them
	Protocols  []string    // subprotocols offered; nil is acp.v1, empty is none
	// ReceiveBuffer is SO_RCVBUF in bytes, set before the connection is made: a small one makes a slow reader. 0 is the system's.
	ReceiveBuffer int
	Timeout       time.Duration // for connection and handshake; 0 is 30 s
	Limit         int64         // the longest message that Read takes; 0 is 64 MiB
	Mute          bool          // pings are not answered, see Socket.Mute
	// Response, when set, sees the status and headers of the answer; its body must not be read.
	Response func(*http.Response)
	// Net makes the connection in place of net.Dialer: the way through a proxy of faults, or from another local address.
	Net func(ctx context.Context, network, addr string) (net.Conn, error)
	// Rand gives the masks, from one goroutine at a time. It belongs to this socket; nil takes the process's source.
	Rand *rand.Rand
}

const (
	dialTimeout  = 30 * time.Second
	readLimit    = 64 << 20
	bodyLimit    = 4 << 10 // of a refusal
	acceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

// Refused is an answer to the handshake that is not 101.
type Refused struct {
	Status int
	Header http.Header
	Body   string // at most 4 KiB of it
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the server refused the WebSocket with %d %.128q", r.Status, strings.TrimSpace(r.Body))
}

// answers are buffers for the answer to a handshake: none is kept by a socket.
var answers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 2<<10) }}

// Open connects and does the handshake. The error is a *Refused when the server answered and the answer is no 101.
// The context ends only the opening.
func Open(ctx context.Context, d Dial) (*Socket, error) {
	at, err := url.Parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of a WebSocket: %w", err)
	}
	if at.Scheme != "ws" || at.Host == "" {
		return nil, fmt.Errorf("%q is no ws://host:port/path", d.URL)
	}
	if d.Timeout == 0 {
		d.Timeout = dialTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	conn, err := d.connect(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	s, err := d.shake(conn, at)
	if !unhook() && err == nil { // the deadline of the past may come at any time
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		if refused, ok := errors.AsType[*Refused](err); ok {
			return nil, refused
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("the handshake: %w", err)
	}
	return s, nil
}

func (d Dial) connect(ctx context.Context, at *url.URL) (net.Conn, error) {
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), "80")
	}
	if d.Net != nil {
		conn, err := d.Net(ctx, "tcp", address)
		if buffered, ok := conn.(interface{ SetReadBuffer(int) error }); err == nil && ok && d.ReceiveBuffer > 0 {
			_ = buffered.SetReadBuffer(d.ReceiveBuffer)
		}
		return conn, err
	}
	var dialer net.Dialer
	if d.ReceiveBuffer > 0 { // before connect, because the window's scale is agreed on there
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			var failed error
			err := raw.Control(func(fd uintptr) {
				failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, d.ReceiveBuffer)
			})
			return errors.Join(err, failed)
		}
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// shake sends the request of the handshake and reads its answer.
func (d Dial) shake(conn net.Conn, at *url.URL) (*Socket, error) {
	s := &Socket{conn: conn, rand: d.Rand}
	s.mute.Store(d.Mute)
	var nonce [16]byte
	for i := range nonce {
		nonce[i] = byte(s.random())
	}
	key := base64.StdEncoding.EncodeToString(nonce[:])
	if err := s.Raw(d.request(at, key)); err != nil {
		return nil, err
	}
	in := answers.Get().(*bufio.Reader)
	defer func() { in.Reset(nil); answers.Put(in) }()
	in.Reset(counted{s})
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // of a 101 it is empty
	if d.Response != nil {
		d.Response(response)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
		return nil, &Refused{response.StatusCode, response.Header, string(body)}
	}
	if err := agreed(response.Header, key); err != nil {
		return nil, err
	}
	s.protocol = strings.Clone(response.Header.Get("Sec-WebSocket-Protocol"))
	s.connection = strings.Clone(response.Header.Get("Acp-Connection-Id"))
	s.in = frames{from: conn, limit: uint64(d.Limit), seen: s.count}
	if d.Limit == 0 {
		s.in.limit = readLimit
	}
	if n := in.Buffered(); n > 0 {
		s.in.leftovers = make([]byte, n)
		_, _ = io.ReadFull(in, s.in.leftovers)
	}
	return s, nil
}

func (d Dial) request(at *url.URL, key string) []byte {
	host := d.Host
	if host == "" {
		host = at.Host
	}
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
		at.RequestURI(), host, key)
	protocols := d.Protocols
	if protocols == nil {
		protocols = []string{"acp.v1"}
	}
	if d.Key != "" {
		if d.ByProtocol {
			protocols = append(protocols[:len(protocols):len(protocols)], "openab.bearer."+d.Key)
		} else {
			fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", d.Key)
		}
	}
	if len(protocols) > 0 {
		fmt.Fprintf(&b, "Sec-WebSocket-Protocol: %s\r\n", strings.Join(protocols, ", "))
	}
	if d.Origin != "" {
		fmt.Fprintf(&b, "Origin: %s\r\n", d.Origin)
	}
	for name, values := range d.Header {
		for _, value := range values {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// agreed checks what makes a 101 the answer to this handshake.
func agreed(h http.Header, key string) error {
	sum := sha1.Sum([]byte(key + acceptSuffix))
	switch {
	case !strings.EqualFold(h.Get("Upgrade"), "websocket") || !strings.EqualFold(h.Get("Connection"), "Upgrade"):
		return &Violation{"a 101 that upgrades to no WebSocket"}
	case h.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]):
		return &Violation{"a 101 with a wrong Sec-WebSocket-Accept"}
	case h.Get("Sec-WebSocket-Extensions") != "":
		return &Violation{"a 101 with an extension that nobody offered"}
	}
	return nil
}
