package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Options are what one process is made of.
type Options struct {
	In       io.Reader
	Out, Err io.Writer
	Host     Host
	Plan     Plan
	Ordinal  uint64 // of this process in its run: chance begins at Plan.Seed and here
	Records  string // folder; "" = nothing is written down
	Environ  func(name string) string
}

// inputBytes bounds a line that the pod sends; it never sends one that long.
const inputBytes = 64 << 20

// Run serves one client until its side ends or ctx does. With a Host that is a real process it may not return.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{
		opts: o, out: &output{w: o.Out, asked: map[string]chan answer{}}, ctx: ctx,
		faults:   newArmoury(o),
		sessions: map[string]*conversation{},
	}
	defer a.working.Wait()
	defer cancel()
	a.strike(AtStart, nil)
	in := bufio.NewReaderSize(o.In, 64<<10)
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			a.strike(AtEOF, nil)
			return nil
		}
		if err != nil {
			return err
		}
		a.faults.hearing(ctx)
		a.message(line)
	}
}

// agent is one process.
type agent struct {
	opts    Options
	out     *output
	ctx     context.Context
	faults  *armoury
	working sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*conversation
	opened   int // sessions so far that were new
}

// conversation is one session of the client.
type conversation struct {
	id     string
	facade facade
	again  atomic.Pointer[[]byte] // an answer that is to come once more

	mu   sync.Mutex
	turn *turn // the one that runs
	used int   // tool calls, for their ids
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > inputBytes:
			return nil, fmt.Errorf("the client sent a line of more than %d bytes", inputBytes)
		}
	}
}

// message does what one line of the client asks for.
func (a *agent) message(line []byte) {
	frame, fault := jsonrpc.Scan(line)
	if fault != nil && frame.Kind != jsonrpc.Response { // a response to an id of a string is one of ours
		if b := jsonrpc.AppendFault(nil, fault); b != nil {
			a.out.line(b)
		}
		return
	}
	switch {
	case frame.Kind == jsonrpc.Response:
		a.out.answered(frame)
	case frame.Method == acp.MethodInitialize:
		a.initialize(frame.ID)
	case frame.Method == acp.MethodSessionNew:
		a.open(frame.ID, frame.Params, "")
	case frame.Method == acp.MethodSessionLoad, frame.Method == acp.MethodSessionResume:
		a.open(frame.ID, frame.Params, sessionOf(frame.Params))
	case frame.Method == acp.MethodSessionPrompt:
		a.prompt(frame.ID, frame.Params)
	case frame.Method == acp.MethodSessionCancel:
		a.cancel(sessionOf(frame.Params))
	case frame.Method == acp.MethodSessionClose:
		a.close(frame.ID, sessionOf(frame.Params))
	case frame.Kind == jsonrpc.Request:
		a.out.failure(frame.ID, jsonrpc.UnknownMethod(frame.Method))
	}
}

func sessionOf(params []byte) string {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return ""
	}
	id, _ := o.Text("sessionId") // "" is nobody's
	return id
}

func (a *agent) initialize(id jsonrpc.ID) {
	a.strike(AtInitialize, nil)
	name, title := "acpod-chaos", "a simulated agent"
	if _, struck := a.faults.take(AtInitialize, Hostile, nil); struck {
		name, title = hostileName, hostileText
	}
	a.reply(AtInitialize, nil, id, `{"protocolVersion":1,"agentInfo":{"name":`+quote(name)+`,"title":`+quote(title)+`,"version":`+quote(title)+`},`+
		`"agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":true},"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},`+
		`"sessionCapabilities":{"resume":{},"close":{}}},"authMethods":[]}`)
}

// open is session/new, and load and resume with the id that is to be opened again: nothing is remembered of it.
func (a *agent) open(id jsonrpc.ID, params []byte, again string) {
	session := &conversation{id: again, facade: facadeOf(params, a.opts.Environ)}
	if again == "" {
		session.id = a.fresh()
	}
	a.strike(AtNew, &turn{session: session})
	result := `{}`
	if again == "" {
		result = `{"sessionId":` + quote(session.id) + `}`
		if _, struck := a.faults.take(AtNew, Hostile, nil); struck {
			result = `{"sessionId":` + quote(session.id) + `,"modes":{"currentModeId":` + quote(hostileText) + `,"availableModes":[]},"_meta":{` + quote(hostileText) + `:` + quote(hostileText) + `}}`
		}
	}
	a.mu.Lock()
	a.sessions[session.id] = session
	a.mu.Unlock()
	a.reply(AtNew, nil, id, result)
	a.strike(AtOpened, &turn{session: session})
}

// fresh is an id that no other session of this process has; all agents give the same ones, which are to be kept apart by whoever knows
// several agents.
func (a *agent) fresh() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		a.opened++
		id := fmt.Sprintf("chaos-%d", a.opened)
		if a.sessions[id] == nil { // else it was loaded
			return id
		}
	}
}

func (a *agent) find(session string) *conversation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[session]
}

func (a *agent) close(id jsonrpc.ID, session string) {
	a.mu.Lock()
	found := a.sessions[session]
	delete(a.sessions, session)
	a.mu.Unlock()
	if found == nil {
		a.out.failure(id, acp.UnknownSession(session))
		return
	}
	found.stop()
	a.out.result(id, `{}`)
}

func (a *agent) cancel(session string) {
	found := a.find(session)
	if found == nil {
		return
	}
	found.mu.Lock()
	turn := found.turn
	found.mu.Unlock()
	if turn == nil {
		return
	}
	a.strike(AtCancel, turn)
	turn.cancelled.Store(true)
	turn.end()
}

func (s *conversation) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		s.turn.end()
	}
}
