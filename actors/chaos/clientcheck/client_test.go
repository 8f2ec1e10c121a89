package clientcheck

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// client is a client of a pod as it should be, with places where it can be bent.
type client struct {
	url, secret string
	generations string // a server for each: 0, A, B, C
	bend        bend

	socket  *wire.Socket
	next    int
	opening string // the method that opened, or will open, the session
	session string
	second  string            // another one, of a client that has two
	given   int               // connection ids
	open    map[string]string // connection id → server's name
	held    []string          // answers that are to be mixed up
	mixing  sync.Mutex
}

// bend is what a test changes.
type bend struct {
	dial   func(*wire.Dial)
	start  func(c *client)                         // the socket is open, and nothing was said
	hello  func(c *client) string                  // params of initialize
	params func(c *client, method string) string   // params of session/new and session/resume; "" are the usual ones
	method func(c *client, again bool) string      // that opens
	opened func(c *client)                         // the session is open
	out    func(c *client, text string) []string   // what goes in place of a message
	serve  func(c *client, q asked) (string, bool) // the member result or error of an answer, "" for none; false: as usual
	noted  func(c *client, q asked)                // a notification came
	pause  func(attempt int) time.Duration
	mix    bool // answers that wait together change places
}

// asked is what the pod sent.
type asked struct {
	jsonrpc.Frame
	in     acp.Inbound // of an MCP message
	server string      // whose it is, "" for nobody's
}

// live is the client's whole life; it ends when the pod is gone.
func (c *client) live(ctx context.Context) {
	if c.secret == "" {
		c.secret = rand.Text()
	}
	for attempt := 0; ctx.Err() == nil; {
		d := wire.Dial{URL: c.url, Timeout: 10 * time.Second}
		if c.bend.dial != nil {
			c.bend.dial(&d)
		}
		socket, err := wire.Open(ctx, d)
		if err != nil {
			if _, refused := errors.AsType[*wire.Refused](err); !refused {
				return
			}
			c.sleep(ctx, attempt)
			attempt++
			continue
		}
		stop := context.AfterFunc(ctx, socket.Reset)
		c.socket, c.open, attempt = socket, map[string]string{}, 0
		c.talk()
		stop()
		socket.Reset()
		c.sleep(ctx, attempt)
	}
}

func (c *client) sleep(ctx context.Context, attempt int) {
	pause := 20 * time.Millisecond << min(attempt, 6)
	if c.bend.pause != nil {
		pause = c.bend.pause(attempt)
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

// talk is one socket.
func (c *client) talk() {
	if c.bend.start != nil {
		c.bend.start(c)
	}
	params := fmt.Sprintf(`{"protocolVersion":1,"clientInfo":{"name":"good","version":"1"},"clientCapabilities":{},"_meta":{"acpod.dev/client":%q}}`, c.secret)
	if c.bend.hello != nil {
		params = c.bend.hello(c)
	}
	c.request("initialize", params)
	for {
		text, err := c.socket.Read()
		if err != nil {
			return
		}
		f, fault := jsonrpc.Scan(text)
		if fault != nil && f.Kind != jsonrpc.Response { // which it says of an id that is no pod's
			panic(fault)
		}
		if f.Kind == jsonrpc.Response {
			c.answered(f)
		} else {
			c.asked(f)
		}
	}
}

func (c *client) request(method, params string) {
	c.next++
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s %d","method":%q,"params":%s}`, method, c.next, method, params))
}

func (c *client) say(text string) {
	texts := []string{text}
	if c.bend.out != nil {
		texts = c.bend.out(c, text)
	}
	for _, one := range texts {
		_ = c.socket.Text([]byte(one))
	}
}

func (c *client) answered(f jsonrpc.Frame) {
	if f.Error != nil {
		if strings.Contains(f.ID.String(), "session/resume") { // it is another client to the pod
			c.session = ""
			c.request("session/new", c.openParams("session/new"))
		}
		return
	}
	switch id := f.ID.String(); {
	case strings.Contains(id, "initialize"):
		c.opening = "session/new"
		if c.session != "" {
			c.opening = "session/resume"
		}
		if c.bend.method != nil {
			c.opening = c.bend.method(c, c.session != "")
		}
		c.request(c.opening, c.openParams(c.opening))
	case strings.Contains(id, "session/new"), strings.Contains(id, "session/resume"):
		o, _ := jsonrpc.ParseObject(f.Result)
		if id, _ := o.Text("sessionId"); id != "" && c.second == "?" {
			c.second = id
		} else if id != "" {
			c.session = id
		}
		if c.bend.opened != nil {
			c.bend.opened(c)
		}
	}
}

func (c *client) openParams(method string) string {
	if c.bend.params != nil {
		if params := c.bend.params(c, method); params != "" {
			return params
		}
	}
	params := `{"cwd":"/","mcpServers":` + c.declared() + "}"
	if method == "session/resume" {
		params = fmt.Sprintf(`{"sessionId":%q,`, c.session) + params[1:]
	}
	return params
}

func (c *client) declared() string {
	var all []string
	for _, g := range c.generations {
		name := "server-" + string(g)
		switch g {
		case '0':
			all = append(all, fmt.Sprintf(`{"type":"http","name":%q,"url":"acp:%s","headers":[]}`, name, name))
		case 'A':
			all = append(all, fmt.Sprintf(`{"type":"acp","name":%q,"id":%q}`, name, name))
		default:
			all = append(all, fmt.Sprintf(`{"type":"acp","name":%q,"serverId":%q}`, name, name))
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// asked serves the pod.
func (c *client) asked(f jsonrpc.Frame) {
	q := asked{Frame: f}
	if acp.IsInbound(f.Method) {
		q.in, _ = acp.ParseInbound(f.Method, f.Params)
		q.server = c.open[q.in.Target]
		if q.in.Stateless && strings.Contains(c.generations, "C") && q.in.Target == "server-C" {
			q.server = "server-C"
		}
	}
	if f.Kind == jsonrpc.Notification {
		if f.Method == acp.MethodMCPDisconnect0 {
			delete(c.open, c.member(f, "connection_id"))
		}
		if c.bend.noted != nil {
			c.bend.noted(c, q)
		}
		return
	}
	answer, bent := "", false
	if c.bend.serve != nil {
		answer, bent = c.bend.serve(c, q)
	}
	if !bent {
		answer = c.serve(q)
	}
	if answer == "" {
		return
	}
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID.Raw(), answer)
	if c.bend.mix {
		c.mix(text)
		return
	}
	c.say(text)
}

// mix holds answers for a moment, and lets those that came together go under each other's ids.
func (c *client) mix(text string) {
	c.mixing.Lock()
	defer c.mixing.Unlock()
	c.held = append(c.held, text)
	if len(c.held) > 1 {
		return
	}
	time.AfterFunc(30*time.Millisecond, func() {
		c.mixing.Lock()
		defer c.mixing.Unlock()
		ids, bodies := make([]string, len(c.held)), make([]string, len(c.held))
		for k, one := range c.held {
			id, body, _ := strings.Cut(one[len(`{"jsonrpc":"2.0","id":`):], ",")
			ids[k], bodies[k] = id, body
		}
		if len(ids) > 3 {
			ids = append(ids[1:], ids[0])
		}
		for k := range ids {
			c.say(`{"jsonrpc":"2.0","id":` + ids[k] + "," + bodies[k])
		}
		c.held = nil
	})
}

func (c *client) member(f jsonrpc.Frame, name string) string {
	o, _ := jsonrpc.ParseObject(f.Params)
	text, _ := o.Text(name)
	return text
}

func failure(code int) string { return fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, code) }

func result(text string) string { return `"result":` + text }

// serve answers a request of the pod as it should be.
func (c *client) serve(q asked) string {
	switch q.Method {
	case acp.MethodMCPConnect:
		id := c.member(q.Frame, "acpId") + c.member(q.Frame, "serverId")
		switch {
		case c.member(q.Frame, "serverId") == "server-C", c.member(q.Frame, "serverId") != "" && !strings.Contains(c.generations, "B"):
			return failure(jsonrpc.MethodNotFound)
		case !strings.Contains(c.declared(), fmt.Sprintf(":%q", id)):
			return failure(jsonrpc.InvalidParams)
		}
		return result(fmt.Sprintf(`{"connectionId":%q}`, c.connect(id)))
	case acp.MethodMCPConnect0:
		id := strings.TrimPrefix(c.member(q.Frame, "acp_id"), "acp:")
		if id != "server-0" {
			return failure(jsonrpc.InvalidParams)
		}
		return result(fmt.Sprintf(`{"connection_id":%q}`, c.connect(id)))
	case acp.MethodMCPDisconnect:
		if id := c.member(q.Frame, "connectionId"); c.open[id] == "" {
			return failure(jsonrpc.InvalidParams)
		}
		delete(c.open, c.member(q.Frame, "connectionId"))
		return result("{}")
	case acp.MethodMCPMessage, acp.MethodMCPMessage0:
		if q.server == "" {
			return failure(jsonrpc.InvalidParams)
		}
		answer := c.mcp(q)
		if q.in.Stateless {
			answer = `"result":{` + answer + "}"
		}
		return answer
	case acp.MethodPermission:
		return result(string(acp.SelectedOutcome("client-check-reject")))
	}
	return failure(jsonrpc.MethodNotFound)
}

func (c *client) connect(server string) string {
	c.given++
	id := fmt.Sprintf("connection %d", c.given)
	c.open[id] = server
	return id
}

// mcp is the server inside: two tools on two pages.
func (c *client) mcp(q asked) string {
	o, _ := jsonrpc.ParseObject(q.in.Params)
	switch q.in.Method {
	case mcp.MethodInitialize:
		return result(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"good","version":"1"}}`)
	case mcp.MethodToolsList:
		if cursor, _ := o.Text("cursor"); cursor == "two" {
			return result(fmt.Sprintf(`{"tools":[{"name":"%s.click","inputSchema":{"type":"object"}}]}`, q.server))
		}
		return result(fmt.Sprintf(`{"tools":[{"name":"%s.read","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"selector":{"type":"string"}},"required":["selector"]}}],"nextCursor":"two"}`, q.server))
	case mcp.MethodToolsCall:
		name, _ := o.Text("name")
		arguments, _ := jsonrpc.ParseObject(get(o, "arguments"))
		switch {
		case name != q.server+".read" && name != q.server+".click":
			return failure(jsonrpc.InvalidParams)
		case name == q.server+".read" && !arguments.Has("selector"):
			return result(`{"content":[{"type":"text","text":"selector is missing"}],"isError":true}`)
		}
		return result(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, name))
	}
	return failure(jsonrpc.MethodNotFound)
}
