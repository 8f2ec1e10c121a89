package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// call executes a tool: it enters the execution and signs the result.
func (s *Server) call(r request, params []byte) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		s.Book.Break(invariant.Told, []string{r.p.Name()}, "%s: the params of tools/call are no object", r.p.Name())
		return
	}
	raw, _ := o.Get("name")
	tool, _ := jsonrpc.String(raw)
	arguments, _ := o.Get("arguments")
	s.mu.Lock()
	s.count++
	s.mu.Unlock()
	number, ok := Nonce(arguments)
	if !ok || !IsTool(tool) {
		s.Book.Break(invariant.ExecutedOnce, []string{r.p.Name()}, "%s: a call of %.80q without a nonce of ours: %.200q", r.p.Name(), tool, arguments)
		s.answer(r, Deed{Error: &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: "no such call"}}, nil)
		return
	}
	r.nonce = number
	signature := s.Calls.Execute(number, s.Session, arguments)
	d := Deed{}
	if s.Behaviour.Execute != nil {
		d = s.Behaviour.Execute(number)
	}
	if (s.Generation == GenA || s.Generation == GenB) && s.Calls.Doomed(number) {
		d = Deed{Never: true, Cancelled: d.Cancelled}
		defer s.linger(r, params, number)
	}
	s.answer(r, d, func() []byte { return signed(signature, d) })
}

// Nonce reads the number of a call from its arguments.
func Nonce(arguments []byte) (int, bool) {
	o, err := jsonrpc.ParseObject(arguments)
	if err != nil {
		return 0, false
	}
	raw, _ := o.Get("n")
	n, ok := jsonrpc.Int(raw)
	return int(n), ok
}

// signed is a result that says whose it is, in its _meta and in its text; it also has a secret in it, which must not be found in a log.
func signed(sig ledger.Signature, d Deed) []byte {
	var b []byte
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = jsonrpc.AppendString(b, fmt.Sprintf("done #%d/%d/%d/%d %s", sig.Number, sig.Session, sig.Sum, sig.Execution, d.Title+strings.Repeat("r", d.Pad)+" "+ResultCanary))
	b = append(b, `}],"isError":`...)
	b = strconv.AppendBool(b, d.IsError)
	b = append(b, `,"_meta":{"chaos":{"call":`...)
	b = strconv.AppendInt(b, int64(sig.Number), 10)
	b = append(b, `,"session":`...)
	b = strconv.AppendInt(b, int64(sig.Session), 10)
	b = append(b, `,"sum":`...)
	b = strconv.AppendUint(b, uint64(sig.Sum), 10)
	b = append(b, `,"execution":`...)
	b = strconv.AppendInt(b, int64(sig.Execution), 10)
	return append(b, `}}}`...)
}

// ResultCanary stands in every result and in no log.
const ResultCanary = "cnry-result-5f1d0b7a92"
