package capability

import (
	"bytes"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// unwrap puts the object in the place of arguments that are a string which holds one, as some models write them. From then on that object is
// what is judged, hashed and sent. The lease that is returned pays for the string, which its caller keeps as long as its request. Every
// other value stays, and is judged by the desk.
func unwrap(who Caller, r *Request) (body *kernel.Lease, refusal *Refusal) {
	if len(r.Arguments) == 0 || r.Arguments[0] != '"' {
		return nil, nil
	}
	size := 3 * int64(len(r.Arguments)) // it is unquoted, made a text and made bytes
	if !utf8.Valid(r.Arguments) {
		size *= 3 // each byte that is no UTF-8 becomes three
	}
	lease, refusal := afford(who.Account, size)
	if refusal != nil {
		return nil, refusal
	}
	text, ok := jsonrpc.String(r.Arguments)
	object := bytes.TrimSpace([]byte(text))
	if !ok || !jsonrpc.IsObject(object) || !jsonrpc.Valid(object) {
		lease.Release()
		return nil, nil
	}
	lease.Shrink(int64(len(text)))
	body, r.Bytes, r.Arguments = r.Bytes, lease, object
	who.Desk.Current().CountRefusal("arguments_string")
	return body, nil
}
