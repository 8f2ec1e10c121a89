package agent

import (
	"fmt"
	"strings"

	"github.com/acpod/acpod/protocol/acp"
)

// Early is what the variation "early" of garbage says of a session before session/new is answered: more updates than a pod
// keeps, and more bytes. They are numbered from 1 in the name of a command.
const (
	Early      = 150
	earlyBytes = 16 << 10
)

// garbage writes everything that is no message of this protocol, in an order of the seed, or updates of a session that nobody
// knows yet.
func (a *agent) garbage(variant string, t *turn) {
	session := "nobody"
	if t != nil {
		session = t.session.id
	}
	if variant == "early" {
		for i := range Early {
			a.out.update(session, commandsBody(fmt.Sprintf("early-%d", i+1), earlyBytes))
		}
		return
	}
	lines := rubbish(session)
	if t != nil { // initialize was answered long ago
		lines = append(lines, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
	}
	for n := len(lines); n > 0; n-- {
		at := a.faults.intN(n)
		a.out.line([]byte(lines[at]))
		lines[at] = lines[n-1]
	}
}

// rubbish is what no sound agent writes. Nothing of it asks the client for anything that it would have to answer to go on.
func rubbish(session string) []string {
	own := quote(session)
	lines := []string{
		"this line is not JSON {",
		"\xff\xfe\x80 bytes that are not UTF-8",
		"\x00\x00\x00\x00",
		"\x1b[2J\x1b]0;owned\x07",
		"",
		"   \t ",
		"\r",
		"null", "42", `"text"`, "{}", "[]", "true",
		`{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"1.0","method":"session/update","params":{}}`,
		`{"method":"session/update","params":{}}`,
		`{"jsonrpc":"2.0","method":7}`,
		`{"jsonrpc":"2.0","id":7777,"method":"chaos/unknown","id":7778}`,
		`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"session/update","params":{}}]`,
		`{"jsonrpc":"2.0","id":987654321,"result":{}}`,
		`{"jsonrpc":"2.0","id":987654321,"result":{}}`,
		`{"jsonrpc":"2.0","id":"nope","error":{"code":-1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
		`{"jsonrpc":"2.0","id":1.5,"result":{}}`,
		`{"jsonrpc":"2.0","id":-9223372036854775808,"result":{}}`,
		`{"jsonrpc":"2.0","id":[1],"result":{}}`,
		`{"jsonrpc":"2.0","id":424242,"result":{},"error":{"code":1,"message":"both"}}`,
		string(updateLine("somebody-elses", textBody(acp.UpdateAgentMessage, Note("foreign", "foreign", "x")))),
		`{"jsonrpc":"2.0","method":"session/update"}`,
		`{"jsonrpc":"2.0","method":"session/update","params":[]}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,"update":{}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + own + `}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + own + `,"update":"none"}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + own + `,"update":{"sessionUpdate":"of_no_known_kind","x":[1,2,3]}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + own + `,"update":{"sessionUpdate":"plan","entries":[{"content":"\ud800 lone","priority":"high","status":"pending"}]}}}`,
		`{"jsonrpc":"2.0","method":"_chaos/notice","params":{"a":1}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"chaos-none"}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request"}`,
		`{"jsonrpc":"2.0","id":"p1","method":"session/request_permission"}`,
		`{"jsonrpc":"2.0","id":"p2","method":"session/request_permission","params":{"sessionId":` + own + `,"toolCall":{},"options":[]}}`,
		`{"jsonrpc":"2.0","id":"p3","method":"session/request_permission","params":{"sessionId":"somebody-elses","toolCall":{"toolCallId":"1"},"options":[{"optionId":"a","name":"a","kind":"allow_once"}]}}`,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 1025) + `","method":"chaos/unknown"}`,
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
		`{"jsonrpc":"2.0","id":"deep","method":"chaos/unknown","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	}
	for _, id := range []string{"0", "-1", "9007199254740993", `"str"`, `""`, "null", "1.5", "{}", "[]", "true", `"\u0000"`, `"\ud800"`} {
		lines = append(lines, `{"jsonrpc":"2.0","id":`+id+`,"method":"chaos/unknown","params":{}}`)
	}
	for i, method := range []string{acp.MethodReadTextFile, acp.MethodWriteTextFile, acp.MethodTerminalCreate, acp.MethodElicitation,
		acp.MethodMCPConnect, acp.MethodMCPMessage, acp.MethodSessionPrompt, acp.MethodInitialize} {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":"m%d","method":%q,"params":{"sessionId":%s}}`, i, method, own))
	}
	return lines
}
