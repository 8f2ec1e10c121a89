package jsonrpc

import (
	"strings"
	"testing"
	"time"
)

func TestErrorsOfOurOwnHaveTheContractsData(t *testing.T) {
	for want, e := range map[string]*Error{
		`{"code":-32000,"message":"over the limit sessions: 0 of 0 in use","data":{"scope":"sessions","limit":0,"used":0}}`: Overloaded(OverloadData{Scope: "sessions"}),
		`{"code":-32000,"message":"over the limit session_bytes: 5 of 9 in use","data":{"scope":"session_bytes","limit":9,"used":5,"size":7,"retry_after_ms":2}}`: Overloaded(OverloadData{
			Scope: "session_bytes", Limit: 9, Used: 5, Size: 7, RetryAfter: time.Millisecond + 1}),
		`{"code":-32000,"message":"the pod is draining: connect again later","data":{"scope":"draining"}}`:                       Draining(0),
		`{"code":-32000,"message":"the pod is draining: connect again later","data":{"scope":"draining","retry_after_ms":1500}}`: Draining(1500 * time.Millisecond),
		`{"code":-32001,"message":"the session is busy with a turn: wait for its answer or cancel it","data":{"reason":"busy"}}`: BusyError(),
		`{"code":-32001,"message":"a newer connection has taken the session over","data":{"reason":"superseded"}}`:               SupersededError(),
		`{"code":-32603,"message":"the agent exited","data":{"reason":"agent_exited"}}`:                                          InternalError(ReasonAgentExited, "the agent exited"),
		`{"code":-32602,"message":"cwd: no such directory","data":{"reason":"cwd"}}`:                                             BadParamsReason(ReasonCwd, "cwd: %s", "no such directory"),
		`{"code":-32602,"message":"no"}`:                                        BadParams("no"),
		`{"code":-32601,"message":"unknown method \"a\\nb\""}`:                  UnknownMethod("a\nb"),
		`{"code":-32002,"message":"\"m\" needs a successful initialize first"}`: NotInitializedError("m"),
		`{"code":-32800,"message":"the request was cancelled"}`:                 CancelledError(),
		`{"code":1,"message":"m","data":{"a" : 1}}`:                             {Code: 1, Message: "m", RawData: []byte(`{"a" : 1}`)},
	} {
		if got := string(e.AppendObject(nil)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestReasonsAreReadFromBothSides(t *testing.T) {
	for _, e := range []*Error{BusyError(), ParseError([]byte(`{"code":-32001,"message":"x","data":{"reason":"busy"}}`))} {
		if e.Reason() != "busy" {
			t.Errorf("%v has the reason %q", e, e.Reason())
		}
	}
	if r := Draining(0).Reason(); r != "" {
		t.Errorf("draining has the reason %q", r)
	}
}

func TestAPeersErrorPassesToTheByte(t *testing.T) {
	const theirs = `{ "message":"\u003cb\ud800", "code": -32042 ,"data":{"a":1,"a":2},"more":9007199254740993}`
	e := ParseError([]byte(theirs))
	if e.Code != -32042 {
		t.Errorf("code %d", e.Code)
	}
	if got, want := string(AppendError(nil, IntID(4), e)), `{"jsonrpc":"2.0","id":4,"error":`+theirs+`}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsNoErrorObjectBecomesOne(t *testing.T) {
	for _, theirs := range []string{`"boom"`, `null`, `{}`, `{"code":"1","message":"m"}`, `{"code":1.5,"message":"m"}`, `{"code":1,"message":null}`} {
		want := `{"code":-32603,"message":"the peer's error has no code and message","data":` + theirs + `}`
		if got := string(ParseError([]byte(theirs)).AppendObject(nil)); got != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestAnErrorIsOneLineWhateverAPeerWrote(t *testing.T) {
	e := ParseError([]byte(`{"code":1,"message":"a\nb\u001b[31m` + strings.Repeat("x", 200) + `"}`))
	if s := e.Error(); strings.ContainsAny(s, "\n\x1b") || len(s) > 120 {
		t.Errorf("shown as %q", s)
	}
}

func TestBuildersSplice(t *testing.T) {
	raw := []byte(`{"a":"\u003c\ud800" , "n":1e400}`)
	for want, got := range map[string][]byte{
		`{"jsonrpc":"2.0","id":"x","method":"a/\"b","params":{"a":"\u003c\ud800" , "n":1e400}}`: AppendRequest(nil, StringID("x"), `a/"b`, raw),
		`{"jsonrpc":"2.0","id":1,"method":"m"}`:                                                 AppendRequest(nil, IntID(1), "m", nil),
		`{"jsonrpc":"2.0","method":"m","params":{"a":"\u003c\ud800" , "n":1e400}}`:              AppendNotification(nil, "m", raw),
		`{"jsonrpc":"2.0","id":null,"result":{"a":"\u003c\ud800" , "n":1e400}}`:                 AppendResult(nil, NullID(), raw),
		`{"jsonrpc":"2.0","id":2,"result":null}`:                                                AppendResult(nil, IntID(2), nil),
		`{"jsonrpc":"2.0","id":2,"error":{"x":1}}`:                                              AppendRawError(nil, IntID(2), []byte(`{"x":1}`)),
	} {
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
