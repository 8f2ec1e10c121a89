package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// fakeServer is a scripted server: each attempt at it is a fakeLink.
type fakeServer struct {
	mu    sync.Mutex
	links []*fakeLink
	// refuse, when set, is what a link's Run returns at once.
	refuse error
	// silent methods get no answer.
	silent map[string]bool
	tools  string // the elements of tools/list
	// answer, when set, is asked first about each message; true: it is done with it.
	answer func(l *fakeLink, m said) bool
	now    int // links that run
	most   int // at a time
	speaks []string
	// lingers: its links end when they die, and not when they are told to
	lingers bool
}

// said is one message to the server.
type said struct {
	id     jsonrpc.ID
	method string
	params string
	result string
	failed string
}

// fakeLink is one connection to a fakeServer.
type fakeLink struct {
	s    *fakeServer
	to   link.Sink
	ctx  context.Context
	over chan error
	said []said
	busy error // what Send returns
	// modern says that it was made for the era without a handshake
	modern  bool
	headers [][2]string // of the call that came last
}

func newFakeServer(tools ...string) *fakeServer {
	s := &fakeServer{silent: map[string]bool{}}
	for i, name := range tools {
		if i > 0 {
			s.tools += ","
		}
		s.tools += fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)
	}
	return s
}

func (s *fakeServer) dial(_ mcpjson.Resolved, modern bool) (link.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &fakeLink{s: s, modern: modern, over: make(chan error, 1)}
	s.links = append(s.links, l)
	return l, nil
}

// last is the latest link, nil when there was none.
func (s *fakeServer) last() *fakeLink {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.links) == 0 {
		return nil
	}
	return s.links[len(s.links)-1]
}

func (s *fakeServer) dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}

func (s *fakeServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Run implements link.Link.
func (l *fakeLink) Run(ctx context.Context, to link.Sink) error {
	l.s.mu.Lock()
	refuse := l.s.refuse
	l.to, l.ctx = to, ctx
	l.s.now++
	l.s.most = max(l.s.most, l.s.now)
	l.s.mu.Unlock()
	defer l.s.set(func() { l.s.now-- })
	if refuse != nil {
		return refuse
	}
	to.Up(4242)
	select {
	case err := <-l.over:
		return err
	case <-ctx.Done():
		lingers := false
		l.s.set(func() { lingers = l.s.lingers })
		if lingers {
			<-l.over
		}
		return context.Cause(ctx)
	}
}

// Speaks implements link.Link.
func (l *fakeLink) Speaks(version string) {
	l.s.set(func() { l.s.speaks = append(l.s.speaks, version) })
}

// Send implements link.Link.
func (l *fakeLink) Send(m link.Message) error {
	raw := slices.Concat(m.Head, m.Body, m.Tail)
	m.Held.Release()
	x := parseSaid(raw)
	l.s.mu.Lock()
	if l.busy != nil {
		defer l.s.mu.Unlock()
		return l.busy
	}
	l.said, l.headers = append(l.said, x), m.Headers
	answer, silent := l.s.answer, l.s.silent[x.method]
	l.s.mu.Unlock()
	go func() {
		if answer != nil && answer(l, x) || silent {
			return
		}
		l.usual(x)
	}()
	return nil
}

// usual answers as a server does.
func (l *fakeLink) usual(x said) {
	switch x.method {
	case mcp.MethodInitialize:
		l.reply(x, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	case mcp.MethodToolsList:
		l.s.mu.Lock()
		tools := l.s.tools
		l.s.mu.Unlock()
		l.reply(x, `{"tools":[`+tools+`]}`)
	case mcp.MethodPing, methodSetLevel:
		l.reply(x, `{}`)
	}
}

// reply answers one request of the pod.
func (l *fakeLink) reply(x said, result string) {
	l.say(string(jsonrpc.AppendResult(nil, x.id, []byte(result))))
}

// say lets the server write one message.
func (l *fakeLink) say(frame string) { l.sayAbout(frame, jsonrpc.ID{}) }

func (l *fakeLink) sayAbout(frame string, about jsonrpc.ID) {
	raw := []byte(frame)
	scanned, fault := jsonrpc.Scan(raw)
	if fault != nil {
		panic(fmt.Sprintf("the test says %q: %v", frame, fault))
	}
	lease, err := l.to.Account().AcquireWait(l.ctx, int64(len(raw)))
	if err != nil {
		return
	}
	l.to.Message(raw, scanned, about, lease)
}

// die ends the connection.
func (l *fakeLink) die(err error) { l.over <- err }

// heard is what was sent over the link, by method; answers under "".
func (l *fakeLink) heard(method string) []said {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	var found []said
	for _, x := range l.said {
		if x.method == method {
			found = append(found, x)
		}
	}
	return found
}

// all is what was sent over all links, by method.
func (s *fakeServer) heard(method string) []said {
	s.mu.Lock()
	links := slices.Clone(s.links)
	s.mu.Unlock()
	var found []said
	for _, l := range links {
		found = append(found, l.heard(method)...)
	}
	return found
}

// tool is the tool of a tools/call.
func (x said) tool() string {
	o, _ := jsonrpc.ParseObject([]byte(x.params))
	name, _ := o.Text("name")
	return name
}

func (x said) has(text string) bool { return strings.Contains(x.params+x.result+x.failed, text) }

var errCut = errors.New("the connection was cut")

// last0 is last for whoever holds the lock.
func (s *fakeServer) last0() *fakeLink { return s.links[len(s.links)-1] }

// parseSaid reads what was sent. It is no Scan: that refuses answers to requests which are not the pod's own.
func parseSaid(raw []byte) said {
	o, err := jsonrpc.ParseObject(raw)
	if err == nil {
		err = o.Unique("jsonrpc", "id", "method", "params", "result", "error")
	}
	if version, _ := o.Text("jsonrpc"); err != nil || version != "2.0" {
		panic(fmt.Sprintf("sent %q: %v", raw, err))
	}
	text := func(name string) string { raw, _ := o.Get(name); return string(raw) }
	method, _ := o.Text("method")
	id, _ := jsonrpc.ParseID([]byte(text("id")))
	return said{id, method, text("params"), text("result"), text("error")}
}

// running is how many links run, peak how many did at a time.
func (s *fakeServer) running() (n int) { s.set(func() { n = s.now }); return n }

// first is the first link.
func (s *fakeServer) first() (l *fakeLink) { s.set(func() { l = s.links[0] }); return l }
func (s *fakeServer) peak() (n int)        { s.set(func() { n = s.most }); return n }
