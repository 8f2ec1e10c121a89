package facade

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// negotiated are the methods that mcp-go answers. The set is closed on purpose: of what else it has, subscriptions hold
// a stream open for ever, cancellations reach another caller's call, and logging keeps something for every session id
// that a stranger thinks up.
var negotiated = map[string]bool{"initialize": true, "ping": true, "server/discover": true}

// manner is how the facade introduces itself.
type manner uint8

const (
	plain    manner = iota // to whoever shakes hands without a live token
	known                  // to one with a token: what it says of itself is remembered, so it may set a log level
	perQuery               // in the stateless versions, where each request says its own
	manners
)

// negotiator answers the methods that say who the facade is. It has no state of its own that a
// request could change: the answers are the same for everybody, at once, whatever goes on behind the facade.
type negotiator struct{ handlers [manners]http.Handler }

var errNoAnswer = errors.New("facade: the protocol library gave no JSON-RPC answer")

func newNegotiator(version string, shows offer, log *slog.Logger) *negotiator {
	text := instructions
	if shows == ownTools {
		text = ownInstructions
	}
	handler := func(more ...server.ServerOption) http.Handler {
		s := server.NewMCPServer("oab-mcp-facade", version, append(more,
			server.WithToolCapabilities(false), server.WithInstructions(text), server.WithRecovery(),
			server.WithMethodCacheHints(mcp.MethodServerDiscover, unchanging.Milliseconds(), mcp.CacheScopePublic))...)
		return server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true),
			server.WithStreamableHTTPProtocolVersions(versions...), server.WithStreamableHTTPLogger(log))
	}
	return &negotiator{[manners]http.Handler{
		plain: handler(), known: handler(server.WithLogging()),
		// An empty list of prompts is declared, so that a client caches it; one of resources is not, as some agents then
		// offer their model two more tools.
		perQuery: handler(server.WithLogging(), server.WithPromptCapabilities(false)),
	}}
}

// answer lets mcp-go answer one request and returns its HTTP status and either the result or the error object. mcp-go
// reads ids as floating point numbers, so it is shown an id of ours and the caller splices the real one.
func (n *negotiator) answer(ctx context.Context, as manner, h http.Header, method string, params []byte) (status int, result, failure []byte, err error) {
	body := jsonrpc.AppendRequest(nil, jsonrpc.IntID(1), method, params)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		if v := h.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	w := &answerBuffer{header: http.Header{}, status: http.StatusOK}
	n.handlers[as].ServeHTTP(w, r)
	frame, bad := jsonrpc.Scan(w.body.Bytes())
	if bad != nil || frame.Kind != jsonrpc.Response {
		return 0, nil, nil, errNoAnswer
	}
	return w.status, frame.Result, frame.Error, nil
}

// answerBuffer keeps what mcp-go writes. It is no Flusher, so mcp-go cannot turn the answer into a stream.
type answerBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *answerBuffer) Header() http.Header         { return b.header }
func (b *answerBuffer) WriteHeader(status int)      { b.status = status }
func (b *answerBuffer) Write(p []byte) (int, error) { return b.body.Write(p) }
