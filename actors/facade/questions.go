package facade

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Bounds of what is open between a question and its answer.
const (
	questionPatience = 5 * time.Minute // then the user is taken to have turned away
	questionsOfToken = 8
	questionsInAll   = 1024
	questionBytes    = 1 << 10 // what an open one costs the facade
	longestAnswer    = 64 << 10
)

// questions is the actor that knows what must be known between two requests of one caller: what its client says of
// itself, which questions were put to its user, and which calls wait for an answer that comes with another request. All
// of it is under the caller's token and goes with the caller's desk; without a token there is none of it.
type questions struct {
	clients *clients
	open    map[string]*question
	parked  map[string]*parkedCall
	desks   map[kernel.Ref][][32]byte // watched, with the tokens whose clients are known
	ofToken map[[32]byte]int
}

// question is one elicitation/create on the stream of a call.
type question struct {
	id     string // as it stands on the wire
	token  [32]byte
	desk   kernel.Ref
	call   *notes
	answer func(result []byte, failed *jsonrpc.Error)
	paid   *kernel.Lease
	timer  func()
}

// Messages of requests.
type (
	// openQuestion is asked before a question is written; true = its answer will find it.
	openQuestion struct {
		id     string // jsonrpc.ID.Key
		wire   string
		caller capability.Caller
		call   *notes
		answer func(result []byte, failed *jsonrpc.Error)
	}
	// answeredQuestion is asked with what a client says; false = no such question is open under that token.
	answeredQuestion struct {
		token  [32]byte
		id     string
		result []byte
		failed *jsonrpc.Error
	}
	// withdrawn is told when a call has ended: its questions are nobody's any more.
	withdrawn struct{ call *notes }
	// overdue is told by a timer.
	overdue struct{ id string }
)

// Size implements kernel.Sized.
func (m answeredQuestion) Size() int {
	if m.failed != nil {
		return m.failed.Size()
	}
	return len(m.result)
}

func questionsSpec(known *clients) kernel.Spec {
	return kernel.Spec{Name: "questions", Kind: "questions", Restart: kernel.Permanent, New: func() kernel.Behavior {
		return &questions{clients: known, open: map[string]*question{}, parked: map[string]*parkedCall{},
			desks: map[kernel.Ref][][32]byte{}, ofToken: map[[32]byte]int{}}
	}}
}

// Receive implements kernel.Behavior.
func (a *questions) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case said:
		a.said(c, m)
	case openQuestion:
		answerTo(c, a.put(c, m))
	case answeredQuestion:
		answerTo(c, a.answered(c, m))
	case withdrawn:
		for id, q := range a.open {
			if q.call == m.call {
				a.take(c, id)
				q.answer(cancelled, nil)
			}
		}
	case runCall:
		c.Go("call", m.call.run)
		answerTo(c, true)
	case parkCall:
		answerTo(c, a.park(c, m))
	case resumeCall:
		answerTo(c, a.resume(c, m))
	case overdue:
		c.Refuse("unanswered")
		a.end(c, m.id)
	case kernel.Down:
		a.gone(c, m.Ref)
	}
	a.show(c)
	return nil
}

func answerTo(c *kernel.Ctx, m kernel.Msg) {
	if q := c.Question(); q != nil {
		q.Answer(m, nil)
	}
}

// show has the tree show what is open.
func (a *questions) show(c *kernel.Ctx) {
	c.Attr("open", len(a.open))
	c.Attr("parked", len(a.parked))
}

// admit pays for one more question of a token, or finds that there are enough.
func (a *questions) admit(c *kernel.Ctx, token [32]byte, bytes int) (*kernel.Lease, bool) {
	if len(a.open)+len(a.parked) >= questionsInAll || a.ofToken[token] >= questionsOfToken {
		c.Refuse("questions")
		return nil, false
	}
	paid, err := c.Account().Acquire(questionBytes + int64(bytes))
	if err != nil {
		c.Refuse("questions")
		return nil, false
	}
	a.ofToken[token]++
	return paid, true
}

// discharge is the other end of admit.
func (a *questions) discharge(token [32]byte, paid *kernel.Lease, timer func()) {
	timer()
	paid.Release()
	if a.ofToken[token]--; a.ofToken[token] == 0 {
		delete(a.ofToken, token)
	}
}

func (a *questions) put(c *kernel.Ctx, m openQuestion) bool {
	if a.open[m.id] != nil {
		return false
	}
	paid, ok := a.admit(c, m.caller.Token, 0)
	if ok {
		a.watch(c, m.caller.Desk)
		a.open[m.id] = &question{id: m.wire, token: m.caller.Token, desk: m.caller.Desk, call: m.call, answer: m.answer, paid: paid,
			timer: c.After(questionPatience, overdue{m.id})}
	}
	return ok
}

// answered hands a client's answer to who asked, once.
func (a *questions) answered(c *kernel.Ctx, m answeredQuestion) bool {
	q := a.open[m.id]
	if q == nil || q.token != m.token {
		c.Refuse("strange_answer")
		return false
	}
	a.take(c, m.id)
	q.answer(m.result, m.failed)
	return true
}

// take closes a question.
func (a *questions) take(_ *kernel.Ctx, id string) {
	q := a.open[id]
	delete(a.open, id)
	a.discharge(q.token, q.paid, q.timer)
}

// end gives up on an answer.
func (a *questions) end(c *kernel.Ctx, id string) {
	if q := a.open[id]; q != nil {
		a.take(c, id)
		q.answer(cancelled, nil)
		q.call.offer(note{method: "notifications/cancelled", params: []byte(`{"requestId":` + q.id + `,"reason":"not answered in time"}`)})
	}
	if p := a.parked[id]; p != nil {
		a.unpark(id)
		p.call.abandon()
	}
}

// watch has the actor told of the end of a desk, once a desk.
func (a *questions) watch(c *kernel.Ctx, desk kernel.Ref) {
	if _, watched := a.desks[desk]; !watched {
		a.desks[desk] = nil
		c.Watch(desk)
	}
}

// gone forgets all that was under the tokens of a desk.
func (a *questions) gone(c *kernel.Ctx, desk kernel.Ref) {
	for _, token := range a.desks[desk] {
		a.clients.forget(token)
	}
	delete(a.desks, desk)
	for id, q := range a.open {
		if q.desk == desk {
			a.end(c, id)
		}
	}
	for id, p := range a.parked {
		if p.call.caller.Desk == desk {
			a.end(c, id)
		}
	}
}

// Stop implements kernel.Stopper.
func (a *questions) Stop(c *kernel.Ctx, _ error) {
	for id := range a.open {
		a.end(c, id)
	}
	for id := range a.parked {
		a.end(c, id)
	}
}

// Free implements kernel.Freer.
func (a *questions) Free(error) {
	for _, q := range a.open {
		q.paid.Release()
	}
	for _, p := range a.parked {
		p.paid.Release()
	}
	for _, tokens := range a.desks {
		for _, token := range tokens {
			a.clients.forget(token)
		}
	}
}

// questionIDBits are those of the ids of questions: as many as every client's numbers have. An id is of no use without the
// token of the call.
const questionIDBits = 53

// putQuestion registers a question of a call under an id that nobody can guess. ok is false when there are enough; it is
// declined then.
func (f *front) putQuestion(caller capability.Caller, call *notes, answer func([]byte, *jsonrpc.Error)) (id jsonrpc.ID, ok bool) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	id = jsonrpc.IntID(int64(binary.NativeEndian.Uint64(random[:]) >> (64 - questionIDBits)))
	if f.ask(openQuestion{id: id.Key(), wire: string(id.Raw()), caller: caller, call: call, answer: answer}) != true {
		f.count("declined_question")
		decline(answer)
		return id, false
	}
	return id, true
}

// withdraw takes back what a call asked.
func (f *front) withdraw(call *notes) {
	questions := f.questions.Current()
	if questions.Tell(withdrawn{call}) != nil {
		_ = questions.Signal(withdrawn{call}) // an actor that has ended has ended its questions
	}
}

// ask asks the actor `questions`, whose turns are short; nil = it did not take the question, or is gone.
func (f *front) ask(m kernel.Msg) kernel.Msg {
	p, err := f.questions.Current().Ask(m)
	if err != nil {
		return nil
	}
	defer p.Drop()
	said, lease, err := p.Wait(context.Background())
	lease.Release()
	if err != nil {
		return nil
	}
	return said
}
