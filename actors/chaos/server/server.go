package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Generation is how the server is declared and what it expects on the wire: '0', 'A', 'B' or 'C'.
type Generation byte

// The generations.
const (
	Gen0 Generation = '0'
	GenA Generation = 'A'
	GenB Generation = 'B'
	GenC Generation = 'C'
)

// Name is what every server of the harness is called: it has a grant in the default config.
const Name = "katashiro"

// Behaviour decides how a server answers. Its functions are called on the goroutine that reads the socket; nil ones mean: as it should.
type Behaviour struct {
	// Step decides about connect, initialize and tools/list.
	Step func(method string) Deed
	// Execute decides about one execution of a call; nonce is the call's number.
	Execute func(nonce int) Deed
}

// Deed is what is done with one request. The zero value answers as it should.
type Deed struct {
	After     time.Duration // 0 = at once
	Never     bool
	Twice     bool
	Behind    time.Duration  // by how much the second of two answers comes later
	Error     *jsonrpc.Error // instead of the result
	Result    []byte         // instead of the usual one
	Pad       int            // bytes added to the usual result of a call
	IsError   bool           // the usual result of a call says isError
	Title     string         // text that goes into the usual result of a call, escaped as JSON
	SameID    bool           // connect gives an id that it has given already
	Cancelled func()         // told when the pod takes the request back
}

// Server is one MCP server of one session.
type Server struct {
	Session    int // the harness's number of the session
	ID         string
	Generation Generation
	Calls      *ledger.Calls
	Book       *invariant.Book
	Behaviour  Behaviour
	Tools      []byte // the tools array; nil = the five

	mu     sync.Mutex
	given  int    // connection ids given
	lastID string // the last of them
	held   map[string]held
	count  int64
}

type held struct {
	on     *peer.Peer
	number int // of the call
	since  time.Time
	cancel func()
}

// Declaration is the entry of mcpServers.
func (s *Server) Declaration() []byte { return s.DeclarationNamed(Name) }

// DeclarationNamed is the same server under another name.
func (s *Server) DeclarationNamed(name string) []byte {
	d := jsonrpc.AppendString([]byte(`{"name":`), name)
	switch s.Generation {
	case Gen0:
		d = append(d, `,"type":"http","headers":[],"url":`...)
		d = jsonrpc.AppendString(d, "acp:"+s.ID)
	case GenA:
		d = append(d, `,"type":"acp","id":`...)
		d = jsonrpc.AppendString(d, s.ID)
	default:
		d = append(d, `,"type":"acp","serverId":`...)
		d = jsonrpc.AppendString(d, s.ID)
	}
	return append(d, '}')
}

// Executions is how many calls it was asked to execute.
func (s *Server) Executions() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// connect gives a connection id and enters it, in the moment in which its answer is written.
func (s *Server) connect(p *peer.Peer, d Deed) []byte {
	s.mu.Lock()
	id := s.lastID
	same := d.SameID && id != ""
	if !same {
		s.given++
		id = fmt.Sprintf("%s#%d", s.ID, s.given)
		s.lastID = id
	}
	s.mu.Unlock()
	if same {
		p.Connections.Exempt(id)
	} else {
		p.Connections.Open(id, s.ID)
	}
	member := "connectionId"
	if s.Generation == Gen0 {
		member = "connection_id"
	}
	return append(jsonrpc.AppendString([]byte(`{"`+member+`":`), id), '}')
}

// hold keeps a request that is not answered at once, to see that it is taken back.
func (s *Server) hold(p *peer.Peer, id jsonrpc.ID, number int, cancelled func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]held{}
	}
	s.held[key(p, id)] = held{p, number, time.Now(), cancelled}
}

func key(p *peer.Peer, id jsonrpc.ID) string { return p.Name() + " " + string(id.Raw()) }

// TakenBack is how soon a call is taken back whose caller has closed its request, when that ends it at once: time for a machine under
// attack, and less than a call may run on for nobody.
const TakenBack = 10 * time.Second

// Cancel enters that the pod takes a request back, and reports whether it was held here. lags says that what comes on this socket comes
// late for reasons of our own.
func (s *Server) Cancel(p *peer.Peer, params []byte, lags bool) bool {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return false
	}
	raw, _ := o.Get("requestId")
	id, ok := jsonrpc.ParseID(raw)
	if !ok {
		return false
	}
	s.mu.Lock()
	h, found := s.held[key(p, id)]
	delete(s.held, key(p, id))
	s.mu.Unlock()
	if found {
		p.Asked.Reply(string(id.Raw()))
		s.Book.Check(invariant.CancelReaches, []string{p.Name()}, s.forsaken(h, time.Now(), lags))
		if h.cancel != nil {
			h.cancel()
		}
	}
	return found
}

// forsaken says what is wrong with a call that is taken back now: its caller had left it long before.
func (s *Server) forsaken(h held, now time.Time, lags bool) string {
	left := s.Calls.Left(h.number)
	if left.IsZero() || lags || now.Sub(left) <= TakenBack || now.Sub(h.since) <= TakenBack {
		return ""
	}
	return fmt.Sprintf("%s: call %d of session %d was taken back %s after its caller had closed its request, which ends it at once", h.on.Name(), h.number, s.Session, now.Sub(left).Round(time.Millisecond))
}

// Held is how many calls wait on a socket for their answer or for being taken back.
func (s *Server) Held(p *peer.Peer) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		if h.on == p {
			n++
		}
	}
	return n
}

// Overdue breaks the promise for each call that is held for longer than bound on a socket that lives, and was not taken back.
func (s *Server) Overdue(now time.Time, bound time.Duration) {
	s.mu.Lock()
	var late []held
	for k, h := range s.held {
		if !h.on.Living() {
			delete(s.held, k)
		} else if now.Sub(h.since) > bound {
			delete(s.held, k)
			late = append(late, h)
		}
	}
	s.mu.Unlock()
	for _, h := range late {
		s.Book.Break(invariant.CancelReaches, []string{h.on.Name()}, "%s: a call of session %d that was never answered is not taken back after %s", h.on.Name(), s.Session, bound)
	}
}

// IsCancel reports whether a notification of the pod takes a request back.
func IsCancel(method string) bool {
	return method == acp.MethodCancelRequest || method == acp.MethodMCPCancel
}
