package facade

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// call answers a tools/call. What is wrong with the message is an error of JSON-RPC; what is wrong with what the model
// asked for, and everything that happens to the call, is a result that the model reads.
func (x *exchange) call(params []byte) {
	call, bad := parseToolCall(params)
	if bad != nil {
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "tools_call", err: bad})
		return
	}
	if call.tool == searchTool {
		x.search(call)
		return
	}
	x.execute(call)
}

// search answers search_capabilities with one text block.
func (x *exchange) search(call toolCall) {
	query, refusal := parseQuery(call.arguments)
	if refusal != nil {
		x.refused(x.paced, refusal)
		return
	}
	text, lease, err := capability.Search(x.r.Context(), x.caller, query)
	defer lease.Release()
	if err != nil {
		x.ended(x.paced, err, capability.CancelledCall)
		return
	}
	_ = textAnswer(x.id, text, x.stateless).send(x.paced, http.StatusOK)
}

// execute answers execute_capability with the result object of the provider, as it came. The lease of the result is held
// until the client has read it, so that a slow client pays for what it makes us keep.
func (x *exchange) execute(call toolCall) {
	req, refusal := parseExecution(call.arguments)
	if refusal != nil {
		x.record(call.arguments, refusal)
		x.refused(x.paced, refusal)
		return
	}
	req.RequestID = x.id.Key()
	req.EndsOnClose = x.stateless
	// From here on the desk holds the body's bytes; they go when the arguments have been written out.
	req.Bytes, x.lease = x.lease, nil

	var respond responder = x.paced
	if call.progressToken != nil && takesStream(x.r.Header) {
		// Without room for its notes the call goes on without them.
		if notes, err := x.payer().Acquire(progressQueue * longestProgress); err == nil {
			progress := startProgress(x.paced, call.progressToken)
			defer notes.Release()
			defer progress.close()
			req.Progress = progress.offer
			respond = progress
		}
	}
	delivery, err := capability.Execute(x.r.Context(), x.caller, req)
	if err != nil {
		x.ended(respond, err, capability.OutcomeUnknown)
		return
	}
	// Only a write that failed says that the client has not got it: one that reads its answer may close at once.
	if err := respond.respond(resultAnswer(x.id, delivery.Raw, x.stateless)); err != nil {
		x.front.count("client_gone")
		delivery.Missed()
		return
	}
	delivery.Done()
}

// responder writes the one answer of a call: as the whole response, or as the last event of a stream.
type responder interface{ respond(answer) error }

func (x *exchange) refused(to responder, refusal *capability.Refusal) {
	x.front.count("refused_" + string(refusal.Code))
	_ = to.respond(resultAnswer(x.id, refusal.Result(), x.stateless))
}

// ended answers a call that has no result. When the client has gone there is nobody to answer; when the facade stops, the
// client is there and is told, with the code that holds for a call of which nothing more is known.
func (x *exchange) ended(to responder, err error, stopped capability.Code) {
	var refusal *capability.Refusal
	switch {
	case errors.As(err, &refusal):
		x.refused(to, refusal)
	case x.front.stopped():
		text := "the pod is stopping; repeat this when it is back"
		if stopped == capability.OutcomeUnknown {
			text = "the pod is stopping while the call is open; look at what it did before you repeat it"
		}
		x.refused(to, &capability.Refusal{Code: stopped, Text: text})
	default:
		x.front.count("client_gone")
	}
}

// record puts a refusal that no desk sees into the audit.
func (x *exchange) record(arguments jsonrpc.Object, refusal *capability.Refusal) {
	if x.caller.Audit == nil {
		return
	}
	raw, ok := arguments.Get("name")
	name, _ := stringOf(raw, ok)
	sent, ok := present(arguments, "arguments")
	if !ok {
		sent = []byte("{}")
	}
	x.caller.Audit.Record(capability.Entry{Time: time.Now(), Event: capability.EventRefused, Provider: "-", Tool: cut(name, 128),
		Session: x.caller.Tag, ArgsSHA: sha256.Sum256(sent), Outcome: string(refusal.Code), IsError: true})
}

// stopped reports that the generation is stopping.
func (f *front) stopped() bool {
	select {
	case <-f.stopping:
		return true
	default:
		return false
	}
}
