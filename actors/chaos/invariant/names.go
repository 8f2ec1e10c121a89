package invariant

// Name is one promise, as reports and tests name it.
type Name string

// The promises.
const (
	AnsweredOnce     Name = "answered_once"
	OwnClient        Name = "own_client"
	ExecutedOnce     Name = "executed_once"
	OutcomeTrue      Name = "outcome_true"
	DisconnectedOnce Name = "disconnected_once"
	CancelReaches    Name = "cancel_reaches"
	TokensBalance    Name = "tokens_balance"
	Accounts         Name = "accounts"
	Memory           Name = "memory"
	BackToBaseline   Name = "back_to_baseline"
	LastChunk        Name = "last_chunk"
	LogLines         Name = "log_lines"
	NoSecret         Name = "no_secret"
	Told             Name = "told"
	Alive            Name = "alive"
)

// Promise is a name and what it means.
type Promise struct {
	Name Name
	Says string
}

// Promises are all of them, in the order of reports.
func Promises() []Promise {
	return []Promise{
		{AnsweredOnce, "every request is answered exactly once, in each direction; a closed socket is an answer"},
		{OwnClient, "no call is executed by, and no session given to, another session's client"},
		{ExecutedOnce, "no call is executed twice"},
		{OutcomeTrue, "an answer comes from the execution of its own call; a call said not to have been sent was not executed"},
		{DisconnectedOnce, "every MCP connection opened is disconnected once, or its socket died"},
		{CancelReaches, "what ends a call is told down to the client that executes it"},
		{TokensBalance, "tokens minted are those revoked and those live; a revoked one opens nothing"},
		{Accounts, "accounts stay within their limits and equal what is queued and in flight: zero at rest, nothing owed"},
		{Memory, "resident memory stays under the documented worst case"},
		{BackToBaseline, "goroutines, file descriptors and child processes return to what they were before"},
		{LastChunk, "every chunk of a turn comes in order and before its end_turn"},
		{LogLines, "every record is one line without a peer's control characters"},
		{NoSecret, "no key, token, session id, argument, result or variable stands in logs, audit, metrics or tree"},
		{Told, "what is over a bound or malformed is refused in the contract's words"},
		{Alive, "the pod serves on: it does not end, none of its own actors crashes or is abandoned"},
	}
}
