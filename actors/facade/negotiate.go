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
var negotiated = map[string]bool{"initialize": true, "ping": true, "tools/list": true, "server/discover": true}

// negotiator answers the methods that say who the facade is and what it offers. It has no state of its own that a
// request could change: the answers are the same for everybody, at once, whatever goes on behind the facade.
type negotiator struct{ handler http.Handler }

var errNoAnswer = errors.New("facade: the protocol library gave no JSON-RPC answer")

func newNegotiator(version string, log *slog.Logger) *negotiator {
	s := server.NewMCPServer("oab-mcp-facade", version,
		server.WithToolCapabilities(false), server.WithInstructions(instructions), server.WithRecovery())
	for _, tool := range metaTools {
		listed := mcp.NewToolWithRawSchema(tool.name, tool.description, []byte(tool.schema))
		listed.Annotations = tool.hints
		s.AddTool(listed, unreachable)
	}
	return &negotiator{handler: server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true),
		server.WithStreamableHTTPProtocolVersions(versions...), server.WithStreamableHTTPLogger(log))}
}

// unreachable stands where mcp-go wants a handler: tools/call never gets that far.
func unreachable(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, errors.New("tools/call is not served here")
}

// answer lets mcp-go answer one request and returns its HTTP status and either the result or the error object. mcp-go
// reads ids as floating point numbers, so it is shown an id of ours and the caller splices the real one.
func (n *negotiator) answer(ctx context.Context, h http.Header, method string, params []byte) (status int, result, failure []byte, err error) {
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
	n.handler.ServeHTTP(w, r)
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
