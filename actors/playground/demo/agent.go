package demo

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// Agent answers the methods of ACP. Its methods are called by the SDK, requests each on a goroutine of its own.
type Agent struct {
	conn        *acp.AgentSideConnection
	tap         *tap
	out         *lines
	err         io.Writer
	transcripts transcripts
	version     string
	does        map[behaviour]bool
	asked       asked
	asides      sync.WaitGroup // what beyond answers

	mu       sync.Mutex
	client   acp.ClientCapabilities
	sessions map[acp.SessionId]*conversation
	opened   map[string][]jsontext.Value // parameters of what opens a session as they came, by method, in wire order, not yet taken
}

// conversation is one session of the client.
type conversation struct {
	id      acp.SessionId
	params  jsontext.Value // of what opened it, for /new
	servers []server
	turns   []*turn // prompts that have arrived and are not answered, in wire order
	calls   int
	mode    acp.SessionModeId
	pace    acp.SessionConfigValueId
}

// turn is one prompt between its arrival and its answer.
type turn struct {
	id     jsontext.Value // of the request
	ctx    context.Context
	cancel context.CancelFunc
	taken  bool
}

var _ acp.Agent = (*Agent)(nil)
var _ acp.AgentLoader = (*Agent)(nil)

// arrived is told of each message in wire order, before the SDK sees it: a prompt opens its turn here and a cancel ends
// the turns that came before it, whatever order the SDK's goroutines run in. True says that the SDK is not to see it.
func (a *Agent) arrived(message arrival) bool {
	switch message.Method {
	case "":
		return a.asked.answer(message)
	case acp.AgentMethodSessionNew, acp.AgentMethodSessionLoad, acp.AgentMethodSessionResume:
		a.mu.Lock()
		a.opened[message.Method] = append(a.opened[message.Method], message.Params)
		a.mu.Unlock()
		if message.Method == acp.AgentMethodSessionLoad && a.does[null] {
			a.out.amend(message.ID, func(jsontext.Value) jsontext.Value { return jsontext.Value("null") })
		}
	case acp.AgentMethodInitialize:
		a.out.amend(message.ID, a.offerMore)
	case acp.AgentMethodSessionPrompt, acp.AgentMethodSessionCancel:
		a.turned(message)
	default:
		return a.beyond(message)
	}
	return false
}

func (a *Agent) turned(message arrival) {
	var of struct {
		SessionID acp.SessionId `json:"sessionId"`
	}
	if json.Unmarshal(message.Params, &of) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	session := a.sessions[of.SessionID]
	switch {
	case session == nil:
	case message.Method == acp.AgentMethodSessionPrompt:
		ctx, cancel := context.WithCancel(context.Background())
		session.turns = append(session.turns, &turn{id: message.ID, ctx: ctx, cancel: cancel})
	default:
		for _, turn := range session.turns {
			turn.cancel()
		}
	}
}

// Initialize offers what this agent does; offerMore adds what the SDK has no name for.
func (a *Agent) Initialize(_ context.Context, request acp.InitializeRequest) (acp.InitializeResponse, error) {
	a.mu.Lock()
	a.client = request.ClientCapabilities
	a.mu.Unlock()
	offered := acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "acpod-demo", Version: a.version, Title: acp.Ptr("acpod demo agent")},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:     !a.does[noLoad] && !a.does[plain],
			McpCapabilities: acp.McpCapabilities{Http: !a.does[noHTTP]},
		},
		AuthMethods: a.logins(),
	}
	if a.does[plain] {
		return offered, nil
	}
	capabilities := &offered.AgentCapabilities
	capabilities.PromptCapabilities = acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true}
	capabilities.SessionCapabilities = acp.SessionCapabilities{
		Close: &acp.SessionCloseCapabilities{}, List: &acp.SessionListCapabilities{}, Fork: &acp.SessionForkCapabilities{},
		AdditionalDirectories: &acp.SessionAdditionalDirectoriesCapabilities{},
	}
	if !a.does[noResume] {
		capabilities.SessionCapabilities.Resume = &acp.SessionResumeCapabilities{}
	}
	if a.loggedIn() {
		capabilities.Auth.Logout = &acp.LogoutCapabilities{}
	}
	return offered, nil
}

// Cancel has nothing left to do: arrived has ended the turn when the message came.
func (a *Agent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (a *Agent) hangUp() {
	a.mu.Lock()
	sessions := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	a.asked.hangUp()
	for _, session := range sessions {
		a.end(session)
	}
	a.asides.Wait()
}

func (a *Agent) say(ctx context.Context, session acp.SessionId, update acp.SessionUpdate) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: session, Update: update})
}

func badLine(format string, values ...any) string {
	return "error: " + fmt.Sprintf(format, values...) + "\n"
}
