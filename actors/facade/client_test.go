package facade

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/acpod/acpod/actors/capability"
)

// mcp-go's own client shakes hands, lists and calls: in the stateless version, which it tries first, and in an older one.
func TestTheClientOfMcpGoTalksToTheFacade(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, echo)
	for name, c := range map[string]struct {
		options []client.ClientOption
		version string
	}{
		"stateless": {nil, "2026-07-28"},
		"handshake": {[]client.ClientOption{client.WithProtocolVersion("2025-11-25")}, "2025-11-25"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			wire, err := transport.NewStreamableHTTP(w.baseURL+endpoint, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + s.token}),
				transport.WithHTTPBasicClient(w.client))
			if err != nil {
				t.Fatal(err)
			}
			cl := client.NewClient(wire, c.options...)
			if err := cl.Start(ctx); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cl.Close() }()
			hello, err := cl.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "t", Version: "1"}}})
			if err != nil {
				t.Fatal(err)
			}
			if hello.ProtocolVersion != c.version || hello.ServerInfo.Name != "oab-mcp-facade" || hello.Instructions == "" {
				t.Errorf("%+v", hello)
			}
			if id := wire.GetSessionId(); id != "" {
				t.Errorf("a session id was given: %q", id)
			}
			tools, err := cl.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil || len(tools.Tools) != 2 {
				t.Fatalf("%v %+v", err, tools)
			}
			found, err := cl.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: searchTool, Arguments: map[string]any{"query": "read"}}})
			if err != nil || found.IsError {
				t.Fatalf("%v %+v", err, found)
			}
			if text := found.Content[0].(mcp.TextContent).Text; !strings.Contains(text, `"name":"katashiro.read"`) {
				t.Errorf("found %s", text)
			}
			result, err := cl.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: executeTool, Arguments: map[string]any{"name": "katashiro.read", "arguments": map[string]any{"x": "y"}}}})
			if err != nil || result.IsError || result.Content[0].(mcp.TextContent).Text != "katashiro.read" {
				t.Fatalf("%v %+v", err, result)
			}
			refused, err := cl.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: executeTool, Arguments: map[string]any{"name": "no.such"}}})
			if err != nil || !refused.IsError {
				t.Errorf("%v %+v", err, refused)
			}
			if _, err := cl.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "katashiro.read"}}); err == nil {
				t.Error("a tool that is not listed was called")
			}
		})
	}
}
