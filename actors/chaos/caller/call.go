package caller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// ArgumentCanary stands in the arguments of every call and in no log.
const ArgumentCanary = "cnry-argument-c0ffee1d42"

// plan is what one call does.
type plan struct {
	number    int
	target    Target
	tool      Tool
	arguments []byte
	key       string // idempotency
	fault     string
	after     time.Duration // of an abort or a cancel
	modern    bool          // of the protocol in which a closed request ends its call
	slowly    bool          // the result is read byte by byte
	doomed    bool          // it is taken back, or left, once it is executed, and not answered before
}

// call makes one call; due is when it should have started.
func (c *Callers) call(number int, due time.Time) {
	r := c.o.Dice.Of("call", 0, number)
	target, ok := c.o.Pick(r.IntN)
	if !ok {
		c.o.Tally.Count("no_session")
		return
	}
	p := c.plan(number, target, r)
	if target.Agent != nil {
		c.prompt(p, due)
		return
	}
	c.o.Calls.Begin(ledger.Call{Number: number, Session: target.Session, Sum: ledger.Sum(p.arguments), ReadOnly: p.tool.ReadOnly, Place: target.Place, Doomed: p.doomed})
	answer := c.make(p)
	c.o.Calls.End(number, answer)
	c.o.Tally.Add(string(answer.End), time.Since(due))
	if answer.End == ledger.Aborted && p.repeated() {
		c.again(p)
	}
}

func (c *Callers) plan(number int, target Target, r *rand.Rand) plan {
	p := plan{number: number, target: target, tool: c.o.Tools[r.IntN(len(c.o.Tools))], modern: r.IntN(4) == 0}
	length := r.IntN(1 << 10)
	if r.IntN(100) == 0 {
		length = r.IntN(c.o.Request / 2)
	}
	p.arguments = fmt.Appendf(nil, `{"n":%d,"s":"%s%s"}`, number, ArgumentCanary, strings.Repeat("a", length))
	p.fault = c.o.Faults.Draw(r, fault.Call)
	p.after = time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
	if p.fault == "abort" && r.IntN(2) == 0 || r.Float64() < c.o.Keyed {
		p.key = fmt.Sprintf("key-%d-%08x", number, r.Uint32())
	}
	p.slowly = p.fault == "slowread"
	switch p.fault {
	case "cancelrace":
		p.doomed = !p.modern && r.IntN(2) == 0
	case "abort": // one that is repeated would be waited for in vain
		p.doomed = !p.repeated() && r.IntN(2) == 0
	}
	return p
}

// repeated tells whether the call is made again when its request was closed: under its key, unless it only reads and may be done again.
func (p plan) repeated() bool { return p.key != "" && !p.tool.ReadOnly }

// atOnce tells whether the call ends when its request is closed; any other runs on for a while, or for its repeat, which may come before
// the pod knows of the end of the first request.
func (p plan) atOnce() bool { return (p.modern || p.tool.ReadOnly) && !p.repeated() }

// again repeats a call whose end its caller has not seen, under its key: it may have been executed, and is not executed again. Half of
// the repeats come while the call still runs on for nobody, and half when that is over.
func (c *Callers) again(p plan) {
	wait := min(p.after, c.o.Patient)
	if p.number%2 == 0 {
		wait += c.o.Patient
	}
	<-time.After(wait)
	p.fault = ""
	answer := c.make(p)
	answer.Again = true
	c.o.Calls.End(p.number, answer)
	c.o.Tally.Count("again_" + string(answer.End))
}

func (p plan) body() []byte {
	b := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":%q`, p.number, p.tool.Name)
	if p.key != "" {
		b = fmt.Appendf(b, `,"idempotency_key":%q`, p.key)
	}
	b = append(b, `,"arguments":`...)
	b = append(b, p.arguments...)
	b = append(b, '}')
	if p.modern {
		b = append(b, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"caller","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`...)
	}
	return append(b, "}}"...)
}

// make sends the call and reads its answer.
func (c *Callers) make(p plan) ledger.Answer {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Bound)
	defer cancel()
	aborted := false
	switch p.fault {
	case "abort":
		c.o.Faults.Injected("abort", "")
		timer := time.AfterFunc(p.after, func() {
			if c.begun(ctx, p) {
				c.o.Calls.Leave(p.number, time.Now(), !p.atOnce())
				cancel()
			}
		})
		defer timer.Stop()
		aborted = true
	case "cancelrace":
		c.o.Faults.Injected("cancelrace", "call")
		timer := time.AfterFunc(p.after, func() { c.takeBack(ctx, p) })
		defer timer.Stop()
	}
	body := p.body()
	c.bytes.Add(int64(len(body)))
	var sent sending
	response, err := c.post(sent.trace(ctx), p.target, body, p)
	if err == nil {
		defer response.Body.Close()
		var text []byte
		text, err = c.readAll(response.Body, p)
		c.bytes.Add(int64(len(text)))
		if err == nil {
			return c.judge(p, response, text)
		}
	}
	switch {
	case aborted && ctx.Err() == context.Canceled:
		return ledger.Answer{End: ledger.Aborted}
	case ctx.Err() != nil:
		return ledger.Answer{End: ledger.Unanswered, Note: fmt.Sprintf("%s in %s, and no answer", p.tool.Name, c.o.Bound)}
	}
	return ledger.Answer{End: ledger.Lost, Note: err.Error(), Late: sent.late(c.o.Deadline)}
}

func (c *Callers) post(ctx context.Context, t Target, body []byte, p plan) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	version := "2025-11-25"
	if p.modern {
		version = "2026-07-28"
		request.Header.Set("Mcp-Method", "tools/call")
		request.Header.Set("Mcp-Name", "execute_capability")
	}
	request.Header.Set("MCP-Protocol-Version", version)
	request.Header.Set("Authorization", "Bearer "+t.Token)
	return c.client.Do(request)
}

// takeBack cancels a call that is under way, or has just ended; one that is doomed when it is being executed.
func (c *Callers) takeBack(ctx context.Context, p plan) {
	if c.begun(ctx, p) && !c.cancel(p) {
		c.o.Calls.Spare(p.number)
	}
}

// begun waits until a doomed call is being executed; false: it ended before.
func (c *Callers) begun(ctx context.Context, p plan) bool {
	for p.doomed && !c.o.Calls.Begun(p.number) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// cancel sends notifications/cancelled, and tells whether the pod took it.
func (c *Callers) cancel(p plan) bool {
	ctx, stop := context.WithTimeout(context.Background(), c.o.Bound)
	defer stop()
	p.modern = false
	body := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.Itoa(p.number) + `,"reason":"the caller has changed its mind"}}`
	response, err := c.post(ctx, p.target, []byte(body), p)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		return false
	}
	c.o.Book.Exercise(invariant.Told)
	return true
}

// readAll reads an answer, slowly when that is the plan.
func (c *Callers) readAll(from io.Reader, p plan) ([]byte, error) {
	if p.slowly {
		c.o.Faults.Injected("slowread", "result")
		var text []byte
		one := make([]byte, 256)
		for range 200 {
			n, err := from.Read(one)
			text = append(text, one[:n]...)
			if err == io.EOF {
				return text, nil
			}
			if err != nil {
				return text, err
			}
			<-time.After(5 * time.Millisecond)
		}
		rest, err := io.ReadAll(from)
		return append(text, rest...), err
	}
	return io.ReadAll(from)
}

// message takes the JSON-RPC answer out of a body: the body itself, or the last event of a stream that has an id. more says that there
// were several.
func message(response *http.Response, text []byte) (answer []byte, more bool) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return text, false
	}
	for line := range bytes.Lines(text) {
		data, is := bytes.CutPrefix(line, []byte("data:"))
		if !is {
			continue
		}
		f, fault := jsonrpc.Scan(bytes.TrimSpace(data))
		if fault == nil && f.Kind == jsonrpc.Response {
			more = answer != nil
			answer = bytes.TrimSpace(data)
		}
	}
	return answer, more
}
