package facade

import (
	"net/http"
	"strconv"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// How long a client of the stateless versions may keep what it was told. The older ones ask when they like.
const (
	// unchanging holds for what cannot change before the pod is started again.
	unchanging = 5 * time.Minute
	// passing holds for what changes with a session's servers.
	passing = time.Second
)

// lists are the lists that never have anything in them, by method. A client of the stateless versions that asks for one
// is told so and may remember it, where an error would be asked for again.
var lists = map[string]string{"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}

// empty answers one of lists.
func (x *exchange) empty(member string, params []byte) {
	if bad := noCursor(params); bad != nil {
		x.reject(x.id, &fault{status: x.errorStatus(bad.Code), reason: "cursor", err: bad})
		return
	}
	_ = x.out.answer(resultAnswer(x.id, append(x.listHead("public", unchanging), `"`+member+`":[]}`...), x.stateless), http.StatusOK)
}

// listHead opens the result of a list: who says it and how long that holds.
func (x *exchange) listHead(scope string, ttl time.Duration) []byte {
	if !x.stateless {
		return []byte("{")
	}
	head := jsonrpc.AppendString([]byte(`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"oab-mcp-facade","version":`), x.front.cfg.Version)
	head = append(head, `}},"ttlMs":`...)
	head = strconv.AppendInt(head, ttl.Milliseconds(), 10)
	return append(head, `,"cacheScope":"`+scope+`",`...)
}

// noCursor refuses a cursor: no list of the facade has a second page.
func noCursor(params []byte) *jsonrpc.Error {
	object, _ := jsonrpc.ParseObject(params) // without one nothing is asked for
	if raw, ok := present(object, "cursor"); ok {
		return jsonrpc.BadParams("cursor: the list has one page, and %s is not of it", jsonrpc.Show(string(raw)))
	}
	return nil
}
