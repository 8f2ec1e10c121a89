package extension

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// nonsense is a message that is none, and the code with which the pod answers it under the id null; 0 = it does not.
type nonsense struct {
	variant string
	frame   []byte
	binary  bool
	code    int
}

var nonsenses = []nonsense{
	{"json", []byte(`{"jsonrpc":"2.0","id":1,"method":`), false, jsonrpc.CodeParse},
	{"json", []byte("\x00\x01\x02"), false, jsonrpc.CodeParse},
	{"json", []byte(`{"jsonrpc":"2.0","id":1,"method":"x"} trailing`), false, jsonrpc.CodeParse},
	{"empty", []byte{}, false, jsonrpc.CodeParse},
	{"deep", bytes.Repeat([]byte("["), 10_001), false, jsonrpc.CodeParse},
	{"batch", []byte(`[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"y"}]`), false, jsonrpc.InvalidRequest},
	{"scalar", []byte(`"hello"`), false, jsonrpc.InvalidRequest},
	{"member", []byte(`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`), false, jsonrpc.InvalidRequest},
	{"id", []byte(`{"jsonrpc":"2.0","id":{"a":1},"method":"x"}`), false, jsonrpc.InvalidRequest},
	{"id", []byte(`{"jsonrpc":"2.0","id":1.5,"method":"x"}`), false, jsonrpc.InvalidRequest},
	{"id", []byte(`{"jsonrpc":"2.0","id":true,"method":"x"}`), false, jsonrpc.InvalidRequest},
	{"id", []byte(`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 2000) + `","method":"x"}`), false, jsonrpc.InvalidRequest},
	{"no_method", []byte(`{"jsonrpc":"2.0","id":1}`), false, jsonrpc.InvalidRequest},
	{"no_version", []byte(`{"id":1,"method":"x"}`), false, jsonrpc.InvalidRequest},
	{"unasked", []byte(`{"jsonrpc":"2.0","id":987654321,"result":{}}`), false, 0},
	{"notification", []byte(`{"jsonrpc":"2.0","method":5}`), false, 0},
	{"binary", []byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`), true, 0},
	{"utf8", []byte("{\"jsonrpc\":\"2.0\",\"method\":\"_chaos/\xff\xfe\",\"params\":{\"a\":\"\xc3\x28\"}}"), false, 0},
}

// malform sends nonsense and wants it to be answered as the contract says; the socket lives on.
func (e *Extension) malform(ctx context.Context, r *rand.Rand) {
	p, n := e.peer, nonsenses[r.IntN(len(nonsenses))]
	e.w.Faults.Injected("malformed", n.variant)
	before := e.oddSeen(n.code)
	p.Do(func(s *wire.Socket) error {
		if n.binary {
			return s.Frame(wire.BinaryFrame, true, n.frame)
		}
		return s.Text(n.frame)
	})
	if !e.fence(ctx, p) {
		return // too much nonsense closes a socket, and so do others
	}
	if n.code != 0 && e.oddSeen(n.code) != before+1 {
		e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s: %s nonsense was answered %d times with %d under the id null", p.Name(), n.variant, e.oddSeen(n.code)-before, n.code)
		return
	}
	e.w.Book.Exercise(invariant.Told)
}
