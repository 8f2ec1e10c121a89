package facade

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a facade on a real socket, with sessions whose one server is played by the test.
type world struct {
	t       testing.TB
	k       *kernel.Kernel
	root    kernel.Ref
	ref     kernel.Ref
	socket  *door.Socket
	tokens  *tokenTable
	audit   *auditTrail
	client  *http.Client
	baseURL string
}

// tokenTable is Callers for tests.
type tokenTable struct{ m sync.Map }

func (t *tokenTable) Resolve(sha [32]byte) (capability.Caller, bool) {
	c, ok := t.m.Load(sha)
	if !ok {
		return capability.Caller{}, false
	}
	return c.(capability.Caller), true
}

func (t *tokenTable) revoke(token string) { t.m.Delete(sha256.Sum256([]byte(token))) }

// auditTrail keeps what was recorded.
type auditTrail struct {
	mu      sync.Mutex
	entries []capability.Entry
}

func (a *auditTrail) Record(e capability.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, e)
}

func (a *auditTrail) all() []capability.Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]capability.Entry(nil), a.entries...)
}

func newWorld(t testing.TB, change func(*Config)) *world {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newWorldOn(t, listener, nil, change)
}

// newWorldOn is newWorld on a listener and a way to dial it of the test's own.
func newWorldOn(t testing.TB, listener net.Listener, dial func(context.Context, string, string) (net.Conn, error), change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, tokens: &tokenTable{}, audit: &auditTrail{}}
	var err error
	if w.socket, err = door.NewSocket(listener); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.socket.Close() })
	cfg := Config{Socket: w.socket, Callers: w.tokens, Version: "test", Desk: capability.DeskConfig{Audit: w.audit}}
	if change != nil {
		change(&cfg)
	}
	w.k = kerneltest.Start(t, kernel.Options{})
	w.root, _ = kerneltest.Root(t, w.k)
	w.ref = kerneltest.Spawn(t, w.root, Spec(cfg))
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dial}
	w.client = &http.Client{Transport: transport, Timeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	w.baseURL = "http://" + w.socket.Addr().String()
	return w
}

// session is a session's desk with one server that the test plays.
type session struct {
	token  string
	desk   kernel.Ref
	server *played
	idle   int64 // what its desk remembers of it, once its server is ready
}

// played is a capability.Source whose calls go to an actor that the test drives.
type played struct {
	name  string
	actor kernel.Ref
	probe *kerneltest.Probe
	tools atomic.Pointer[capability.Toolset]
	// behave answers a call; nil leaves it to the test (see next).
	behave func(c *kernel.Ctx, call capability.Call, q *kernel.Question)
}

func (s *played) Provider() string           { return capability.BrowserProvider }
func (s *played) Server() string             { return s.name }
func (s *played) Tools() *capability.Toolset { return s.tools.Load() }
func (s *played) Call(c *kernel.Ctx, call capability.Call) (kernel.Ticket, error) {
	return c.Request(s.actor, call)
}

const twoTools = `[{"name":"katashiro.read","description":"reads the page","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
{"name":"katashiro.write","description":"writes the page","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]`

func (w *world) session(name string, state capability.State, behave func(*kernel.Ctx, capability.Call, *kernel.Question)) *session {
	w.t.Helper()
	srv := &played{name: "katashiro", probe: kerneltest.NewProbe(), behave: behave}
	srv.probe.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) {
		call, ok := m.(capability.Call)
		if !ok || srv.behave == nil {
			return false, nil
		}
		srv.behave(c, call, c.Question())
		call.Bytes.Release()
		return true, nil
	}
	srv.actor = kerneltest.Spawn(w.t, w.root, srv.probe.Spec("server-"+name))
	toolset := &capability.Toolset{State: state}
	if state != capability.Connecting {
		toolset.List = capability.NewList(parsedTools(w.t), false, nil)
	}
	srv.tools.Store(toolset)

	view := &atomic.Pointer[capability.View]{}
	desk := kerneltest.Spawn(w.t, w.root, deskSpec(name, capability.DeskConfig{Tag: "#" + name, View: view, Audit: w.audit,
		Limits: capability.DeskLimits{ResultBytes: 24 << 20},
		Grants: capability.NewGrants([]capability.Grant{{Name: "katashiro", Tools: []string{"*"}}})}))
	s := &session{token: "token-of-" + name, desk: desk, server: srv}
	sha := sha256.Sum256([]byte(s.token))
	w.tokens.m.Store(sha, capability.Caller{Desk: desk, View: view, Tag: "#" + name, Account: desk.Account(), Token: sha, Audit: w.audit})
	for _, m := range []kernel.Msg{capability.Declared{Names: []string{"katashiro"}}, capability.Attach{Source: srv}} {
		if err := desk.Signal(m); err != nil {
			w.t.Fatal(err)
		}
	}
	if state == capability.Ready {
		kerneltest.Eventually(w.t, "the desk publishes its names", func() bool { v := view.Load(); return v != nil && len(v.Catalog()) == 2 })
	}
	s.idle = desk.Account().Used()
	return s
}

// deskSpec gives a session's desk an account of its own.
func deskSpec(name string, cfg capability.DeskConfig) kernel.Spec {
	spec := capability.DeskSpec("desk-"+name, cfg)
	spec.Scope, spec.Limit = "session_bytes", 32<<20
	return spec
}

func parsedTools(t testing.TB) []mcp.Tool {
	tools, bad, err := mcp.ParseTools([]byte(twoTools), 1000)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	return tools
}

// ready makes a server list its tools, or list them anew: what the desk keeps for those of before goes.
func (s *session) ready(t testing.TB) {
	s.server.tools.Store(&capability.Toolset{State: capability.Ready, List: capability.NewList(parsedTools(t), false, nil)})
	if err := s.desk.Signal(capability.Changed{Source: s.server}); err != nil {
		t.Fatal(err)
	}
}

// echo answers with the argument bytes and the tool, spliced into a text block and structuredContent.
func echo(c *kernel.Ctx, call capability.Call, q *kernel.Question) {
	raw := append([]byte(`{"content":[{"type":"text","text":"`+call.Tool+`"}],"structuredContent":{"got":`), call.Arguments...)
	q.Answer(capability.Result{Raw: append(raw, `},"_meta":{"x/y":1.50}}`...)}, nil)
}

// reply is a response as the tests look at it.
type reply struct {
	status int
	header http.Header
	body   string
}

// request is one HTTP request of a test; an empty header value removes a header.
type request struct {
	method, path, body string
	header             map[string]string
	ctx                context.Context
}

func (w *world) do(r request) reply {
	w.t.Helper()
	got, err := w.try(r)
	if err != nil {
		w.t.Fatalf("%+v: %v", r, err)
	}
	return got
}

func (w *world) try(r request) (reply, error) {
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = endpoint
	}
	if r.ctx == nil {
		r.ctx = context.Background()
	}
	req, err := http.NewRequestWithContext(r.ctx, r.method, w.baseURL+r.path, strings.NewReader(r.body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range r.header {
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func with(h map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for k, v := range h {
		all[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func executeBody(id, name, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"` + name + `","arguments":` + arguments + `}}}`
}

func searchBody(id, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"search_capabilities","arguments":` + arguments + `}}`
}

// message is a JSON-RPC response as the tests look at it.
type message struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Result  *struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured jsontext.Value `json:"structuredContent"`
		IsError    bool           `json:"isError"`
		Meta       map[string]any `json:"_meta"`
		Type       string         `json:"resultType"`
	} `json:"result"`
	Error *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	} `json:"error"`
}

func parse(t testing.TB, body string) message {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(body), &m, jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatalf("the response is not JSON: %v\n%.500s", err, body)
	}
	return m
}

// refusal is the code of a refusal, or what stood there instead.
func refusalOf(t testing.TB, r reply) string {
	t.Helper()
	m := parse(t, r.body)
	if r.status != http.StatusOK || m.Result == nil || !m.Result.IsError || len(m.Result.Content) != 1 || m.Result.Content[0].Text == "" {
		return fmt.Sprintf("no refusal: %d %.300s", r.status, r.body)
	}
	return fmt.Sprint(m.Result.Meta["acpod.dev/refusal"])
}

// node is the facade's node of the tree.
func (w *world) node() kernel.Node {
	for _, n := range w.k.Tree().Children {
		if n.Name == "facade" {
			return n
		}
	}
	return kernel.Node{}
}

// rawConn is a client that the test drives byte by byte.
func (w *world) rawConn() (net.Conn, *bufio.Reader) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.socket.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn, bufio.NewReader(conn)
}

func (w *world) post(body, token string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", w.socket.Addr(), len(body))
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	fmt.Fprintf(&b, "\r\n%s", body)
	return b.Bytes()
}
