package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// facade is the MCP server that the client gave this session, reached as its entry says.
type facade struct {
	url     string
	headers [][2]string
}

// tokenVariable is where the token is when the entry does not write it out.
const tokenVariable = "OPENAB_SESSION_TOKEN"

// facadeOf reads the first http entry of mcpServers. A header that only names the variable is filled in from it.
func facadeOf(params []byte, environ func(string) string) facade {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return facade{}
	}
	raw, _ := o.Get("mcpServers")
	entries, err := jsonrpc.Elements(raw)
	if err != nil {
		return facade{}
	}
	for _, entry := range entries {
		server, err := jsonrpc.ParseObject(entry)
		if err != nil {
			continue
		}
		if kind, _ := server.Text("type"); kind != "http" {
			continue
		}
		f := facade{}
		f.url, _ = server.Text("url")
		headers, _ := server.Get("headers")
		pairs, err := jsonrpc.Elements(headers)
		if err != nil {
			return f // a server without headers
		}
		for _, pair := range pairs {
			if h, err := jsonrpc.ParseObject(pair); err == nil {
				name, _ := h.Text("name")
				value, _ := h.Text("value")
				f.headers = append(f.headers, [2]string{name, strings.ReplaceAll(value, "${"+tokenVariable+"}", environ(tokenVariable))})
			}
		}
		return f
	}
	return facade{}
}

// call calls a tool and tells its result as one word or two: "ok TEXT", "error REFUSAL TEXT". flying is closed when the
// request has been written, or never will be.
func (f facade) call(ctx context.Context, tool, arguments string, flying chan<- struct{}) (string, error) {
	if f.url == "" {
		close(flying)
		return "", fmt.Errorf("the client gave no http server")
	}
	body := jsonrpc.AppendRequest(nil, jsonrpc.IntID(1), mcp.MethodToolsCall, []byte(`{"name":`+quote(tool)+`,"arguments":`+arguments+`}`))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, strings.NewReader(string(body)))
	if err != nil {
		close(flying)
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	for _, h := range f.headers {
		request.Header.Set(h[0], h[1])
	}
	var written sync.Once
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		written.Do(func() { close(flying) }) // a request may be written again on another connection
	}}))
	defer written.Do(func() { close(flying) })
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 32<<20))
	if err != nil {
		return "", err
	}
	return outcome(response.StatusCode, text)
}

// outcome reads an answer of tools/call, plain or as one event of a stream.
func outcome(status int, body []byte) (string, error) {
	if status != http.StatusOK {
		return "", fmt.Errorf("HTTP %d", status)
	}
	text := string(body)
	if at := strings.LastIndex(text, "\ndata:"); at >= 0 || strings.HasPrefix(text, "data:") {
		text, _, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(text[max(at, 0):], "\n")[len("data:"):]), "\n")
	}
	frame, fault := jsonrpc.Scan([]byte(text))
	if fault != nil {
		return "", fmt.Errorf("the answer is no message: %w", fault)
	}
	if frame.Error != nil {
		return "error " + jsonrpc.ParseError(frame.Error).Message, nil
	}
	o, err := jsonrpc.ParseObject(frame.Result)
	if err != nil {
		return "", err
	}
	said := firstText(o)
	if raw, _ := o.Get("isError"); string(raw) == "true" {
		return "error " + refusal(o) + " " + said, nil
	}
	return "ok " + said, nil
}

func refusal(result jsonrpc.Object) string {
	raw, _ := result.Get("_meta")
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return "-"
	}
	if word, err := meta.Text("acpod.dev/refusal"); err == nil && word != "" {
		return word
	}
	return "-"
}

// shown is how much of a result's text a note repeats.
const shown = 256

func firstText(result jsonrpc.Object) string {
	raw, _ := result.Get("content")
	blocks, err := jsonrpc.Elements(raw)
	if err != nil {
		return ""
	}
	for _, one := range blocks {
		block, err := jsonrpc.ParseObject(one)
		if err != nil {
			return ""
		}
		text, _ := block.Text("text")
		return text[:min(len(text), shown)]
	}
	return ""
}
