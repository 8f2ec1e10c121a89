package facade

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// call answers a tools/call. What is wrong with the message is an error of JSON-RPC; what is wrong with what the model
// asked for, and everything that happens to the call, is a result that the model reads.
func (x *exchange) call(params []byte) {
	call, bad := parseToolCall(params, x.front.isDirect)
	if bad != nil {
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "tools_call", err: bad})
		return
	}
	if !x.stateless { // who shakes hands has said there what it can do
		known := x.front.clients.of(x.caller)
		call.logLevel, call.elicits = known.level, known.elicits
	} else if x.caller.Anonymous() {
		call.elicits = 0
	}
	switch {
	case call.tool == searchTool && !x.front.isDirect(searchTool):
		x.search(call)
	case x.stateless && call.state != "":
		x.resumed(call)
	case call.tool == executeTool && !x.front.isDirect(executeTool):
		x.execute(call)
	default:
		x.direct = call.tool
		x.start(capability.Request{Name: call.tool, Arguments: call.raw}, call)
	}
}

// search answers search_capabilities with one text block.
func (x *exchange) search(call toolCall) {
	query, refusal := parseQuery(call.arguments)
	if refusal != nil {
		x.refused(x.out, refusal)
		return
	}
	x.goesOn()
	text, lease, err := capability.Search(x.ctx, x.caller, query)
	defer lease.Release()
	if err != nil {
		x.ended(x.out, err, capability.CancelledCall)
		return
	}
	_ = x.out.answer(textAnswer(x.id, text, x.stateless), http.StatusOK)
}

// execute answers execute_capability.
func (x *exchange) execute(call toolCall) {
	req, refusal := parseExecution(call.arguments)
	if refusal != nil {
		x.record(call.arguments, refusal)
		x.refused(x.out, refusal)
		return
	}
	x.start(req, call)
}

// start makes a call and answers with what comes of it.
func (x *exchange) start(req capability.Request, call toolCall) {
	req.RequestID = x.peer + x.id.Key()
	req.EndsOnClose = x.stateless
	req.Asked = x.begun
	// From here on the desk holds the body's bytes; they go when the arguments have been written out.
	req.Bytes, x.lease = x.lease, nil

	if x.stateless && call.elicits != 0 {
		can := call.elicits
		call.elicits = 0 // nothing is asked on a stream
		n := x.startNotes(call.asides)
		defer n.end()
		x.hold(req, call.sum(), can, n)
		return
	}
	n := x.startNotes(call.asides)
	defer n.end()
	x.run(req, n)
}

// run makes a call that ends with its request.
func (x *exchange) run(req capability.Request, n *notes) {
	if n != nil {
		req.Asides = n.asides()
	}
	delivery, err := capability.Execute(x.ctx, x.caller, req)
	x.finish(x.responder(n), delivery, err)
}

// finish answers with the result object of the provider, as it came. The lease of the result is held until the client has
// read it, so that a slow client pays for what it makes us keep.
func (x *exchange) finish(respond responder, delivery *capability.Delivery, err error) {
	if err != nil {
		x.ended(respond, err, capability.OutcomeUnknown)
		return
	}
	if x.stateless {
		if object := missingCapability(delivery.Raw); object != nil {
			delivery.Done()
			x.missing(respond, object)
			return
		}
	}
	if x.stateless && !isFinal(delivery.Raw) {
		x.front.count("question_in_result")
		delivery.Done()
		_ = respond.answer(resultAnswer(x.id, mcp.ErrorResult("the server answered with something that is no final result (resultType), which is not passed on; look at what it did before you repeat the call", ""), true), http.StatusOK)
		return
	}
	// Only a write that failed says that the client has not got it: one that reads its answer may close at once.
	if err := respond.answer(resultAnswer(x.id, delivery.Raw, x.stateless), http.StatusOK); err != nil {
		x.front.count("client_gone")
		delivery.Missed()
		return
	}
	delivery.Done()
}

// missing tells a client of the stateless versions that a server needs what this client has not declared: as the error that
// its version has for that, since it is for the client and not for the model.
func (x *exchange) missing(respond responder, object []byte) {
	x.front.count("missing_capability")
	_ = respond.answer(errorAnswer(x.id, object), http.StatusBadRequest)
}

// missingCapability finds the error missingClientCapability of a server in the result that stands for it.
func missingCapability(result []byte) []byte {
	const longest = 64 << 10
	if len(result) > longest || !bytes.Contains(result, []byte("-32021")) {
		return nil
	}
	object, _ := jsonrpc.ParseObject(result)
	raw, _ := object.Get("_meta")
	meta, _ := jsonrpc.ParseObject(raw)
	told, _ := meta.Get("acpod.dev/error")
	fault, err := jsonrpc.ParseObject(told)
	if err != nil {
		return nil
	}
	raw, _ = fault.Get("code")
	if code, ok := jsonrpc.Int(raw); !ok || code != missingClientCapability {
		return nil
	}
	return bytes.Clone(told)
}

// responder is where the answer of a call goes.
func (x *exchange) responder(n *notes) responder {
	if n == nil {
		return x.out
	}
	return n
}

// responder writes the one answer of a call: at once, or when all that was said before it has been written.
type responder interface {
	answer(a answer, status int) error
}

func (x *exchange) refused(to responder, refusal *capability.Refusal) {
	x.front.count("refused_" + string(refusal.Code))
	_ = to.answer(resultAnswer(x.id, refusal.Result(), x.stateless), http.StatusOK)
}

// ended answers a call that has no result. When the client has gone there is nobody to answer; when the facade stops, the
// client is there and is told, with the code that holds for a call of which nothing more is known.
func (x *exchange) ended(to responder, err error, stopped capability.Code) {
	var refusal *capability.Refusal
	switch {
	case errors.As(err, &refusal) && x.direct != "" && (refusal.Code == capability.Unknown || refusal.Code == capability.MalformedName):
		// For who may not see it there is no such tool, as for any other name.
		bad := unknownTool(x.direct, x.front.shows)
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "refused_" + string(refusal.Code), err: bad})
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
	raw, _ := arguments.Get("name")
	name, _ := jsonrpc.String(raw)
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
