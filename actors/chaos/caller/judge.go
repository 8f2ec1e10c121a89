package caller

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// result is what is read of a tool's result.
type result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError bool `json:"isError"`
	Meta    struct {
		Refusal string            `json:"acpod.dev/refusal"`
		Chaos   *ledger.Signature `json:"chaos"`
	} `json:"_meta"`
}

// refusals are the words that the contract knows.
var refusals = map[string]bool{
	"unknown": true, "malformed_name": true, "server_not_granted": true, "tool_not_granted": true, "pin_changed": true, "bad_arguments": true,
	"detached": true, "needs_login": true, "breaker_open": true, "overloaded": true, "timeout": true, "cancelled": true, "outcome_unknown": true,
}

// judge reads the answer to a call.
func (c *Callers) judge(p plan, response *http.Response, text []byte) ledger.Answer {
	if response.StatusCode != http.StatusOK {
		return ledger.Answer{End: ledger.Unavailable, Note: strconv.Itoa(response.StatusCode)}
	}
	body, more := message(response, text)
	if more {
		c.o.Book.Break(invariant.AnsweredOnce, []string{p.target.Place}, "call %d was answered more than once in one stream", p.number)
	}
	f, fault := jsonrpc.Scan(body)
	if fault != nil || f.Kind != jsonrpc.Response || string(f.ID.Raw()) != strconv.Itoa(p.number) {
		c.o.Book.Break(invariant.AnsweredOnce, []string{p.target.Place}, "call %d was answered with %.300q, which is no answer to it", p.number, body)
		return ledger.Answer{End: ledger.RPCError, Note: "no answer to this request"}
	}
	if f.Error != nil {
		return ledger.Answer{End: ledger.RPCError, Note: jsonrpc.ParseError(f.Error).Error()}
	}
	if len(f.Result) > c.o.Result {
		c.o.Book.Break(invariant.Told, []string{p.target.Place}, "call %d got a result of %d bytes, more than result_bytes %d", p.number, len(f.Result), c.o.Result)
	}
	var r result
	if err := json.Unmarshal(f.Result, &r); err != nil {
		return ledger.Answer{End: ledger.Result, Note: fmt.Sprintf("%v in %.200q", err, f.Result)}
	}
	if word := r.Meta.Refusal; word != "" {
		if !refusals[word] || !r.IsError || len(r.Content) != 1 {
			c.o.Book.Break(invariant.Told, []string{p.target.Place}, "call %d was refused with %q, isError %v and %d blocks", p.number, word, r.IsError, len(r.Content))
		} else {
			c.o.Book.Exercise(invariant.Told)
		}
		return ledger.Answer{End: ledger.End(word), Refusal: word}
	}
	a := ledger.Answer{End: ledger.Result, Signed: r.Meta.Chaos}
	if r.IsError {
		a.End = ledger.ToolError
	}
	if a.Signed == nil {
		if r.IsError { // an error of the extension, as the facade shows it, is not signed
			a.End = ledger.RPCError
		}
		a.Note = fmt.Sprintf("%.200q", f.Result)
	}
	return a
}

// Revoked calls with a token that must be dead: an anonymous caller knows no session's tools. It says what is wrong, or nothing.
func (c *Callers) Revoked(ctx context.Context, url, token string) string {
	number := int(c.next.Add(1))
	p := plan{number: number, target: Target{URL: url, Token: token}, tool: c.o.Tools[0], arguments: fmt.Appendf(nil, `{"n":%d}`, number)}
	c.o.Calls.Begin(ledger.Call{Number: number, Session: -1, Sum: ledger.Sum(p.arguments), ReadOnly: true})
	ctx, cancel := context.WithTimeout(ctx, c.o.Bound)
	defer cancel()
	response, err := c.post(ctx, p.target, p.body(), p)
	if err != nil {
		c.o.Calls.End(number, ledger.Answer{End: ledger.Aborted})
		return ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	answer := c.judge(p, response, text)
	if answer.Refusal == "" && answer.Signed == nil {
		c.o.Calls.End(number, ledger.Answer{End: ledger.Aborted})
		return ""
	}
	c.o.Calls.End(number, answer)
	if answer.Refusal != "unknown" {
		return fmt.Sprintf("the token of a closed session still does something: a call with it ended as %s", answer.End)
	}
	return ""
}
