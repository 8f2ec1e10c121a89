package demo

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// protocolVersion is asked for without the probe for newer revisions: what stands here is what most agents send.
const protocolVersion = "2025-11-25"

// listTimeout bounds what session/new waits for a server.
const listTimeout = 10 * time.Second

// server is one entry of mcpServers that the agent could talk to, or the reason why it could not.
type server struct {
	name   string
	client *client.Client
	tools  map[string]bool
	err    error
}

// connect opens each http and stdio entry and lists its tools; an entry that fails keeps its reason.
func connect(declared []acp.McpServer) []server {
	var servers []server
	for _, entry := range declared {
		one := server{}
		switch {
		case entry.Http != nil:
			one.name = entry.Http.Name
			headers := map[string]string{}
			for _, header := range entry.Http.Headers {
				headers[header.Name] = expand(header.Value)
			}
			one.client, one.err = client.NewStreamableHttpClient(entry.Http.Url, transport.WithHTTPHeaders(headers))
		case entry.Stdio != nil:
			one.name = entry.Stdio.Name
			var env []string
			for _, variable := range entry.Stdio.Env {
				env = append(env, variable.Name+"="+expand(variable.Value))
			}
			one.client, one.err = client.NewStdioMCPClient(entry.Stdio.Command, env, entry.Stdio.Args...)
		default:
			continue
		}
		if one.err == nil {
			one.tools, one.err = list(one.client)
		}
		servers = append(servers, one)
	}
	return servers
}

func list(c *client.Client) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	if err := c.Start(context.Background()); err != nil {
		return nil, err
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = protocolVersion
	request.Params.ClientInfo = mcp.Implementation{Name: "acpod-demo", Version: "1"}
	if _, err := c.Initialize(ctx, request); err != nil {
		return nil, err
	}
	listed, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	tools := map[string]bool{}
	for _, tool := range listed.Tools {
		tools[tool.Name] = true
	}
	return tools, nil
}

func (s server) close() {
	if s.client != nil {
		_ = s.client.Close()
	}
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} from the environment, as some real agents do.
func expand(value string) string {
	return variable.ReplaceAllStringFunc(value, func(reference string) string {
		return os.Getenv(reference[2 : len(reference)-1])
	})
}

var bearer = regexp.MustCompile(`(?i)(bearer\s+)[A-Za-z0-9._~+/-]+=*`)

// masked hides bearer tokens; a reference to a variable stays readable.
func masked(text string) string { return bearer.ReplaceAllString(text, "${1}***") }

// call runs one tool of the server that has it. The result is raw, so that images keep their size and nothing is lost.
func (c *conversation) call(ctx context.Context, tool string, arguments any) (result, error) {
	var reasons []string
	for _, server := range c.servers {
		switch {
		case server.err != nil:
			reasons = append(reasons, server.name+": "+server.err.Error())
		case server.tools[tool]:
			request := mcp.CallToolRequest{}
			request.Params.Name, request.Params.Arguments = tool, arguments
			answer, err := server.client.CallTool(ctx, request)
			if err != nil {
				return result{}, err
			}
			return contentOf(answer), nil
		}
	}
	if len(reasons) == 0 {
		return result{}, fmt.Errorf("no MCP server offers %s: the session was opened without one", tool)
	}
	return result{}, fmt.Errorf("no MCP server offers %s (%s)", tool, masked(strings.Join(reasons, "; ")))
}

// result is what a tool gave, ready to be streamed.
type result struct {
	text    string
	isError bool
}

func contentOf(answer *mcp.CallToolResult) result {
	var parts []string
	for _, content := range answer.Content {
		switch block := content.(type) {
		case mcp.TextContent:
			parts = append(parts, block.Text)
		case mcp.ImageContent:
			parts = append(parts, fmt.Sprintf("[image %s %d bytes]", block.MIMEType, decodedSize(block.Data)))
		default:
			raw, err := json.Marshal(content)
			if err != nil {
				raw = []byte("[content that cannot be shown]")
			}
			parts = append(parts, string(raw))
		}
	}
	return result{strings.Join(parts, "\n"), answer.IsError}
}

// decodedSize is the number of bytes that base64 text stands for.
func decodedSize(base64 string) int { return len(strings.TrimRight(base64, "=")) * 3 / 4 }

// rawArguments keeps the JSON of a /call line as it was typed.
func rawArguments(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	value := jsontext.Value(text)
	if !value.IsValid() {
		return nil, fmt.Errorf("the arguments are not JSON: %s", text)
	}
	return value, nil
}
