package ledger

import (
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// Call is a tool call as its caller makes it. Number is its nonce: it stands in the arguments, and in what is executed and answered.
type Call struct {
	Number   int
	Session  int    // the session whose token calls: the harness's number of it
	Sum      uint32 // of the argument bytes
	ReadOnly bool   // the tool's hint
	Place    string // the session's place in the pod's tree, for the report
	Doomed   bool   // its caller takes it back once it is executed: who executes it never answers
}

// Sum is the checksum that signatures carry, of a call's argument bytes.
func Sum(arguments []byte) uint32 { return crc32.ChecksumIEEE(arguments) }

// Signature is what an extension puts into each result: whose it is.
type Signature struct {
	Number    int    `json:"call"`
	Session   int    `json:"session"`
	Sum       uint32 `json:"sum"`
	Execution int    `json:"execution"` // 1 for the first time that this call was executed
}

// End is how a call ended for its caller.
type End string

// The ends that are no refusal.
const (
	Result      End = "result"
	ToolError   End = "tool_error"     // the tool's own isError
	RPCError    End = "rpc_error"      // an error of the extension, or of the facade
	Unavailable End = "http_refused"   // an HTTP status other than 200
	Aborted     End = "aborted"        // the caller went away
	Lost        End = "connection_cut" // the connection ended without an answer
	Unanswered  End = "unanswered"     // no answer in all the time that the pod has
)

// Answer is what a caller got.
type Answer struct {
	End     End
	Refusal string     // the word of _meta["acpod.dev/refusal"]; then End is its word too
	Signed  *Signature // of a result or tool error
	Note    string     // of what is odd about it, for the report
	Again   bool       // the answer to a repeat under the call's idempotency key
	Late    bool       // of a Lost one: its request was not written whole in the time that the pod gives it, and its end is its answer
}

// unsent are refusals of calls that never reached an extension, whatever the tool is.
var unsent = map[string]bool{
	"unknown": true, "malformed_name": true, "server_not_granted": true, "tool_not_granted": true,
	"pin_changed": true, "bad_arguments": true, "needs_login": true, "breaker_open": true,
}

// unsentUnlessReadOnly are said of a call that was not sent, or that only reads.
var unsentUnlessReadOnly = map[string]bool{"detached": true, "overloaded": true, "timeout": true, "cancelled": true}

type entry struct {
	session    int
	sum        uint32
	place      string
	readOnly   bool
	doomed     bool
	left       time.Time // when its caller closed its request
	orphan     bool      // then it may run on for nobody
	answered   bool
	unsent     bool // the answer says that it was never executed
	executions int
	refusal    string
	story      []string // what came, in order
}

// Calls is the ledger of tool calls.
type Calls struct {
	book *invariant.Book

	mu       sync.Mutex
	entries  map[int]*entry
	executed int64
}

// NewCalls makes an empty ledger.
func NewCalls(book *invariant.Book) *Calls {
	return &Calls{book: book, entries: map[int]*entry{}}
}

// Begin enters a call before it is sent.
func (l *Calls) Begin(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[c.Number] = &entry{session: c.Session, sum: c.Sum, readOnly: c.ReadOnly, place: c.Place, doomed: c.Doomed}
}

// Execute enters that the extension of a session was asked to execute a call with these argument bytes, and gives the signature of what
// it answers.
func (l *Calls) Execute(number, session int, arguments []byte) Signature {
	signature := Signature{Number: number, Session: session, Sum: Sum(arguments)}
	l.mu.Lock()
	e, known := l.entries[number]
	if known {
		e.executions++
		e.story = append(e.story, fmt.Sprintf("executed by session %d", session))
		l.executed++
		signature.Execution = e.executions
	}
	l.mu.Unlock()
	switch {
	case !known:
		l.book.Break(invariant.ExecutedOnce, nil, "session %d was asked to execute call %d, which nobody has made", session, number)
		return signature
	case e.session != session:
		l.book.Break(invariant.OwnClient, []string{e.place}, "call %d of session %d was executed by the client of session %d", number, e.session, session)
	default:
		l.book.Exercise(invariant.OwnClient)
	}
	if e.sum != signature.Sum {
		l.book.Break(invariant.OutcomeTrue, []string{e.place}, "the arguments of call %d came with the sum %08x, they were sent with %08x", number, signature.Sum, e.sum)
	}
	l.mu.Lock()
	executions, denied, refusal, story := e.executions, e.unsent, e.refusal, e.told()
	l.mu.Unlock()
	if executions > 1 {
		l.book.Break(invariant.ExecutedOnce, []string{e.place}, "call %d of session %d was executed %d times: %s", number, session, executions, story)
	} else {
		l.book.Exercise(invariant.ExecutedOnce)
	}
	if denied {
		l.book.Break(invariant.OutcomeTrue, []string{e.place}, "call %d was executed after its caller had been told %q, which says that it was not sent: %s", number, refusal, story)
	}
	return signature
}

// End enters the answer to a call.
func (l *Calls) End(number int, a Answer) {
	l.mu.Lock()
	e, known := l.entries[number]
	if !known {
		l.mu.Unlock()
		l.book.Break(invariant.AnsweredOnce, nil, "an answer (%s) came to call %d, which nobody has made", a.End, number)
		return
	}
	again := e.answered
	e.answered = true
	if a.Again {
		e.story = append(e.story, "repeated under its key")
	}
	e.story = append(e.story, string(a.End))
	if !a.Again {
		e.unsent = unsent[a.Refusal] || unsentUnlessReadOnly[a.Refusal] && !e.readOnly
	} else { // the key comes first; `unknown` is left, which a caller is told whose token is dead by now
		e.unsent = a.Refusal == "timeout" || a.Refusal == "cancelled" || unsentUnlessReadOnly[a.Refusal] && !e.readOnly
	}
	if e.unsent {
		e.refusal = a.Refusal
	}
	executions, denied, place, story := e.executions, e.unsent, e.place, e.told()
	l.mu.Unlock()
	words := []string{place}
	switch {
	case again && !a.Again:
		l.book.Break(invariant.AnsweredOnce, words, "call %d was answered twice, now with %s", number, a.End)
	case a.End == Lost && !a.Late:
		l.book.Break(invariant.AnsweredOnce, words, "call %d got no answer: its connection ended: %s", number, a.Note)
	case a.End == Unanswered:
		l.book.Break(invariant.AnsweredOnce, words, "call %d got no answer: %s", number, a.Note)
	default:
		l.book.Exercise(invariant.AnsweredOnce)
	}
	if denied && executions > 0 {
		l.book.Break(invariant.OutcomeTrue, words, "call %d was executed, and its caller was told %q, which says that it was not sent: %s", number, a.Refusal, story)
	}
	if a.End == Result || a.End == ToolError {
		l.book.Check(invariant.OutcomeTrue, words, e.misfit(number, executions, a))
	}
}

// told is what happened so far.
func (e *entry) told() string {
	kind := "changes something"
	if e.readOnly {
		kind = "only reads"
	}
	return kind + "; " + strings.Join(e.story, ", ")
}

// misfit says what is wrong about a result's signature.
func (e *entry) misfit(number, executions int, a Answer) string {
	s := a.Signed
	switch {
	case s == nil:
		return fmt.Sprintf("the answer to call %d is signed by nobody: %s", number, a.Note)
	case s.Number != number || s.Session != e.session || s.Sum != e.sum:
		return fmt.Sprintf("call %d of session %d (sum %08x) was answered with the result of call %d of session %d (sum %08x)",
			number, e.session, e.sum, s.Number, s.Session, s.Sum)
	case executions == 0 || s.Execution > executions:
		return fmt.Sprintf("call %d was answered with a result, and executed %d times", number, executions)
	}
	return ""
}

// Doomed tells whether nothing but its caller ends a call, and Spare that its caller could not: then it ends as any other.
func (l *Calls) Doomed(number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, known := l.entries[number]
	return known && e.doomed
}

// Spare is described at Doomed.
func (l *Calls) Spare(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, known := l.entries[number]; known {
		e.doomed = false
	}
}

// Leave enters that the caller of a call has closed its request: that ends it at once, or as an orphan, which may run on for a while.
func (l *Calls) Leave(number int, at time.Time, orphan bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, known := l.entries[number]; known {
		e.left, e.orphan = at, orphan
	}
}

// Left tells when a call had to end because its caller had closed its request; zero: it has not, or its call may run on.
func (l *Calls) Left(number int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, known := l.entries[number]; known && !e.orphan {
		return e.left
	}
	return time.Time{}
}

// SpareOrphans ends what only the window of an orphan would end: nobody waits for that at the end of a run.
func (l *Calls) SpareOrphans() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.orphan {
			e.doomed = false
		}
	}
}

// Begun tells whether a call was executed, by whomever.
func (l *Calls) Begun(number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, known := l.entries[number]
	return known && e.executions > 0
}

// Unanswered gives the calls that are open, at most limit.
func (l *Calls) Unanswered(limit int) (numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, e := range l.entries {
		if !e.answered && len(numbers) < limit {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// Close is for the end, when nobody calls or executes any more: what is still open was never answered.
func (l *Calls) Close() {
	for _, number := range l.Unanswered(1 << 30) {
		l.End(number, Answer{End: Unanswered, Note: "the run is over"})
	}
}

// Executed is how many executions there were.
func (l *Calls) Executed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.executed
}
