package pod

import (
	"bufio"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"os"
	"strings"
)

// stdioServerVariable makes a process of this test binary an MCP server with one tool over stdio. Its value is how many bytes it writes
// to stderr first.
const stdioServerVariable = "ACPOD_TEST_STDIO_SERVER"

// stdioServer answers until its stdin ends.
func stdioServer() int {
	var noise int
	_, _ = fmt.Sscan(os.Getenv(stdioServerVariable), &noise)
	for range noise / 100 {
		fmt.Fprintln(os.Stderr, strings.Repeat("e", 99))
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var request struct {
			ID     jsontext.Value `json:"id"`
			Method string         `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil || strings.HasPrefix(request.Method, "notifications/") {
			continue
		}
		result := `{}`
		switch request.Method {
		case "initialize":
			result = `{"protocolVersion":"` + request.Params.Version + `","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"here"}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", request.ID, result)
	}
	return 0
}
