package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// result answers a call with what the server answered, with the lease that pays for it.
func (a *actor) result(c *kernel.Ctx, k *call, m received) {
	a.failures = 0
	a.finish(c, k)
	if m.message.Error != nil {
		fault := errorOf(m.message.Error)
		m.held.Release()
		k.question.Fail(fault)
		return
	}
	k.question.Answer(capability.Result{Raw: m.message.Result}, m.held)
}

const (
	wholeError = 64 << 10 // of an error that passes as it came: it has no lease of its own
	cutMessage = 1 << 10
)

// errorOf reads an error in memory of its own. Of one that is too long, code and the beginning of the message are left.
func errorOf(raw []byte) *jsonrpc.Error {
	if len(raw) <= wholeError {
		return jsonrpc.ParseError(slices.Clone(raw))
	}
	e := jsonrpc.ParseError(raw)
	message := strings.ToValidUTF8(strings.Clone(e.Message[:min(len(e.Message), cutMessage)]), "")
	return &jsonrpc.Error{Code: e.Code, Message: message + " (cut: the server's error was too long)"}
}

// unanswered ends a call of which the link says that no answer comes.
func (a *actor) unanswered(c *kernel.Ctx, k *call, err error) {
	var auth *link.AuthError
	var big *link.TooLargeError
	switch {
	case errors.Is(err, link.ErrSessionLost):
		a.resend(c, k, err)
	case errors.As(err, &auth):
		a.finish(c, k)
		k.question.Fail(&capability.NotSent{Cause: a.refusal(err)})
		a.logOut(c, err)
	case errors.As(err, &big):
		a.finish(c, k)
		k.question.Fail(&capability.TooLarge{Size: big.Size, Limit: big.Limit})
		a.well(c)
	default:
		err = a.redacted(err)
		a.finish(c, k)
		answer := fmt.Errorf("%w: %w", capability.ErrDetached, err)
		if full, ok := errors.AsType[*kernel.Overloaded](err); ok {
			answer = full
		}
		if errors.Is(err, link.ErrUnsent) {
			answer = &capability.NotSent{Cause: answer}
		}
		k.question.Fail(answer)
		if isFault(err) {
			a.fault(c, a.conn, k.id)
			a.opened(c, err)
		}
	}
}

// resend lets a call that a lost session has swallowed be sent once more, when there is a new one.
func (a *actor) resend(c *kernel.Ctx, k *call, err error) {
	if k.again {
		k.phase = waiting
		a.refuse(c, k, "session_lost", a.refusal(err))
		return
	}
	delete(a.calls.byID, k.id)
	k.again, k.phase = true, waiting
	k.untimed()
	k.stop = c.After(max(0, k.limit.Sub(c.Now())), callOver{k})
	a.calls.waiting = append(a.calls.waiting, k)
	a.renew(c, k.session)
	if a.serves() { // another request had found it out before
		a.flush(c)
	}
}

// logOut takes no more calls until the credentials have changed. What is under way may still be answered.
func (a *actor) logOut(c *kernel.Ctx, err error) {
	n := a.conn
	a.login = login{refused: true, hash: n.resolved.Hash, err: err}
	a.ended = err
	n.draining = true
	if len(a.calls.byID) == 0 && n.phase == ready {
		a.end(c, err)
	}
	for _, k := range slices.Clone(a.calls.waiting) {
		a.refuse(c, k, "needs_login", a.refusal(err))
	}
	a.publish(c)
}

// progress is a sign of life of a call: its time begins anew, up to its limit.
func (a *actor) progress(c *kernel.Ctx, params []byte) {
	token, _ := mcp.ParseProgress(params)
	id, ok := token.Int()
	k := a.calls.byID[id]
	if !ok || k == nil {
		c.Refuse("progress")
		return
	}
	k.alive = true
	a.extend(c, k)
	a.use(c)
	if k.Progress != nil {
		k.Progress(params)
	}
}

// extend begins a call's time anew. While its user is asked something it has all that is left to it.
func (a *actor) extend(c *kernel.Ctx, k *call) {
	patience := a.patience()
	if slices.ContainsFunc(a.asked.open, func(q question) bool { return q.call == k }) {
		patience = k.limit.Sub(c.Now())
	}
	k.untimed()
	k.stop = c.After(remaining(c.Now(), patience, k.limit), callOver{k})
}

// remaining is how long a call has after a sign of life, never past its limit.
func remaining(now time.Time, patience time.Duration, limit time.Time) time.Duration {
	return max(0, min(patience, limit.Sub(now)))
}
