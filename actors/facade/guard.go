package facade

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

// endpoint is the one path of the facade.
const endpoint = "/mcp"

// requestBytes is what a request costs beside its body: a goroutine, the buffers of its connection and a small answer.
const requestBytes = 16 << 10

// slotBytes is what a request costs beside its body, its head included: net/http keeps that while the request is served.
func slotBytes(r *http.Request) int64 {
	const line, inSlot = 128, 4 << 10 // of each line: its place in the table; and what requestBytes has room for
	head := int64(0)
	for name, values := range r.Header {
		head += int64(line + len(name))
		for _, value := range values {
			head += int64(line/4 + len(value))
		}
	}
	return requestBytes + max(0, head-inSlot)
}

// smallBody is the longest body that the facade itself pays for when the caller's session has no room, so that an agent
// whose session is full can still shake hands, list the tools and be told what is the matter.
const smallBody = 64 << 10

// guard stands before everything else. Its rules are ordered from those that cost nothing to those that cost memory; the
// first that objects answers.
func (f *front) guard(w http.ResponseWriter, r *http.Request) {
	if reason := f.rules.Check(r); reason != door.Open {
		f.count("door_" + string(reason))
		door.Forbid(w, reason)
		return
	}
	if r.URL.Path != endpoint {
		f.refuse(w, http.StatusNotFound, "path", "not found: the facade serves "+endpoint)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		f.refuse(w, http.StatusMethodNotAllowed, "method", "method not allowed: send POST")
		return
	}
	caller, kind := identify(r.Header, f.cfg.Callers, f.cfg.Key)
	switch kind {
	case deadBearer, oddBearer, twoBearers:
		f.count(string(kind))
	}
	if f.cfg.ClosedToAnonymous && kind != liveBearer && kind != keyBearer {
		w.Header().Set("WWW-Authenticate", `Bearer realm="acpod"`)
		f.refuse(w, http.StatusUnauthorized, "anonymous", "unauthorized: send a session's token or the facade's key as a bearer")
		return
	}
	if kind == liveBearer {
		caller.Desk = caller.Desk.Current() // a desk that crashed has come back under the same token
	} else {
		caller = f.anonymous()
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.EqualFold(kind, "application/json") {
		f.refuse(w, http.StatusUnsupportedMediaType, "content_type", "unsupported media type: send application/json")
		return
	}
	if coding := strings.Join(r.Header["Content-Encoding"], ","); coding != "" && !strings.EqualFold(coding, "identity") {
		f.refuse(w, http.StatusUnsupportedMediaType, "content_encoding", "unsupported content encoding: send the JSON as it is")
		return
	}
	version, bad := headerVersion(r.Header)
	if bad != nil {
		f.fail(w, jsonrpc.NullID(), bad)
		return
	}
	if r.ContentLength > f.cfg.RequestBytes {
		f.tooLarge(w)
		return
	}
	slot, body, lease, err := f.admit(w, r, caller)
	defer slot.Release()
	switch {
	case errors.Is(err, errTooLarge):
		f.tooLarge(w)
		return
	case errors.Is(err, errCutShort):
		w.Header().Set("Connection", "close")
		f.fail(w, jsonrpc.NullID(), badRequest("body", jsonrpc.CodeParse, "the body did not arrive whole in time"))
		return
	case err != nil:
		f.full(w, err)
		return
	}
	x := &exchange{front: f, out: &httpOutlet{front: f, paced: newPacedWriter(w, f.cfg.WriteTimeout)}, ctx: r.Context(), header: r.Header,
		streams: takesStream(r.Header), caller: caller, version: version, lease: lease}
	defer x.release()
	x.serve(body)
}

// admit charges the request to its caller, or to the facade when the caller cannot pay and the body is small, and reads
// the body. slot pays for the request until it is answered, lease for the body. The errors are those of readBody.
func (f *front) admit(w http.ResponseWriter, r *http.Request, caller capability.Caller) (slot *kernel.Lease, body []byte, lease *kernel.Lease, err error) {
	payer := caller.Account
	if payer == nil {
		payer = f.account
	}
	size := slotBytes(r)
	for {
		if slot, err = payer.Acquire(size); err == nil {
			body, lease, err = readBody(w, r, payer, f.cfg.RequestBytes)
			if err == nil || errors.Is(err, errTooLarge) || errors.Is(err, errCutShort) {
				return slot, body, lease, err
			}
			slot.Release()
		}
		if payer == f.account || r.ContentLength < 0 || r.ContentLength > smallBody {
			return nil, nil, nil, err
		}
		payer = f.account
	}
}

// refuse answers with a status and one line of text, counted.
func (f *front) refuse(w http.ResponseWriter, status int, reason, text string) {
	f.count(reason)
	f.arm(w)
	http.Error(w, text, status)
}

// full says which account had no room for a request, and how long to wait.
func (f *front) full(w http.ResponseWriter, err error) {
	text, wait := "overloaded: try again later", time.Second
	var full *kernel.Overloaded
	if errors.As(err, &full) {
		wait = max(wait, full.RetryAfter)
		text = fmt.Sprintf("overloaded: %s has %d of %d bytes in use and this needs %d: try again in %v", full.Scope, full.Used, full.Limit, full.Size, wait)
	}
	w.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	f.refuse(w, http.StatusServiceUnavailable, "overloaded", text)
}

func (f *front) tooLarge(w http.ResponseWriter) {
	// What the client still sends is not read, so the connection cannot go on.
	w.Header().Set("Connection", "close")
	f.refuse(w, http.StatusRequestEntityTooLarge, "request_bytes", "body too large: the limit is limits.request_bytes")
}

// fail answers with a status and a JSON-RPC error, counted.
func (f *front) fail(w http.ResponseWriter, id jsonrpc.ID, bad *fault) {
	f.count(bad.reason)
	_ = errorAnswer(id, bad.err.AppendObject(nil)).send(newPacedWriter(w, f.cfg.WriteTimeout), bad.status)
}

func (f *front) arm(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(f.cfg.WriteTimeout))
}
