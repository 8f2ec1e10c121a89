package facade

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// In the stateless versions a server may not ask on the stream of a call. What it asks is the result of the request: the
// client answers with another request, a repeat of the call that brings the answer and the state that it was given. The call
// itself runs on in between, held for that repeat.

// inputKey is the name of the one question of a result; a second one comes with the next result.
const inputKey = "answer"

// errAbandoned ends a call whose question nobody answered.
var errAbandoned = errors.New("facade: the question of the call was not answered in time")

// heldCall is a call that outlives the request that began it. What is in it is handed over by channels; each request that
// comes for it waits for it alone.
type heldCall struct {
	caller capability.Caller
	req    capability.Request
	sum    [32]byte // of the tool and its arguments, which a repeat has to bring again
	can    elicits
	front  *front

	ctx     context.Context
	cancel  context.CancelCauseFunc
	asked   chan capability.Elicitation
	outcome chan outcome
	room    *kernel.Lease         // for a question that waits
	now     atomic.Pointer[notes] // of the request that waits for it
	dropped atomic.Bool
	id      string // of the request that waits for it, as its desk knows it; it is that request's
}

type outcome struct {
	delivery *capability.Delivery
	err      error
}

// parkedCall is a call between its question and the request with the answer.
type parkedCall struct {
	call     *heldCall
	question capability.Elicitation
	paid     *kernel.Lease
	timer    func()
}

// Messages of requests about held calls.
type (
	// runCall is asked to have a call run that outlives its request.
	runCall struct{ call *heldCall }
	// parkCall is asked to keep a call for the request with the answer; true = it is kept.
	parkCall struct {
		state    string
		call     *heldCall
		question capability.Elicitation
	}
	// resumeCall is asked for the call of a state, once. The answer is a *parkedCall, nil when there is none under that token.
	resumeCall struct {
		token [32]byte
		state string
		sum   [32]byte
	}
)

// run makes the call. It is the actor's goroutine: the end of the actor ends it.
func (h *heldCall) run(ctx context.Context) (none kernel.Msg) {
	defer context.AfterFunc(ctx, func() { h.cancel(context.Cause(ctx)) })()
	end := outcome{err: context.Canceled}
	defer func() { // also when it panics: somebody waits
		h.room.Release()
		h.outcome <- end
		if h.dropped.Load() {
			h.drain()
		}
	}()
	end.delivery, end.err = capability.Execute(h.ctx, h.caller, h.req)
	return none
}

// elicit takes a question of the server, on a turn of its source.
func (h *heldCall) elicit(e capability.Elicitation) {
	params, ok := questionFor(e, h.can)
	if ok {
		e.Params = params // a copy
		select {
		case h.asked <- e:
			if h.dropped.Load() {
				h.drain()
			}
			return
		default:
		}
	}
	h.front.count("declined_question")
	decline(e.Answer)
}

// abandon ends the call; what comes of it is nobody's.
func (h *heldCall) abandon() {
	h.cancel(errAbandoned)
	h.dropped.Store(true)
	h.drain()
}

func (h *heldCall) drain() {
	for {
		select {
		case e := <-h.asked:
			decline(e.Answer)
		case end := <-h.outcome:
			if end.delivery != nil {
				end.delivery.Done()
			}
		default:
			return
		}
	}
}

// hold makes a call that may ask. It is one that may not where it cannot be held.
func (x *exchange) hold(req capability.Request, sum [32]byte, can elicits, n *notes) {
	room, err := x.payer().Acquire(longestQuestion)
	if err != nil {
		x.run(req, n)
		return
	}
	h := &heldCall{caller: x.caller, req: req, sum: sum, can: can, front: x.front, room: room, id: req.RequestID,
		asked: make(chan capability.Elicitation, 1), outcome: make(chan outcome, 1)}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.req.Elicit = h.elicit
	// The notes go to whichever request waits for the call.
	h.req.Progress = func(params []byte) { h.note((*notes).progress, params) }
	h.req.Log = func(params []byte) { h.note((*notes).log, params) }
	h.now.Store(n) // what it says at once is for this request
	p, err := x.front.questions.Current().Ask(runCall{h})
	if err != nil { // it was not taken, so it does not run
		room.Release()
		h.cancel(nil)
		x.run(req, n)
		return
	}
	defer p.Drop()
	if _, _, err := p.Wait(context.Background()); err != nil { // nobody knows whether it runs
		h.cancel(err)
		room.Release() // it may never run
		req.Bytes.Release()
		x.refused(x.responder(n), &capability.Refusal{Code: capability.OutcomeUnknown, Text: "the pod lost track of the call; look at what it did before you repeat it"})
		return
	}
	x.await(h, n)
}

func (h *heldCall) note(say func(*notes, []byte), params []byte) {
	if n := h.now.Load(); n != nil {
		say(n, params)
	}
}

// await waits for what comes of a held call next: its end, or a question.
func (x *exchange) await(h *heldCall, n *notes) {
	h.now.Store(n)
	defer h.now.CompareAndSwap(n, nil) // the next request may be there already
	select {
	case end := <-h.outcome:
		h.cancel(nil)
		x.finish(x.responder(n), end.delivery, end.err)
	case e := <-h.asked:
		x.inputRequired(h, e, n)
	case <-x.ctx.Done():
		h.cancel(context.Cause(x.ctx))
		end := <-h.outcome
		h.dropped.Store(true)
		h.drain() // a question that nobody will answer
		x.finish(x.responder(n), end.delivery, end.err)
	}
}

// inputRequired answers with a question, and keeps the call for the request with the answer.
func (x *exchange) inputRequired(h *heldCall, e capability.Elicitation, n *notes) {
	state := rand.Text()
	if x.front.ask(parkCall{state: state, call: h, question: e}) != true {
		x.front.count("declined_question")
		decline(e.Answer)
		x.await(h, n)
		return
	}
	result := append([]byte(`{"resultType":"input_required","inputRequests":{"`+inputKey+`":{"method":"elicitation/create","params":`), e.Params...)
	result = append(result, `}},"requestState":"`+state+`"}`...)
	if x.responder(n).answer(resultAnswer(x.id, result, true), http.StatusOK) != nil {
		x.front.count("client_gone")
		// The closing of a request ends its call.
		if p, ok := x.front.ask(resumeCall{token: x.caller.Token, state: state, sum: h.sum}).(*parkedCall); ok && p != nil {
			decline(p.question.Answer)
			h.abandon()
		}
	}
}

// resumed goes on with the call that a request brings the answer of.
func (x *exchange) resumed(call toolCall) {
	var p *parkedCall
	if !x.caller.Anonymous() {
		p, _ = x.front.ask(resumeCall{token: x.caller.Token, state: call.state, sum: call.sum()}).(*parkedCall)
	}
	if p == nil {
		bad := jsonrpc.BadParams("requestState is none that waits for this call: it was used, has expired, or belongs to another call; send the call without it")
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "request_state", err: bad})
		return
	}
	x.takesOver(p.call)
	x.goesOn()
	n := x.startNotes(call.asides)
	defer n.end()
	raw, ok := call.responses.Get(inputKey)
	if !ok || !isAnswer(raw) || len(raw) > longestAnswer {
		x.inputRequired(p.call, p.question, n) // asked again
		return
	}
	p.call.now.Store(n)
	p.question.Answer(append([]byte(nil), raw...), nil)
	x.await(p.call, n)
}

// takesOver has the desk know the call by this request, before a cancellation of it can come.
func (x *exchange) takesOver(h *heldCall) {
	id := x.peer + x.id.Key()
	if x.caller.Desk.Current().Tell(capability.Continued{Token: x.caller.Token, Was: h.id, Is: id}) != nil {
		x.front.count("lost_continuation") // its closing still ends it
		return
	}
	h.id = id
}

func (a *questions) park(c *kernel.Ctx, m parkCall) bool {
	paid, ok := a.admit(c, m.call.caller.Token, len(m.question.Params))
	if ok {
		a.watch(c, m.call.caller.Desk)
		a.parked[m.state] = &parkedCall{call: m.call, question: m.question, paid: paid, timer: c.After(questionPatience, overdue{m.state})}
	}
	return ok
}

func (a *questions) resume(c *kernel.Ctx, m resumeCall) *parkedCall {
	p := a.parked[m.state]
	if p == nil || p.call.caller.Token != m.token || p.call.sum != m.sum {
		c.Refuse("strange_state")
		return nil
	}
	a.unpark(m.state)
	return p
}

func (a *questions) unpark(state string) {
	p := a.parked[state]
	delete(a.parked, state)
	a.discharge(p.call.caller.Token, p.paid, p.timer)
}

// sum tells whether a repeat is of the same call.
func (c toolCall) sum() [32]byte {
	arguments := c.raw
	if arguments == nil {
		arguments = c.arguments.Raw()
	}
	h := sha256.New() // arguments may be large, and are not copied
	_, _ = io.WriteString(h, c.tool+"\x00")
	_, _ = h.Write(arguments)
	return [32]byte(h.Sum(nil))
}

// answeredBy takes a response of a client: the answer to a question on the stream of one of its calls.
func (x *exchange) answeredBy(frame jsonrpc.Frame) {
	m := answeredQuestion{token: x.caller.Token, id: frame.ID.Key()}
	switch {
	case len(frame.Error) > longestAnswer:
		m.result = cancelled
	case frame.Error != nil:
		m.failed = jsonrpc.ParseError(append([]byte(nil), frame.Error...))
	case !isAnswer(frame.Result) || len(frame.Result) > longestAnswer:
		m.result = cancelled
	default:
		m.result = append([]byte(nil), frame.Result...)
	}
	if x.caller.Anonymous() || frame.ID.IsNull() || x.front.ask(m) != true {
		x.reject(jsonrpc.NullID(), badRequest("response", jsonrpc.InvalidRequest, "no question with that id is open under this token"))
		return
	}
	x.out.taken()
}
