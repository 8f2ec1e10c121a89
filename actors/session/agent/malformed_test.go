package agent

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"strconv"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// unquoted is the text of a JSON string.
func unquoted(raw jsontext.Value) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

func TestAMalformedAnswerFailsItsRequestAtOnce(t *testing.T) {
	b := launch(t, "good", nil)
	r := b.ready()
	hang := b.ask("hang", "")
	lines := []string{
		`{"jsonrpc":"2.0","id":ID}`,
		`{"id":ID,"outcome":1}`,
		`{"jsonrpc":"2.0","id":"ID"}`,
		`{"jsonrpc":"2.0","id":ID,"result":1,"result":2}`,
		`{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"x"},"error":null}`,
		`{"jsonrpc":"2.0","id":ID,"method":null,"result":1}`,
	}
	for _, line := range lines {
		_, a := b.answer(b.ask("malformed", strconv.Quote(line)))
		if theirs, ok := errors.AsType[*jsonrpc.Error](a.Err); !ok || theirs.Code != jsonrpc.Internal || theirs.Reason() != "internal" {
			t.Errorf("%s: %+v", line, a)
		}
	}
	if n := b.refused(ScopeJunk); n != int64(len(lines)) || r.Noise() != n {
		t.Errorf("%d lines were counted", n)
	}
	// None of these is an answer of the request with that id.
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":ID,"method":"x","method":"y"}`,
		`{"jsonrpc":"1.0","id":ID,"method":"x"}`,
		`{"id":7,"id":ID}`,
		`{"jsonrpc":"2.0","id":ID`,
		`{"jsonrpc":"2.0","id":99999}`,
	} {
		ticket := b.ask("malformed", strconv.Quote(line+"\n"+`{"jsonrpc":"2.0","id":ID,"result":"good"}`))
		if _, a := b.answer(ticket); a.Err != nil {
			t.Errorf("%s answered it: %v", line, a.Err)
		} else {
			a.Lease.Release()
		}
	}
	b.tell(Notify{Method: "session/cancel"})
	if _, a := b.answer(hang); a.Err != nil {
		t.Errorf("the request beside them: %v", a.Err)
	} else {
		a.Lease.Release()
	}
}
