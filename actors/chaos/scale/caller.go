package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// callers are what stands for the agents: one HTTP client with a bounded number of connections that are kept.
type callers struct{ http *http.Client }

func newCallers(n int) *callers {
	return &callers{&http.Client{Transport: &http.Transport{MaxConnsPerHost: n, MaxIdleConnsPerHost: n, DisableCompression: true}}}
}

func (c *callers) close() { c.http.CloseIdleConnections() }

// answerBytes bounds what is read of one answer beyond its text.
const answerBytes = 64 << 10

// call calls the tool of an extension with the token of its session, and checks that the answer is that extension's to that call.
func (c *callers) call(ctx context.Context, e *extension, number int) error {
	id := strconv.Itoa(number)
	body := make([]byte, 0, len(e.filler)+320)
	body = append(body, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"`+toolName+
		`","arguments":{"call":`+id+`,"selector":"#field","text":"`...)
	body = append(append(body, e.filler...), `"}}}}`...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + e.token}}
	response, err := c.http.Do(request)
	if err != nil {
		return &failure{"transport", err}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, int64(len(e.filler)+answerBytes)))
	_ = response.Body.Close()
	if err != nil {
		return &failure{"transport", err}
	}
	if response.StatusCode != http.StatusOK {
		return &failure{"status " + strconv.Itoa(response.StatusCode), fmt.Errorf("%.200q", text)}
	}
	return judge(text, id, signed(e.number, []byte(id), e.filler))
}

// judge checks the answer to a call: its id, and the text that only one extension can have written for it.
func judge(answer []byte, id, want string) error {
	f, fault := jsonrpc.Scan(answer)
	if fault != nil || f.Kind != jsonrpc.Response || string(f.ID.Raw()) != id {
		return &failure{"malformed", fmt.Errorf("the answer to %s is %.200q", id, answer)}
	}
	if f.Error != nil {
		return &failure{"error", fmt.Errorf("%.300q", f.Error)}
	}
	result, err := mcp.ParseResult(f.Result)
	if err != nil {
		return &failure{"malformed", err}
	}
	if result.IsError {
		kind := "is_error"
		if meta, err := jsonrpc.ParseObject(result.Meta); err == nil {
			if refusal, _ := meta.Text(mcp.MetaRefusal); refusal != "" {
				kind = refusal
			}
		}
		return &failure{kind, fmt.Errorf("%.300q", result.Content)}
	}
	if !bytes.Contains(result.Content, []byte(`"text":"`+want+`"`)) {
		return &failure{"foreign", errors.New("the result is not what the extension answers to this call: " + strconv.QuoteToASCII(string(result.Content[:min(200, len(result.Content))])))}
	}
	return nil
}
