package pod

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/runtime/kerneltest"
)

// What the benchmarks put on both sides of the pod and of the bare relay: an extension that reads into one buffer and answers each
// call with bytes made beforehand, and a caller on net/http. Both cost as little as they can, and the same for pod and relay.

const benchConfig = `
[pod]
drain_timeout = "1s"
[acp]
listen = "127.0.0.1:0"
keepalive = "10m"
[agent]
driver = "none"
[mcp]
listen = "127.0.0.1:0"
[debug]
listen = ""
`

// benchTool is one tool with a schema as browser tools have them, so that the check of arguments is part of a call.
const benchTool = `{"name":"katashiro.type","description":"Types text into a field.","inputSchema":{"type":"object",` +
	`"properties":{"selector":{"type":"string","maxLength":256},"text":{"type":"string"},"submit":{"type":"boolean"}},` +
	`"required":["selector","text"],"additionalProperties":false}}`

// startBenchPod is a whole pod whose log, and so its audit, is written and thrown away.
func startBenchPod(b testing.TB) *started {
	b.Helper()
	s := startPodLogging(b, benchConfig, io.Discard)
	b.Cleanup(func() {
		s.signals <- syscall.SIGTERM
		if err := <-s.ended; err != nil {
			b.Error(err)
		}
	})
	return s
}

// maskedFrame gives a client's text frame of these pieces. Its mask is zero: the payload goes out as it is and the load costs
// nothing for it, while the server unmasks it like any other.
func maskedFrame(pieces ...[]byte) net.Buffers {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	head := []byte{0x81}
	switch {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 0x80|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 0x80|127), uint64(n))
	}
	return append(net.Buffers{append(head, 0, 0, 0, 0)}, pieces...)
}

func writeFrame(to net.Conn, pieces ...[]byte) error {
	frame := maskedFrame(pieces...)
	_, err := frame.WriteTo(to)
	return err
}

// answered is a frame of the pod as far as the load reads it.
type answered struct {
	ID     int
	Method string
	Params struct {
		Method    string
		SessionID string `json:"sessionId"`
		Servers   []struct{ State string }
	}
	Result struct {
		Meta struct {
			Facade  struct{ URL, Token string }                `json:"acpod.dev/facade"`
			Servers struct{ Servers []struct{ State string } } `json:"acpod.dev/servers"`
		} `json:"_meta"`
	}
	Error any
}

// handshake answers what a tunnel asks before it is ready, and is nil for what is not such a question.
func handshake(f answered) []byte {
	switch {
	case f.Method == "mcp/connect":
		return []byte(`{"connectionId":"bench"}`)
	case f.Method == "mcp/message" && f.Params.Method == "initialize":
		return []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`)
	case f.Method == "mcp/message" && f.Params.Method == "tools/list":
		return []byte(`{"tools":[` + benchTool + `]}`)
	case f.Method == "mcp/disconnect":
		return []byte(`{}`)
	}
	return nil
}

func (f answered) ready() bool {
	servers := append(f.Params.Servers, f.Result.Meta.Servers.Servers...)
	return len(servers) == 1 && servers[0].State == "ready"
}

const (
	benchInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	benchNewSession = `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[%s]}}`
	benchServer     = `{"type":"acp","name":"katashiro","id":"bench"}`
)

// extension is the client end of one WebSocket, of the pod or of the relay.
type extension struct {
	b      testing.TB
	conn   *gws.Conn
	result []byte // the body of every answer to a call: what follows the id
	relay  bool
	frames chan answered // all that is no call
	closed chan struct{}
}

func dialExtension(b testing.TB, url string, relay bool) *extension {
	b.Helper()
	e := &extension{b: b, relay: relay, frames: make(chan answered, 64), closed: make(chan struct{})}
	conn, _, err := gws.NewClient(gws.BuiltinEventHandler{}, &gws.ClientOption{Addr: url, ReadMaxPayloadSize: 16 << 20})
	if err != nil {
		b.Fatal(err)
	}
	e.conn = conn
	go e.read()
	return e
}

// read is its read loop, on the socket below gws, which would gather a message in a new buffer: what a client's library
// allocates is not what is measured. The server says nothing before it is spoken to, so gws has read nothing beyond its handshake.
func (e *extension) read() {
	defer close(e.closed)
	in := bufio.NewReaderSize(e.conn.NetConn(), 64<<10)
	var head [10]byte
	var message []byte
	for {
		if _, err := io.ReadFull(in, head[:2]); err != nil {
			return
		}
		n := int(head[1])
		switch n {
		case 126:
			_, _ = io.ReadFull(in, head[2:4])
			n = int(binary.BigEndian.Uint16(head[2:4]))
		case 127:
			_, _ = io.ReadFull(in, head[2:10])
			n = int(binary.BigEndian.Uint64(head[2:10]))
		}
		from := len(message)
		message = slices.Grow(message, n)[:from+n]
		if _, err := io.ReadFull(in, message[from:]); err != nil {
			return
		}
		switch opcode := head[0] & 0x0f; {
		case opcode == 8:
			return
		case opcode > 8: // no ping comes within the keep-alive of ten minutes
			message = message[:from]
		case head[0]&0x80 != 0:
			e.take(message)
			message = message[:0]
		}
	}
}

// hangUp closes the socket and waits for the end of its goroutine.
func (e *extension) hangUp() {
	_ = e.conn.NetConn().Close()
	<-e.closed
}

// answerWith sets the answer to every further call: a result with one text of n bytes.
func (e *extension) answerWith(n int) {
	text := strings.Repeat("0123456789abcdef", n/16)
	e.result = []byte(`,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`)
}

// open begins a session with one server and gives the facade's address and token.
func (e *extension) open() (url, token string) {
	e.b.Helper()
	for _, text := range []string{benchInitialize, fmt.Sprintf(benchNewSession, benchServer)} {
		if err := e.conn.WriteString(text); err != nil {
			e.b.Fatal(err)
		}
	}
	ready, late := false, time.After(kerneltest.Deadline)
	for url == "" || !ready {
		select {
		case f := <-e.frames:
			if f.Error != nil {
				e.b.Fatalf("%+v", f)
			}
			if at := f.Result.Meta.Facade; at.Token != "" {
				url, token = at.URL, at.Token
			}
			ready = ready || f.ready()
		case <-e.closed:
			e.b.Fatal("the pod closed the socket")
		case <-late:
			e.b.Fatalf("no session with a server that is ready within %v", kerneltest.Deadline)
		}
	}
	return url, token
}

var (
	callMethod = []byte(`"tools/call"`)
	replyHead  = []byte(`{"jsonrpc":"2.0","id":`)
)

// take answers a call at once, from a look at its first bytes; everything else is read as JSON.
func (e *extension) take(data []byte) {
	if !e.relay && !bytes.Contains(data[:min(len(data), 256)], callMethod) {
		var f answered
		if err := json.Unmarshal(data, &f, json.MatchCaseInsensitiveNames(true)); err != nil {
			e.b.Errorf("%v in %.200s", err, data)
		}
		if reply := handshake(f); reply != nil {
			id := strconv.AppendInt(nil, int64(f.ID), 10)
			_ = writeFrame(e.conn.NetConn(), replyHead, id, []byte(`,"result":`), reply, []byte("}"))
		}
		e.frames <- f
		return
	}
	_, rest, _ := bytes.Cut(data, []byte(`"id":`))
	id, _, _ := bytes.Cut(rest, []byte(","))
	if err := writeFrame(e.conn.NetConn(), replyHead, id, e.result); err != nil {
		e.b.Error(err)
	}
}

// caller is what an agent is: a client of the facade that keeps its connection.
type caller struct {
	b      testing.TB
	client *http.Client
	url    string
	header http.Header
	body   []byte
	buffer []byte
	reader bytes.Reader
}

func newCaller(b testing.TB, url, token string) *caller {
	c := &caller{b: b, client: &http.Client{Transport: &http.Transport{}}, url: url, buffer: make([]byte, 256<<10)}
	c.header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + token}}
	return c
}

// sendArguments sets what every further call sends: arguments with a text of n bytes.
func (c *caller) sendArguments(n int) {
	c.body = []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_capability","arguments":` +
		`{"name":"katashiro.type","arguments":{"selector":"#field","text":"` + strings.Repeat("0123456789abcdef", n/16) + `"}}}}`)
}

// call makes one call and reads its answer, which has at least so many bytes.
func (c *caller) call(atLeast int) {
	c.reader.Reset(c.body)
	request, err := http.NewRequest(http.MethodPost, c.url, &c.reader)
	if err != nil {
		c.b.Fatal(err)
	}
	request.Header = c.header
	response, err := c.client.Do(request)
	if err != nil {
		c.b.Fatal(err)
	}
	read, first := 0, ""
	for {
		n, err := response.Body.Read(c.buffer)
		if read == 0 {
			first = string(c.buffer[:min(n, 160)])
		}
		read += n
		if err == io.EOF {
			break
		}
		if err != nil {
			c.b.Fatal(err)
		}
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || read < atLeast || !strings.Contains(first, `"text":"0123`) {
		c.b.Fatalf("status %d, %d bytes: %s", response.StatusCode, read, first)
	}
}

// relay is the least that could stand in the pod's place: the body of a request becomes a frame, the next frame becomes the
// response. One call at a time; nothing is checked, kept, bounded or recorded.
type relay struct {
	gws.BuiltinEventHandler
	socket  *gws.Conn
	opened  chan struct{}
	replies chan *gws.Message
	closed  sync.WaitGroup
}

// startRelay serves a relay; its address has the WebSocket at /acp and the calls at /mcp.
func startRelay(b testing.TB) (address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	r := &relay{opened: make(chan struct{}), replies: make(chan *gws.Message, 1)}
	upgrader := gws.NewUpgrader(r, &gws.ServerOption{ReadMaxPayloadSize: 16 << 20})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/mcp" {
			r.serve(w, request)
			return
		}
		socket, err := upgrader.Upgrade(w, request)
		if err != nil {
			return
		}
		r.socket = socket
		close(r.opened)
		r.closed.Go(socket.ReadLoop)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	b.Cleanup(func() {
		_ = server.Close()
		<-ended
		r.closed.Wait()
	})
	return listener.Addr().String()
}

// OnMessage implements gws.Event.
func (r *relay) OnMessage(_ *gws.Conn, m *gws.Message) { r.replies <- m }

func (r *relay) serve(w http.ResponseWriter, request *http.Request) {
	<-r.opened
	body := make([]byte, request.ContentLength)
	if _, err := io.ReadFull(request.Body, body); err != nil {
		return
	}
	if err := r.socket.WriteMessage(gws.OpcodeText, body); err != nil {
		return
	}
	reply := <-r.replies
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(reply.Data.Len()))
	_, _ = w.Write(reply.Bytes())
	_ = reply.Close()
}

// bench is a pod and a relay side by side, each with an extension and a caller.
type bench struct {
	pod, relay         *caller
	podExt, relayExt   *extension
	arguments, results int
}

func startBench(b testing.TB, arguments, results, warm int) *bench {
	b.Helper()
	s := startBenchPod(b)
	address := startRelay(b)
	x := &bench{arguments: arguments, results: results}
	x.podExt = dialExtension(b, "ws://"+s.at.Public+"/acp", false)
	url, token := x.podExt.open()
	x.pod = newCaller(b, url, token)
	x.relayExt = dialExtension(b, "ws://"+address+"/acp", true)
	x.relay = newCaller(b, "http://"+address+"/mcp", "none")
	b.Cleanup(func() {
		x.pod.client.CloseIdleConnections()
		x.relay.client.CloseIdleConnections()
		x.podExt.hangUp()
		x.relayExt.hangUp()
	})
	for _, e := range []*extension{x.podExt, x.relayExt} {
		e.answerWith(results)
	}
	for _, c := range []*caller{x.pod, x.relay} {
		c.sendArguments(arguments)
		for range warm {
			c.call(results)
		}
	}
	return x
}
