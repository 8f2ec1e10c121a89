package session

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// pageSize is how many sessions one page of session/list has.
const pageSize = 100

// onList is session/list: the sessions that this connection opened or resumed, and those of the same client secret.
func (v *supervisor) onList(m List) {
	defer m.Held.Release()
	cwd, cursor, bad := parseList(m.Params)
	if bad != nil {
		m.Client.Respond("", m.Req, nil, nil, bad)
		return
	}
	var mine []*record
	for _, rec := range v.records {
		if rec.listedFor(m.Client) && (cwd == "" || cwd == rec.cwd) && (cursor == 0 || rec.seq < cursor) {
			mine = append(mine, rec)
		}
	}
	slices.SortFunc(mine, func(a, b *record) int { return cmp.Compare(b.seq, a.seq) }) // the newest first
	m.Client.Respond("", m.Req, listResult(mine), nil, nil)
}

// listedFor tells whether the session may be named to that client. One that is not yet open has no id that anybody knows.
func (r *record) listedFor(client Client) bool {
	if r.closed() || r.life != nil && !r.life.opened.Load() || r.life == nil && r.under != nil && !r.under.resume {
		return false
	}
	if !r.owner.admits(client.Key(), client.Secret()) {
		return false
	}
	return r.owner.secret != [32]byte{} || slices.Contains(r.ranks, client.Rank()) || r.status().client == client
}

func parseList(params []byte) (cwd string, cursor uint64, bad *jsonrpc.Error) {
	if params == nil || jsonrpc.IsNull(params) {
		return "", 0, nil
	}
	o, err := jsonrpc.ParseObject(params)
	if err == nil {
		err = o.Unique("cwd", "cursor")
	}
	if err != nil {
		return "", 0, jsonrpc.BadParams("params of session/list: %v", err)
	}
	text := func(name string) string {
		raw, ok := o.Get(name)
		if !ok || jsonrpc.IsNull(raw) {
			return ""
		}
		s, isText := jsonrpc.String(raw)
		if !isText && bad == nil {
			bad = jsonrpc.BadParams("%s must be a string", name)
		}
		return s
	}
	cwd = text("cwd")
	if at := text("cursor"); at != "" && bad == nil {
		if cursor, err = strconv.ParseUint(at, 10, 64); err != nil || cursor == 0 {
			bad = jsonrpc.BadParams("cursor is not one that this pod gave")
		}
	}
	return cwd, cursor, bad
}

func listResult(mine []*record) []byte {
	b := []byte(`{"sessions":[`)
	for i, rec := range mine[:min(len(mine), pageSize)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(append(b, `{"sessionId":`...), rec.id)
		b = jsonrpc.AppendString(append(b, `,"cwd":`...), rec.cwd)
		b = jsonrpc.AppendString(append(b, `,"updatedAt":`...), rec.updated.UTC().Format(time.RFC3339))
		b = append(b, '}')
	}
	b = append(b, ']')
	if len(mine) > pageSize {
		b = jsonrpc.AppendString(append(b, `,"nextCursor":`...), strconv.FormatUint(mine[pageSize-1].seq, 10))
	}
	return append(b, '}')
}
