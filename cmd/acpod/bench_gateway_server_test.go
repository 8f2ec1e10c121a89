package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// echoVariable makes this test binary the server that the gateway benchmarks call: "stdio", or "http" on a free port.
const echoVariable = "ACPOD_TEST_ECHO"

func init() {
	switch os.Getenv(echoVariable) {
	case "stdio":
		echoOverStdio()
		os.Exit(0)
	case "http":
		echoOverHTTP()
		os.Exit(1)
	}
}

// echoTools is twenty tools: three that are called, and others beside them.
func echoTools() []any {
	schema := map[string]any{"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string", "maxLength": 100_000}}, "required": []string{"message"}, "additionalProperties": false}
	tools := []any{
		map[string]any{"name": "echo", "description": "Says the message again", "inputSchema": schema, "annotations": map[string]any{"readOnlyHint": true}},
		map[string]any{"name": "picture", "description": "A picture of 700 KB", "inputSchema": schema, "annotations": map[string]any{"readOnlyHint": true}},
		map[string]any{"name": "list_text", "description": "Five megabytes of text", "inputSchema": schema, "annotations": map[string]any{"readOnlyHint": true}},
	}
	for i := range 17 {
		tools = append(tools, map[string]any{"name": fmt.Sprintf("create_thing_%d", i), "description": fmt.Sprintf("Creates a thing of kind %d and returns its id", i), "inputSchema": schema})
	}
	return tools
}

var largeResults = sync.OnceValue(func() map[string]json.RawMessage {
	picture := base64.StdEncoding.EncodeToString(make([]byte, 700_000))
	return map[string]json.RawMessage{
		"picture":   json.RawMessage(`{"content":[{"type":"image","data":"` + picture + `","mimeType":"image/png"}]}`),
		"list_text": json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("all work and no play ", 5_000_000/21) + `"}]}`),
	}
})

func echoAnswer(message []byte) []byte {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string `json:"name"`
			Arguments struct {
				Message string `json:"message"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || len(m.ID) == 0 {
		return nil
	}
	var result any = map[string]any{}
	switch m.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "echo", "version": "1"}}
	case "tools/list":
		result = map[string]any{"tools": echoTools()}
	case "tools/call":
		if large, ok := largeResults()[m.Params.Name]; ok {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, large)
		}
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": "echo: " + m.Params.Arguments.Message}}}
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	return answer
}

func echoOverStdio() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if answer := echoAnswer(line); answer != nil {
			_, _ = os.Stdout.Write(append(answer, '\n'))
		}
		if err != nil {
			return
		}
	}
}

func echoOverHTTP() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	fmt.Println(listener.Addr())
	_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 0, max(r.ContentLength, 512))
		buffer := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buffer)
			body = append(body, buffer[:n]...)
			if err != nil {
				break
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(echoAnswer(body))
	}))
}
